import type { Clock } from '../../core/clock.ts';

/**
 * How long this process relies on its jobs after they were confirmed. Real ms. The queue gives a job to another replica
 * no sooner than 10 s after its last confirmation.
 */
const leaseMs = 8_000;

/** One moment, by both clocks of this process. */
interface LeaseMoment {
  readonly monotonic: number;
  readonly wall: number;
}

/**
 * Whether this replica may still write for the jobs that it has.
 *
 * ```
 * ended ──confirmed──▶ alive ──not confirmed for `leaseMs`──▶ ended
 * ```
 * Counted from the moment before the confirmation is sent, so that this process gives up before another process may take
 * over, also where it was stopped or one of its clocks was.
 */
export class Lease {
  readonly #clock: Clock;
  #confirmed: LeaseMoment | undefined;
  #life = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#life.abort(new Error('no job was confirmed yet'));
  }

  isAlive(): boolean {
    if (this.#confirmed === undefined) return false;
    const { monotonic, wall } = this.#confirmed;
    const now = this.moment();
    return now.monotonic - monotonic <= leaseMs && Math.abs(now.wall - wall) <= leaseMs;
  }

  /** Aborts when the lease ends. The next confirmation begins another life. */
  get life(): AbortSignal {
    return this.#life.signal;
  }

  moment(): LeaseMoment {
    return { monotonic: this.#clock.monotonic(), wall: this.#clock.now() };
  }

  /** @param sent the moment before the confirmation was sent */
  confirm(sent: LeaseMoment): void {
    this.endIfOver();
    this.#confirmed = sent;
    if (this.#life.signal.aborted && this.isAlive()) this.#life = new AbortController();
  }

  endIfOver(): void {
    if (!this.isAlive()) this.#life.abort(new Error('the jobs of this replica are no longer confirmed'));
  }
}
