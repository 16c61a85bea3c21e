import type { Clock } from '../../core/clock.ts';

/** After this number of failed projects in a row, the cause is the replica, not the projects. */
const enough = 3;
/** An unfit replica tries one project in this time. Real ms. */
const tryMs = 15_000;

/**
 * Whether this replica can do its work: it reaches the API, and has the tokens of the projects. A replica that cannot
 * would fail the jobs of the whole fleet faster than the others complete them. So until a job succeeds, it seldom takes a
 * job, and only one at a time.
 */
export class Fitness {
  readonly #clock: Clock;
  readonly #failed = new Map<string, string>();
  #ended: string | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Why the replica cannot work. `undefined`: it can. */
  get reason(): string | undefined {
    return this.#ended ?? (this.#failed.size < enough ? undefined : [...this.#failed.values()].at(-1));
  }

  /** The places that the replica may fill now, of all that it has. */
  places(all: number): number {
    if (this.reason === undefined) return all;
    const now = this.#clock.monotonic();
    if (this.#ended !== undefined || now - this.#triedAt < tryMs) return 0;
    this.#triedAt = now;
    return 1;
  }

  fail(project: string, reason: string): void {
    this.#failed.delete(project);
    this.#failed.set(project, reason);
  }

  succeed(): void {
    this.#failed.clear();
  }

  /** The replica takes no more jobs until it is started again. */
  end(reason: string): void {
    this.#ended = reason;
  }
}
