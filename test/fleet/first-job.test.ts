import { describe, expect, test } from 'vitest';
import type { Assignment } from '../../src/daemon/fleet/assignment.ts';
import { firstJob } from '../../src/daemon/fleet/first-job.ts';

const options = { digest: 'd', intervalMs: 600_000, now: 1_000_000, random: { next: () => 0.5 } };

function left(condition: string, dueAt: number, { isTaken = false, settledDigest = 'd' } = {}): Assignment {
  const memory = { dueAt, history: { condition, settledDigest } } as Assignment['memory'];
  return { project: 1, worker: undefined, since: undefined, isTaken, memory };
}

describe('src/daemon/fleet/first-job.ts', () => {
  test('a converged project keeps its waiting time, and gets a moment within the interval if the time is over', () => {
    expect(firstJob(left('converged', 1_060_000), options)).toEqual({ trigger: 'timer', afterMs: 60_000 });
    expect(firstJob(left('converged', 900_000), options)).toEqual({ trigger: 'timer', afterMs: 300_000 });
  });

  test('a project that waits for the end of a write or of a back-off is due as soon as that time is over', () => {
    for (const condition of ['converging', 'blocked', 'paused', 'failing']) {
      expect(firstJob(left(condition, 1_060_000), options).afterMs).toBe(60_000);
      expect(firstJob(left(condition, 900_000), options)).toEqual({ trigger: 'start', afterMs: 0 });
    }
  });

  test('a project that is new, edited or was left in the middle of its work is due at once, the last one first', () => {
    const now = { trigger: 'start', afterMs: 0 };
    expect(firstJob(undefined, options)).toEqual(now);
    expect(firstJob(left('converged', 1_060_000, { settledDigest: 'other' }), options)).toEqual(now);
    expect(firstJob(left('converged', 1_060_000, { isTaken: true }), options)).toEqual({
      ...now,
      isUrgent: true,
    });
  });
});
