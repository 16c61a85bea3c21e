import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';

/** Compares in a time that does not depend on the contents or the lengths. */
export function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}

/** During a rotation, the old and the new secret are both valid, separated by a comma. */
export function secretsIn(text: string): readonly string[] {
  return text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
    .slice(0, 2);
}

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
