#!/usr/bin/env node
import { main } from './program.ts';
import { processIo } from './terminal.ts';

// A reader that has seen enough, such as `head`, is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

const code = await main(process.argv.slice(2), processIo());

// An interrupted read may still be waiting for its next try: nothing waits for it, once all is written.
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
