#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import type { ExitCode } from './exit.ts';

// All other modules are loaded after this check. On an older Node their import would fail with a stack trace.
const oldest = 24;
if (Number.parseInt(process.versions.node, 10) < oldest) {
  process.stderr.write(`vdcsync needs Node.js ${oldest} or newer, and this is ${process.version}\n`);
  process.exit(1);
}

// The cache is next to the built code: a user who can write there could change the code itself. Node ignores a failed write.
if (import.meta.filename.endsWith('.cjs')) enableCompileCache(join(import.meta.dirname, '.cache'));

// A reader that closes the pipe early, such as `head`, is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

void run().then((code) => {
  // An interrupted read may still wait for its next attempt. After all output is written, the process does not wait for it.
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
});

async function run(): Promise<ExitCode> {
  const [{ main }, { processIo }] = await Promise.all([import('./program.ts'), import('./terminal.ts')]);
  return main(process.argv.slice(2), processIo());
}
