import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { Heart } from '../../src/daemon/fleet/heartbeat.ts';

const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** A clock of which both readings are set by hand; whoever sleeps wakes when it is moved on. */
class HandClock implements Clock {
  monotonicMs = 0;
  wallMs = 1_000_000;
  readonly #sleepers = new Set<() => void>();

  now(): number {
    return this.wallMs;
  }

  monotonic(): number {
    return this.monotonicMs;
  }

  sleep(_ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#sleepers.add(resolve);
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  }

  /** Lets time pass, and whoever sleeps go on. */
  async reconciliation(ms: number): Promise<void> {
    this.monotonicMs += ms;
    this.wallMs += ms;
    for (const wake of this.#sleepers) wake();
    this.#sleepers.clear();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function heartOn(clock: HandClock, onBeat: () => Promise<void> = async () => {}): Heart {
  const beat = async () => {
    await onBeat();
    return ['r'];
  };
  return new Heart({ id: 'r', beat, close: async () => {}, clock, log: quiet });
}

describe('src/daemon/fleet/heartbeat.ts', () => {
  test('is alive for 8 s after the moment before a confirmed heartbeat was sent', async () => {
    const clock = new HandClock();
    const heart = heartOn(clock, async () => clock.reconciliation(3_000));
    expect([heart.isAlive(), heart.life.aborted]).toEqual([false, true]);
    await heart.start();
    await clock.reconciliation(5_000);
    expect(heart.isAlive()).toBe(true);
    await clock.reconciliation(1);
    expect(heart.isAlive()).toBe(false);
  });

  test('is dead at once for a process that stood still, whichever of its clocks went on', async () => {
    for (const stand of [{ wallMs: 60_000 }, { monotonicMs: 60_000 }, { wallMs: -60_000 }]) {
      const clock = new HandClock();
      const heart = heartOn(clock);
      await heart.start();
      clock.wallMs += stand.wallMs ?? 0;
      clock.monotonicMs += stand.monotonicMs ?? 0;
      expect(heart.isAlive()).toBe(false);
    }
  });

  test('ends a life when heartbeats fail for too long, and begins another with the next one', async () => {
    const clock = new HandClock();
    let fails = false;
    const heart = heartOn(clock, async () => {
      if (fails) throw new Error('the database is away');
    });
    await heart.start();
    const { life } = heart;
    const end = new AbortController();
    const running = heart.run(end.signal).catch(() => undefined);
    await clock.reconciliation(3_000);
    fails = true;
    await clock.reconciliation(4_000);
    await clock.reconciliation(4_000);
    expect([life.aborted, heart.isAlive()]).toEqual([false, true]);
    await clock.reconciliation(4_000);
    expect([life.aborted, heart.isAlive()]).toEqual([true, false]);
    fails = false;
    await clock.reconciliation(3_000);
    expect([heart.life.aborted, heart.isAlive()]).toEqual([false, true]);
    expect(life.aborted).toBe(true);
    end.abort();
    await running;
  });
});
