import type { Clock } from '../../core/clock.ts';

const minuteMs = 60_000;

/** Allows a limited number of requests in each minute. */
export class MinuteLimit {
  readonly #most: number;
  readonly #clock: Clock;
  #startedAt: number;
  #count = 0;

  constructor(most: number, clock: Clock) {
    this.#most = most;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  allows(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#startedAt >= minuteMs) {
      this.#startedAt = now;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count <= this.#most;
  }
}
