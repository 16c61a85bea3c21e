import type { Clock } from '../../src/core/clock.ts';

interface Sleeper {
  readonly dueMs: number;
  readonly wake: () => void;
}

/** A clock that stands still until a test moves it, so that nothing waits and nothing depends on the machine. */
export class VirtualClock implements Clock {
  private ms: number;
  private sleepers: Sleeper[] = [];

  constructor(startMs: number) {
    this.ms = startMs;
  }

  now(): number {
    return this.ms;
  }

  monotonic(): number {
    return this.ms;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      this.sleepers.push({ dueMs: this.ms + ms, wake: resolve });
    });
  }

  /** Moves on, waking in order those whose time has come. */
  advance(ms: number): void {
    const until = this.ms + ms;
    for (let next = this.next(until); next !== undefined; next = this.next(until)) {
      this.ms = Math.max(this.ms, next.dueMs);
      this.sleepers = this.sleepers.filter((sleeper) => sleeper !== next);
      next.wake();
    }
    this.ms = until;
  }

  /** Moves on to the first sleeper's time; false when nobody sleeps. */
  advanceToNext(): boolean {
    const next = this.next(Number.POSITIVE_INFINITY);
    if (next === undefined) return false;
    this.advance(Math.max(0, next.dueMs - this.ms));
    return true;
  }

  private next(untilMs: number): Sleeper | undefined {
    return this.sleepers
      .filter((sleeper) => sleeper.dueMs <= untilMs)
      .toSorted((a, b) => a.dueMs - b.dueMs)[0];
  }
}
