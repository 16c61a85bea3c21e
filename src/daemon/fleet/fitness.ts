import type { Clock } from '../../core/clock.ts';

/** After this number of failed projects in a row, the cause is the replica, not the projects. */
const enough = 3;
/** An unfit replica tries one project in this time. Real ms. */
const tryMs = 15_000;

/** This replica cannot do the job, and another one may. */
export class UnfitError extends Error {}

/**
 * Whether this replica can do its work: it reaches the API, and has the tokens of the projects. A replica that cannot
 * would fail the jobs of the whole fleet faster than the others complete them. So until a job succeeds, it seldom takes a
 * job, and only one at a time.
 */
export class Fitness {
  readonly #clock: Clock;
  readonly #failed = new Map<string, string>();
  #unfit: string | undefined;
  #ended: string | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Why the replica cannot work. `undefined`: it can. */
  get reason(): string | undefined {
    const failed = this.#failed.size < enough ? undefined : [...this.#failed.values()].at(-1);
    return this.#ended ?? this.#unfit ?? failed;
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

  /** A job has shown that the cause is the replica: the next job that it takes comes after a pause. */
  rest(reason: string): void {
    this.#unfit = reason;
    this.#triedAt = this.#clock.monotonic();
  }

  succeed(): void {
    this.#unfit = undefined;
    this.#failed.clear();
  }

  /** The replica takes no more jobs until it is started again. */
  end(reason: string): void {
    this.#ended = reason;
  }
}
