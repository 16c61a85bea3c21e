import type { Clock } from '../../core/clock.ts';
import { namesIn } from '../../core/json.ts';
import type { RequestCounts } from '../../core/progress.ts';

const samplesPerWindow = 6;

/** Requests of two spans of time. */
export function both(first: RequestCounts, second: RequestCounts): RequestCounts {
  const sums = { ...first };
  for (const name of namesIn(sums)) sums[name] += second[name];
  return sums;
}

/** How much of the request budgets the last window took: samples of counters that only grow. */
export class UseMeter {
  readonly #counts: () => RequestCounts;
  readonly #clock: Clock;
  readonly #windowMs: number;
  #samples: { readonly at: number; readonly counts: RequestCounts }[] = [];

  constructor(counts: () => RequestCounts, clock: Clock, windowMs: number) {
    this.#counts = counts;
    this.#clock = clock;
    this.#windowMs = windowMs;
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    for (;;) {
      this.#sample();
      await this.#clock.sleep(this.#windowMs / samplesPerWindow, signal);
    }
  }

  /** Requests of the last window; `reads` hold the polls. */
  used(): { readonly reads: number; readonly writes: number } {
    const now = this.#counts();
    const [first] = this.#samples;
    if (first === undefined) return { reads: now.reads, writes: now.writes };
    return { reads: now.reads - first.counts.reads, writes: now.writes - first.counts.writes };
  }

  #sample(): void {
    const at = this.#clock.monotonic();
    this.#samples = this.#samples.filter((each) => at - each.at < this.#windowMs);
    this.#samples.push({ at, counts: this.#counts() });
  }
}
