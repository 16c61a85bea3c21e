#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import type { ExitCode } from './exit.ts';

// Everything else is loaded after this check: an older Node would end in a stack trace of what it cannot load.
const oldest = 24;
if (Number.parseInt(process.versions.node, 10) < oldest) {
  process.stderr.write(`vdcsync: it needs Node.js ${oldest} or newer, and this is ${process.version}\n`);
  process.exit(1);
}

// Beside the built code, where whoever can write could change the code itself. Node goes on without where it cannot write.
if (import.meta.filename.endsWith('.cjs')) enableCompileCache(join(import.meta.dirname, '.cache'));

// A reader that has seen enough, such as `head`, is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

void run().then((code) => {
  // An interrupted read may still be waiting for its next try: nothing waits for it, once all is written.
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
});

async function run(): Promise<ExitCode> {
  const [{ main }, { processIo }] = await Promise.all([import('./program.ts'), import('./terminal.ts')]);
  return main(process.argv.slice(2), processIo());
}
