import { describe, expect, test } from 'vitest';
import { apiCodes, codes, explanationOf } from '../../src/core/codes.ts';
import { folderWith, inProcess, oneNetwork } from './run.ts';

describe('src/cli/commands/explain.ts', () => {
  test('a code is explained, with the next step', async () => {
    const { code, stdout } = await inProcess(['explain', 'outcome_unknown'], { cwd: folderWith() });
    const { meaning, next, why, example, ways } = codes.outcome_unknown;
    expect(code).toBe(0);
    for (const text of [meaning, next, why, example, ...ways])
      expect(stdout.toLowerCase()).toContain(text.toLowerCase());
  });

  test.each(
    Object.keys({ ...codes, ...apiCodes }),
  )('%s: the ways of the example are alternatives', (code) => {
    const further = explanationOf(code)?.ways?.slice(1) ?? [];
    expect(further.filter((way) => way.startsWith('vdcsync apply'))).toEqual([]);
  });

  test('a code has a cause only if it asks the operator', async () => {
    const cause = async (code: string) => {
      const { stdout } = await inProcess(['explain', code, '--format', 'json'], { cwd: folderWith() });
      return (JSON.parse(stdout) as { cause: string | null }).cause;
    };
    expect(await cause('prune_disabled')).toContain('deletions');
    expect([await cause('unreachable'), await cause('drift')]).toEqual([null, null]);
  });

  test('a key that neither the spec nor the state knows is a slip', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': oneNetwork });
    expect((await inProcess(['explain', 'servers.nope', '--emulator'], { cwd })).code).toBe(64);
    expect((await inProcess(['explain', 'networks.backend', '--emulator'], { cwd })).code).toBe(0);
  });
});
