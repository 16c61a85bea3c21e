import fc from 'fast-check';
import { test as base, describe, expect } from 'vitest';
import type { ReadPriority } from '../../src/api/budget.ts';
import { Budget } from '../../src/api/budget.ts';
import { lateArrivalMs, readOnlyMemory, type UseMemory } from '../../src/api/token-record.ts';
import { type VirtualClock, virtualClock } from '../support/virtual-clock.ts';
import { memory } from './support.ts';

function budgetOf(limit: number, clock: VirtualClock, memo: UseMemory = memory(), timeScale = 1) {
  return new Budget({ bucket: 'b:reads', limit, windowMs: 60_000, clock, timeScale, memory: memo });
}

async function use(budget: ReturnType<typeof budgetOf>, priority: ReadPriority = 'operation') {
  (await budget.acquire(priority)).answered();
}

const test = base.extend('clock', () => virtualClock()).extend('memo', () => memory());

describe('src/api/budget.ts', () => {
  test('evidence reads, polls and refreshes do not take slots reserved for the reads of waiting writes', async ({
    clock,
  }) => {
    const budget = budgetOf(9, clock);
    budget.reserve(20);
    const deferrable = ['evidence', 'poll', 'refresh', 'poll', 'evidence', 'evidence', 'poll'] as const;
    const sentAt: number[] = [];
    const all = deferrable.map(async (priority) => {
      await use(budget, priority);
      sentAt.push(clock.monotonic());
    });
    await clock.run(clock.sleep(1_000));
    // A third of the slots is the most that is reserved.
    expect(sentAt).toHaveLength(6);
    expect(budget.expectedWaitMs('operation')).toBe(0);
    expect(budget.expectedWaitMs('poll')).toBeGreaterThan(50_000);
    await clock.run(Promise.all([use(budget), use(budget), use(budget)]));
    expect(clock.monotonic()).toBe(1_000);
    await clock.run(Promise.all(all));
  });

  test('a reservation ends when no write waits, and after one window at the latest', async () => {
    for (const end of ['none waits', 'a window has passed'] as const) {
      const clock = virtualClock();
      const budget = budgetOf(6, clock);
      budget.reserve(2);
      const all = Promise.all(Array.from({ length: 5 }, () => use(budget, 'poll')));
      await clock.run(clock.sleep(1_000));
      if (end === 'none waits') budget.reserve(0);
      await clock.run(all);
      if (end === 'none waits') expect(clock.monotonic()).toBe(1_000);
      else expect(clock.monotonic()).toBeLessThan(61_000);
    }
  });

  test('never grants more than the limit in any sliding window, for any durations and arrival times', async () => {
    const requests = fc.record({
      gapMs: fc.integer({ min: 0, max: 9_000 }),
      lastsMs: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 40_000 })),
      arrival: fc.double({ min: 0, max: 1, noNaN: true }),
      end: fc.constantFrom('answered', 'answered', 'answered', 'lost'),
      crash: fc.integer({ min: 0, max: 30 }).map((n) => n === 0),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(requests, { maxLength: 40 }),
        fc.integer({ min: 1, max: 6 }),
        async (plan, limit) => {
          const clock = virtualClock();
          const memo = memory();
          const arrivals: number[] = [];
          let budget = budgetOf(limit, clock, memo);
          const work: Promise<void>[] = [];
          const script = async () => {
            for (const { gapMs, lastsMs, arrival, end, crash } of plan) {
              await clock.sleep(gapMs);
              // A new process that only knows what was recorded; the old one's requests have ended.
              if (crash) {
                await Promise.all(work);
                await clock.sleep(1);
                budget = budgetOf(limit, clock, memo);
              }
              const current = budget;
              work.push(
                (async () => {
                  const slot = await current.acquire('operation');
                  const late = end === 'lost' ? lateArrivalMs : 0;
                  const startedAt = clock.monotonic();
                  arrivals.push(startedAt + arrival * (lastsMs + late));
                  await clock.sleep(lastsMs);
                  slot[end === 'lost' ? 'lost' : 'answered']();
                })(),
              );
            }
            await Promise.all(work);
          };
          await clock.run(script());
          arrivals.sort((a, b) => a - b);
          arrivals.forEach((at, index) => {
            const earlier = arrivals[index - limit];
            if (earlier !== undefined) expect(at - earlier).toBeGreaterThan(60_000);
          });
        },
      ),
      { numRuns: 150 },
    );
  });

  test('grants the whole limit at once, and the next request one window later', async ({ clock }) => {
    const budget = budgetOf(60, clock);
    await clock.run(Promise.all(Array.from({ length: 60 }, () => use(budget))));
    expect(clock.monotonic()).toBe(0);
    await clock.run(use(budget));
    expect(clock.monotonic()).toBeGreaterThan(60_000);
    expect(clock.monotonic()).toBeLessThan(60_200);
  });

  test('returns a slot at once when its request was not sent', async ({ clock }) => {
    const budget = budgetOf(1, clock);
    (await clock.run(budget.acquire('operation'))).unsent();
    await clock.run(use(budget));
    expect(clock.monotonic()).toBe(0);
  });

  async function servedAfter(waitMs: number): Promise<string[]> {
    const clock = virtualClock();
    const budget = budgetOf(1, clock);
    await clock.run(use(budget));
    const served: string[] = [];
    const wait = async (priority: ReadPriority, name: string) => {
      await use(budget, priority);
      served.push(name);
    };
    const inLine = async () => {
      await clock.sleep(60_000 - waitMs);
      await Promise.all([
        wait('refresh', 'refresh 1'),
        wait('operation', 'operation 1'),
        wait('poll', 'poll 1'),
        wait('operation', 'operation 2'),
        wait('poll', 'poll 2'),
      ]);
    };
    await clock.run(inLine());
    return served;
  }

  test('serves operations first, then polls, then refreshes', async () => {
    expect((await servedAfter(20_000))[0]).toBe('operation 1');
  });

  test('serves polls that have waited for half a minute first, in order of arrival', async () => {
    expect(await servedAfter(31_000)).toEqual([
      'poll 1',
      'poll 2',
      'operation 1',
      'operation 2',
      'refresh 1',
    ]);
  });

  test('counts a request during which the process died', async ({ clock, memo }) => {
    await clock.run(budgetOf(1, clock, memo).acquire('operation'));
    await clock.advance(1_000);
    await clock.run(use(budgetOf(1, clock, memo)));
    expect(clock.monotonic()).toBeGreaterThan(62_000);
  });

  test('the next process also counts a slow request from its end', async ({ clock, memo }) => {
    const slot = await clock.run(budgetOf(1, clock, memo).acquire('operation'));
    await clock.advance(25_000);
    slot.answered();
    await clock.advance(0);
    await clock.run(use(budgetOf(1, clock, memo)));
    expect(clock.monotonic()).toBeGreaterThan(85_000);
  });

  test('counts a use in the future as a use now, after the clock was set back', async ({ clock, memo }) => {
    await clock.run(use(budgetOf(1, clock, memo)));
    clock.jump(-25 * 3_600_000);
    await clock.run(use(budgetOf(1, clock, memo)));
    expect(clock.monotonic()).toBeGreaterThan(60_000);
    expect(clock.monotonic()).toBeLessThan(65_000 + lateArrivalMs);
  });

  test('stays closed for the duration of `Retry-After`, also in the next process', async ({
    clock,
    memo,
  }) => {
    const first = budgetOf(5, clock, memo);
    await clock.run(use(first));
    await first.close(42_000);
    await clock.advance(2_000);
    await clock.run(Promise.all([use(first), use(budgetOf(5, clock, memo))]));
    expect(clock.monotonic()).toBe(42_000);
  });

  test('a closed budget withholds a granted request that was not sent yet', async ({ clock, memo }) => {
    const slow = {
      ...memo,
      putNote: async (name: string) => (name.startsWith('used:') ? clock.sleep(5) : undefined),
    };
    const budget = budgetOf(9, clock, slow);
    const sending = budget.acquire('operation');
    await clock.advance(1);
    await budget.close(30_000);
    await clock.run(sending);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(30_000);
  });

  test('an aborted wait leaves no slot in use and no timer', async ({ clock }) => {
    const budget = budgetOf(1, clock);
    await clock.run(use(budget));
    const stop = new AbortController();
    const waiting = budget.acquire('operation', stop.signal);
    const room = budget.room(stop.signal);
    await clock.advance(1_000);
    expect(clock.sleeping).toBe(1);
    stop.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
    await expect(room).rejects.toThrow('stopped');
    expect(clock.sleeping).toBe(0);
  });

  test('`room` waits for a free slot and does not take it', async ({ clock }) => {
    const budget = budgetOf(1, clock);
    await clock.run(budget.room());
    await clock.run(use(budget));
    expect(clock.monotonic()).toBe(0);
    await clock.run(budget.room());
    expect(clock.monotonic()).toBeGreaterThan(60_000);
  });

  test('a process that runs for days drops the uses of earlier days', async ({ clock, memo }) => {
    const budget = budgetOf(1, clock, memo);
    for (let day = 0; day < 5; day++) {
      await clock.run(use(budget));
      await clock.advance(24 * 3_600_000);
    }
    expect(memo.uses.length).toBeLessThanOrEqual(2);
  });

  test('a request whose use cannot be recorded is not sent', async ({ clock, memo }) => {
    const broken = { ...memo, putNote: () => Promise.reject(new Error('disk full')) };
    const budget = budgetOf(1, clock, broken);
    await expect(clock.run(budget.acquire('operation'))).rejects.toThrow('disk full');
    await clock.run(budget.room());
    expect(clock.monotonic()).toBe(0);
  });

  test('a dry run reads the recorded requests and records none', async ({ clock, memo }) => {
    await clock.run(use(budgetOf(1, clock, memo)));
    const before = structuredClone(memo.uses);
    const dry = budgetOf(1, clock, readOnlyMemory(memo));
    await clock.run(use(dry));
    await dry.close(1_000);
    expect(clock.monotonic()).toBeGreaterThan(60_000);
    expect(memo.uses).toEqual(before);
    expect(memo.notes.size).toBe(0);
  });
});
