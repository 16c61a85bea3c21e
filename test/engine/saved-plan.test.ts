import { describe, expect, test } from 'vitest';
import { PlanStaleError } from '../../src/core/errors.ts';
import { rig } from '../support/rig.ts';

const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';

describe('src/engine/run/approval.ts: a saved plan', () => {
  const spec = `${head}ips:\n  one: {}\n  two: {}\n`;

  test.each([
    ['none of its operations', () => []],
    ['one of them left out', <T>(operations: readonly T[]) => operations.slice(1)],
    [
      'one of them changed',
      <T>(operations: readonly T[]) => operations.map((each) => ({ ...each, risk: 'safe' as const })),
    ],
  ])('with %s is not carried out, though its digest fits', async (_name, edit) => {
    const played = rig();
    const plan = await played.plan(spec);

    const refused = played.apply(spec, { saved: { ...plan, operations: edit(plan.operations) } });

    await expect(refused).rejects.toBeInstanceOf(PlanStaleError);
    expect(played.writes()).toEqual([]);
    expect((await played.apply(spec, { saved: plan })).outcome).toBe('converged');
  });
});
