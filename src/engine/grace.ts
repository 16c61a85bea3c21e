import type { Clock } from '../core/clock.ts';
import type { ResourceKey } from '../core/keys.ts';

/** The highest time for the firewalls of open servers after the run is asked to stop, in ms. Conflicts and back-off are included. */
const graceMs = 60_000;

/**
 * The end of a run that is asked to stop. Without the firewall of an open server, the run ends at once. With one, the
 * run ends when these firewalls are set, or after a minute. It also ends at once if the API allows no write for longer.
 */
export class Grace {
  readonly #clock: Clock;
  readonly #stop: AbortSignal;
  readonly #roomMs: () => number;
  readonly #over = new AbortController();
  readonly #keys = new Set<ResourceKey>();

  /** `roomMs` is the time until the write budget allows a write. */
  constructor(clock: Clock, stop: AbortSignal, roomMs: () => number) {
    this.#clock = clock;
    this.#stop = stop;
    this.#roomMs = roomMs;
    if (stop.aborted) this.#begin();
    else stop.addEventListener('abort', () => this.#begin(), { once: true });
  }

  /** Aborted: every wait of the run ends. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** The key is an open server, or the firewall of one. */
  add(key: ResourceKey): void {
    this.#keys.add(key);
  }

  delete(key: ResourceKey): void {
    this.#keys.delete(key);
    this.#endIfIdle();
  }

  #begin(): void {
    if (this.#roomMs() > graceMs) this.#over.abort(this.#stop.reason);
    this.#endIfIdle();
    if (this.#over.signal.aborted) return;
    this.#clock.sleep(graceMs, this.over).then(
      () => this.#over.abort(this.#stop.reason),
      () => undefined,
    );
  }

  #endIfIdle(): void {
    if (this.#stop.aborted && this.#keys.size === 0) this.#over.abort(this.#stop.reason);
  }
}
