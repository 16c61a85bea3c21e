import { expect, test } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import {
  type FleetQueue,
  type JobClaim,
  type NextReconciliation,
  type Trigger,
  urgencies,
} from '../../src/core/fleet.ts';
import type { Board } from '../../src/daemon/fleet/board.ts';
import { DatabaseClock } from '../../src/daemon/fleet/database-clock.ts';
import { Fleet } from '../../src/daemon/fleet/fleet.ts';
import { Lease } from '../../src/daemon/fleet/lease.ts';
import { systemClock } from '../../src/platform/system.ts';
import { quiet } from '../support/project.ts';

/** Jobs that are all due: the most urgent first, of these the first one. */
function jobs() {
  const due: JobClaim[] = [];
  const next: (NextReconciliation | undefined)[] = [];
  const queue: Pick<FleetQueue, 'take' | 'ask' | 'confirm' | 'end' | 'close'> = {
    take: async (most, { leastUrgency, fullTenants }) => {
      const fit = due
        .filter(({ tenant = '', urgency }) => urgency >= leastUrgency && !fullTenants.includes(tenant))
        .toSorted((a, b) => b.urgency - a.urgency)
        .slice(0, most);
      for (const each of fit) due.splice(due.indexOf(each), 1);
      return fit;
    },
    confirm: async (claims) => new Set(claims.map(({ id }) => id)),
    ask: async () => {},
    end: async (_claim, after) => void next.push(after),
    close: async () => {},
  };
  const add = (
    tenant: string | undefined,
    first: number,
    count: number,
    urgency: number = urgencies.time,
  ) => {
    for (let at = first; at < first + count; at += 1)
      due.push({
        ...{ id: `${at}`, key: `${at}`, tenant, attempt: 0, trigger: 'timer' },
        ...{ urgency, lateMs: 0, takenAt: systemClock.now() },
      });
  };
  return { queue: queue as FleetQueue, add, next };
}

/** A replica with eight places, whose projects from 100 on are those of the small tenant. */
function replica(real: Clock = systemClock) {
  const { queue, add, next } = jobs();
  const board = {
    spec: async (project: number) => ({ project, version: 1, spec: { name: '', sources: [] } }),
    changed: async () => [],
    close: async () => {},
  } as unknown as Board;
  const clock = new DatabaseClock(real);
  const fleet = new Fleet({
    ...{ replica: 'one', board, queue, lease: new Lease(systemClock), atOnce: 8, clock, log: quiet },
    close: async () => {},
  });
  const ends = new Map<number, () => void>();
  const waiting = new Set<number>();
  const open = async ({ project }: { readonly project: number }) => ({
    condition: 'converged' as const,
    isWaiting: () => waiting.has(project),
    runOnce: async (_trigger: Trigger, _spec: string, stop: AbortSignal) => {
      await new Promise<void>((resolve) => {
        ends.set(project, resolve);
        stop.addEventListener('abort', () => resolve(), { once: true });
      });
      ends.delete(project);
      return 0;
    },
  });
  const small = () => [...ends.keys()].filter((project) => project >= 100).length;
  const inHand = () => `${ends.size - small()} and ${small()}`;
  const endOne = () => [...ends].find(([project]) => project < 100)?.[1]();
  const stop = new AbortController();
  const running = fleet.run({ open, lead: async () => {} }, stop.signal);
  const end = async () => {
    stop.abort();
    await running;
  };
  return { add, next, fleet, waiting, inHand, endOne, end };
}

test('a tenant has three quarters of the places, and half of the places once another tenant has jobs', async () => {
  const { add, inHand, endOne, end } = replica();
  add('large', 0, 60);
  // The first jobs come together.
  await expect.poll(inHand).toBe('8 and 0');
  for (const left of ['7 and 0', '6 and 0', '6 and 0']) {
    endOne();
    await expect.poll(inHand).toBe(left);
  }
  add('small', 100, 10);
  await expect.poll(inHand).toBe('6 and 2');
  for (const left of ['5 and 3', '4 and 4', '4 and 4']) {
    endOne();
    await expect.poll(inHand).toBe(left);
  }
  await end();
});

test('edits of a tenant precede a full round of another tenant, up to three quarters of the places', async () => {
  const { add, inHand, endOne, end } = replica();
  add('large', 0, 60);
  await expect.poll(inHand).toBe('8 and 0');
  add('small', 100, 20, urgencies.edit);
  // Two additional places are kept for edits.
  await expect.poll(inHand).toBe('8 and 2');
  for (const left of ['7 and 3', '6 and 4', '5 and 5', '4 and 6', '3 and 6', '2 and 6', '2 and 6']) {
    endOne();
    await expect.poll(inHand).toBe(left);
  }
  await end();
});

test('a turn that begins to wait frees its place for the next job at once', async () => {
  // The queue is never asked because time has passed.
  const sleep: Clock['sleep'] = (ms, signal) => systemClock.sleep(ms < 1_000 ? ms : 3_600_000, signal);
  const clock: Clock = { now: systemClock.now, monotonic: systemClock.monotonic, sleep };
  const { add, fleet, waiting, inHand, end } = replica(clock);
  add(undefined, 0, 10);
  await fleet.ask([], 'timer', urgencies.time);
  await expect.poll(inHand).toBe('8 and 0');
  waiting.add(0);
  fleet.progress();
  await expect.poll(inHand).toBe('9 and 0');
  await end();
});

test('another replica continues an unfinished turn at once, before edits', async () => {
  const { add, next, inHand, end } = replica();
  add('large', 0, 1);
  await expect.poll(inHand).toBe('1 and 0');
  await end();
  expect(next).toEqual([{ trigger: 'timer', afterMs: 0, urgency: urgencies.begun }]);
  expect(urgencies.begun).toBeGreaterThan(urgencies.edit);
});
