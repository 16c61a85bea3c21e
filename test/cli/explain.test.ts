import { describe, expect, test } from 'vitest';
import { apiCodes, codes, explanationOf } from '../../src/core/codes.ts';
import { emulated } from './workspace.ts';

describe('src/cli/commands/explain.ts', () => {
  test.each(
    Object.keys({ ...codes, ...apiCodes }),
  )('%s: the remedies of the example are alternatives', (code) => {
    const further = explanationOf(code)?.ways?.slice(1) ?? [];
    expect(further.filter((way) => way.startsWith('vdcsync apply'))).toEqual([]);
  });

  test('a code has a cause only if the code needs a decision of the operator', async () => {
    const cause = async (code: string) => (await emulated().json(`explain ${code}`)).cause;
    expect(await cause('prune_disabled')).toContain('deletions');
    expect([await cause('unreachable'), await cause('drift')]).toEqual([null, null]);
  });
});
