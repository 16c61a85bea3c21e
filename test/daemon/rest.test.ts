import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { type Rest, restMs } from '../../src/daemon/scheduling/wake.ts';

const even = { next: () => 0.5 };
const hour = 3_600_000;

function rest(code?: 'in_flight', moments: readonly number[] = []): Rest {
  const warnings = code === undefined ? [] : [{ code, key: 'servers.web-1', message: '' }];
  const plan = { operations: [], blocked: [], warnings } as unknown as Plan;
  return {
    found: { plan, failures: 0, condition: 'converging' },
    ...{ intervalMs: 10 * hour, moments, now: 1_000 },
  };
}

describe('src/daemon/scheduling/wake.ts', () => {
  test('a write that is still in flight is followed within half a minute, however long the interval is', () => {
    expect(restMs(rest('in_flight', [Number.NaN]), even)).toBe(30_000);
    expect(restMs(rest(), even)).toBe(10 * hour);
  });

  test('the earliest of all later moments counts, and earlier ones do not', () => {
    expect(restMs(rest(undefined, [500, 61_000, 121_000]), even)).toBe(60_000);
  });
});
