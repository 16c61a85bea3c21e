import type { Clock } from '../../core/clock.ts';
import { abortedWith } from '../scheduling/wake.ts';

/** The page is updated at most twice a second. Real ms. */
const calmMs = 500;
/** How often the page is sent without a change, to update its ages and to detect a dead connection. Real ms. */
const tickMs = 10_000;
const mostWatchers = 50;

/** Wakes the pages that are open in browsers. */
export class Changes {
  readonly #clock: Clock;
  readonly #watchers = new Set<AbortController>();
  #waiting = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The page shows something else from now on. */
  changed(): void {
    if (this.#waiting || this.#watchers.size === 0) return;
    this.#waiting = true;
    void this.#clock.sleep(calmMs).then(() => {
      this.#waiting = false;
      for (const watcher of this.#watchers) watcher.abort();
    });
  }

  isFull(): boolean {
    return this.#watchers.size >= mostWatchers;
  }

  /** Calls `write` at each change until it fails or the signal aborts. */
  async watch(write: () => Promise<void>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await write();
      const { own: nap, release } = abortedWith(signal);
      this.#watchers.add(nap);
      await this.#clock.sleep(tickMs, nap.signal).catch(() => undefined);
      this.#watchers.delete(nap);
      release();
    }
  }
}
