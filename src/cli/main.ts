#!/usr/bin/env node
export {};

// Everything else is loaded after this look: an older Node would end in a stack trace of what it cannot load.
const oldest = 24;
if (Number.parseInt(process.versions.node, 10) < oldest) {
  process.stderr.write(`vdcsync: it needs Node.js ${oldest} or newer, and this is ${process.version}\n`);
  process.exit(1);
}

// A reader that has seen enough, such as `head`, is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

const { main } = await import('./program.ts');
const { processIo } = await import('./terminal.ts');
const code = await main(process.argv.slice(2), processIo());

// An interrupted read may still be waiting for its next try: nothing waits for it, once all is written.
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
