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
  test('follows a write in flight within half a minute, however long the interval is', () => {
    expect(restMs(rest('in_flight', [Number.NaN]), even)).toBe(30_000);
    expect(restMs(rest(), even)).toBe(10 * hour);
  });

  test('wakes at the earliest later moment, and ignores earlier moments', () => {
    expect(restMs(rest(undefined, [500, 61_000, 121_000]), even)).toBe(60_000);
  });

  test('also wakes when a window opens for a waiting operation', () => {
    const { found, ...others } = rest();
    const blocked = [{ starts_at: '1970-01-01T00:00:31Z' }, {}];
    const plan = { ...found.plan, blocked } as unknown as Plan;
    expect(restMs({ ...others, found: { ...found, plan } }, even)).toBe(30_000);
  });
});
