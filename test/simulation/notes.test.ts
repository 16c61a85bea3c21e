import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const script = fileURLToPath(new URL('notes.ts', import.meta.url));

/** The seeds that break a rule where these notes are empty at the start of each run, with the rule. */
async function broken(notes: string, from: number, seeds: number): Promise<readonly string[]> {
  const args = ['--notes', notes, '--from', String(from), '--seeds', String(seeds)];
  const run = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  run.stdout.on('data', (text) => (printed += String(text)));
  await once(run, 'close');
  const lines = printed.trim().split('\n');
  expect(lines).toHaveLength(seeds);
  return lines.filter((line) => !line.endsWith(' sound'));
}

describe('src/core/state.ts: notes', () => {
  test('no seed breaks a rule if each run begins without findings, calibrations and durations', async () => {
    const notes = 'blocked,key_behaviour,task-duration:';
    const half = 12;
    const halves = await Promise.all([broken(notes, 0, half), broken(notes, half, half)]);
    expect(halves.flat()).toEqual([]);
  });
});
