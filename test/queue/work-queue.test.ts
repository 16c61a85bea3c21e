import { getEventListeners } from 'node:events';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { type Next, WorkQueue, type WorkQueueOptions } from '../../src/queue/work-queue.ts';
import { virtualClock } from '../support/virtual-clock.ts';

describe('src/queue/work-queue.ts', () => {
  test('for any additions: a key never runs twice at once, each addition is worked on, and the queue drains', async () => {
    const additions = fc.array(fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd'), atMs: fc.nat(300) }), {
      minLength: 1,
      maxLength: 30,
    });
    const naps = fc.array(fc.record({ workMs: fc.nat(50), again: fc.nat(3), afterMs: fc.nat(80) }), {
      minLength: 1,
      maxLength: 10,
    });
    await fc.assert(
      fc.asyncProperty(additions, naps, fc.integer({ min: 1, max: 4 }), async (added, plans, concurrency) => {
        const clock = virtualClock(0);
        const running = new Set<string>();
        const startedAt = new Map<string, number[]>();
        const agains = new Map<string, number>();
        let turns = 0;
        const queue = new WorkQueue<string>({
          clock,
          concurrency,
          async work(key) {
            expect(running).not.toContain(key);
            running.add(key);
            expect(running.size).toBeLessThanOrEqual(concurrency);
            startedAt.set(key, [...(startedAt.get(key) ?? []), clock.monotonic()]);
            const { workMs = 0, again = 0, afterMs = 0 } = plans[turns++ % plans.length] ?? {};
            await clock.sleep(workMs);
            running.delete(key);
            const times = agains.get(key) ?? 0;
            agains.set(key, times + 1);
            return times < again ? { next: 'again', afterMs } : { next: 'done' };
          },
        });
        for (const { key, atMs } of added) void clock.sleep(atMs).then(() => queue.add(key));
        await clock.run(clock.sleep(300).then(() => queue.drained()));

        for (const { key, atMs } of added) {
          expect(startedAt.get(key)?.some((at) => at >= atMs)).toBe(true);
        }
        expect(running.size).toBe(0);
        expect(clock.sleeping).toBe(0);
      }),
      { numRuns: 60, seed: 1 },
    );
  });

  test('leaves no listener on a signal that outlives the queue', async () => {
    const { signal } = new AbortController();
    const clock = virtualClock(0);
    const { queue } = queueOf(clock, async () => done, { stop: signal });
    queue.add('a');

    await clock.run(queue.drained());

    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('a ready key that is added again stays one entry', async () => {
    const clock = virtualClock(0);
    const { queue, worked } = queueOf(clock, async () => {
      await clock.sleep(10);
      return done;
    });
    for (const key of ['a', 'b', 'b', 'b', 'c']) queue.add(key);

    await clock.run(queue.drained());

    expect(worked).toEqual(['a', 'b', 'c']);
  });

  test('`again` waits for its delay; an addition does not wait for that delay', async () => {
    const at: number[] = [];
    const clock = virtualClock(0);
    const { queue } = queueOf(clock, async () => {
      at.push(clock.monotonic());
      return at.length < 3 ? { next: 'again', afterMs: 1_000 } : done;
    });
    queue.add('a');
    void clock.sleep(1_500).then(() => queue.add('a'));

    await clock.run(queue.drained());

    expect(at).toEqual([0, 1_000, 1_500]);
  });

  test('the first failure ends the queue: no work starts, and waiting keys are dropped', async () => {
    const clock = virtualClock(0);
    const { queue, worked } = queueOf(
      clock,
      async (key) => {
        if (key === 'sleeper') return { next: 'again', afterMs: 60_000 };
        await clock.sleep(10);
        throw new Error('broken');
      },
      { concurrency: 2 },
    );
    for (const key of ['sleeper', 'broken', 'late']) queue.add(key);

    await expect(clock.run(queue.drained())).rejects.toThrow('broken');

    queue.add('later');
    expect(worked).toEqual(['sleeper', 'broken', 'late']);
    expect(clock.monotonic()).toBeLessThan(60_000);
  });

  test('after a stop, running work ends and no other work starts', async () => {
    const stop = new AbortController();
    const clock = virtualClock(0);
    const { queue, worked } = queueOf(
      clock,
      async () => {
        await clock.sleep(10);
        return { next: 'again', afterMs: 10 };
      },
      { stop: stop.signal },
    );
    queue.add('a');
    queue.add('b');
    void clock.sleep(5).then(() => stop.abort());

    await clock.run(queue.drained());

    expect(worked).toEqual(['a']);
    expect(clock.monotonic()).toBe(10);
  });
});

const done: Next = { next: 'done' };

/** A queue of one worker, unless more are asked for, and the keys that it has begun. */
function queueOf(
  clock: Clock,
  work: (key: string) => Promise<Next>,
  options: Partial<WorkQueueOptions<string>> = {},
) {
  const worked: string[] = [];
  const queue = new WorkQueue<string>({
    ...{ clock, concurrency: 1 },
    work: (key) => {
      worked.push(key);
      return work(key);
    },
    ...options,
  });
  return { queue, worked };
}
