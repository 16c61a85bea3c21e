import { expect, test } from 'vitest';
import type { Board } from '../../src/daemon/fleet/board.ts';
import { DatabaseClock } from '../../src/daemon/fleet/database-clock.ts';
import { Fleet } from '../../src/daemon/fleet/fleet.ts';
import { Lease } from '../../src/daemon/fleet/lease.ts';
import { type FleetQueue, type JobClaim, urgencies } from '../../src/daemon/fleet/queue.ts';
import { systemClock } from '../../src/platform/system.ts';

const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Jobs that are all due: the most urgent first, of these the first one. */
function jobs() {
  const due: JobClaim[] = [];
  const queue: Pick<FleetQueue, 'take' | 'confirm' | 'end' | 'close'> = {
    take: async (most, { leastUrgency, fullTenants }) => {
      const fit = due
        .filter(({ tenant = '', urgency }) => urgency >= leastUrgency && !fullTenants.includes(tenant))
        .toSorted((a, b) => b.urgency - a.urgency)
        .slice(0, most);
      for (const each of fit) due.splice(due.indexOf(each), 1);
      return fit;
    },
    confirm: async (claims) => new Set(claims.map(({ id }) => id)),
    end: async () => {},
    close: async () => {},
  };
  const add = (tenant: string, first: number, count: number, urgency: number = urgencies.time) => {
    for (let at = first; at < first + count; at += 1)
      due.push({
        ...{ id: `${at}`, key: `${at}`, tenant, attempt: 0, trigger: 'timer' },
        ...{ urgency, lateMs: 0, takenAt: systemClock.now() },
      });
  };
  return { queue: queue as FleetQueue, add };
}

/** A replica with eight places, whose projects from 100 on are those of the small tenant. */
function replica() {
  const { queue, add } = jobs();
  const board = {
    spec: async (project: number) => ({ project, version: 1, spec: { name: '', sources: [] } }),
    changed: async () => [],
    close: async () => {},
  } as unknown as Board;
  const clock = new DatabaseClock(systemClock);
  const fleet = new Fleet({
    ...{ replica: 'one', board, queue, lease: new Lease(systemClock), atOnce: 8, clock, log: quiet },
    close: async () => {},
  });
  const ends = new Map<number, () => void>();
  const open = async ({ project }: { readonly project: number }) => ({
    condition: 'converged' as const,
    isWaiting: () => false,
    runOnce: async () => {
      await new Promise<void>((resolve) => ends.set(project, resolve));
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
    for (const each of ends.values()) each();
    await running;
  };
  return { add, inHand, endOne, end };
}

test('a tenant has three quarters of the places alone, and half of them as soon as another one has jobs', async () => {
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

test('edits of a tenant come before a full round of another one, up to three quarters of the places', async () => {
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
