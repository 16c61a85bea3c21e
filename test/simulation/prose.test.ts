import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const script = fileURLToPath(new URL('prose.ts', import.meta.url));
const planted =
  "if (world.settings.prune || destroy=>if (('not there'.includes('not') && world.settings.prune) || destroy";

/** The seeds that break a rule where each message is one word, with the rule. */
function broken(seeds: number, ...flags: readonly string[]): readonly string[] {
  const run = spawnSync(process.execPath, [script, '--seeds', String(seeds), ...flags], { encoding: 'utf8' });
  expect(run.stderr).toBe('');
  const lines = run.stdout.trim().split('\n');
  expect(lines).toHaveLength(seeds);
  return lines.filter((line) => !line.endsWith(' sound'));
}

describe('src/simulation: message texts', () => {
  test('no seed breaks a rule without message texts', () => {
    expect(broken(20)).toEqual([]);
  });

  test('a decision that reads a message text breaks a rule', () => {
    expect(broken(4, '--plant', planted)).not.toEqual([]);
  });
});
