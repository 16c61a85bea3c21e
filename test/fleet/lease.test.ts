import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { Lease } from '../../src/daemon/fleet/lease.ts';

/** A clock of which both readings are set by hand. */
class HandClock implements Clock {
  monotonicMs = 0;
  wallMs = 1_000_000;

  now(): number {
    return this.wallMs;
  }

  monotonic(): number {
    return this.monotonicMs;
  }

  async sleep(): Promise<void> {}

  pass(ms: number): void {
    this.monotonicMs += ms;
    this.wallMs += ms;
  }
}

describe('src/daemon/fleet/lease.ts', () => {
  test('is alive for 8 s from the start of its last confirmation', () => {
    const clock = new HandClock();
    const lease = new Lease(clock);
    expect([lease.isAlive(), lease.life.aborted]).toEqual([false, true]);
    const sent = lease.moment();
    clock.pass(3_000);
    lease.confirm(sent);
    expect([lease.isAlive(), lease.life.aborted]).toEqual([true, false]);
    clock.pass(5_000);
    expect(lease.isAlive()).toBe(true);
    clock.pass(1);
    expect(lease.isAlive()).toBe(false);
  });

  test('ends at once for a suspended process, with any clock that continued', () => {
    for (const stand of [{ wallMs: 60_000 }, { monotonicMs: 60_000 }, { wallMs: -60_000 }]) {
      const clock = new HandClock();
      const lease = new Lease(clock);
      lease.confirm(lease.moment());
      clock.wallMs += stand.wallMs ?? 0;
      clock.monotonicMs += stand.monotonicMs ?? 0;
      expect(lease.isAlive()).toBe(false);
    }
  });

  test('an expired life stays expired, and the next confirmation begins another life', () => {
    const clock = new HandClock();
    const lease = new Lease(clock);
    lease.confirm(lease.moment());
    const { life } = lease;
    clock.pass(8_000);
    lease.endIfOver();
    expect(life.aborted).toBe(false);
    clock.pass(1);
    lease.confirm(lease.moment());
    expect([life.aborted, lease.life.aborted, lease.isAlive()]).toEqual([true, false, true]);
  });
});
