import type { Clock } from '../../core/clock.ts';

/**
 * The wall time of the database: replicas whose own clocks differ measure a rollout by the same clock. Each job brings the
 * time. Before the first job, the wall time of this process.
 */
export class DatabaseClock implements Clock {
  readonly #clock: Clock;
  #offsetMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#offsetMs = clock.now() - clock.monotonic();
  }

  now(): number {
    return this.#clock.monotonic() + this.#offsetMs;
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#clock.sleep(ms, signal);
  }

  /** The database has answered with its wall time just now. */
  set(nowMs: number): void {
    this.#offsetMs = nowMs - this.#clock.monotonic();
  }
}
