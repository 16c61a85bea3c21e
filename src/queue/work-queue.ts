import type { Clock } from '../core/clock.ts';

/** The result of work on one key: the key is done, or the queue must run the key again after `afterMs`. */
export type Next = { readonly next: 'done' } | { readonly next: 'again'; readonly afterMs: number };

export interface WorkQueueOptions<Key> {
  readonly clock: Clock;
  /** How many keys are worked on at once. */
  readonly concurrency: number;
  /** Never runs for one key twice at once. A rejection ends the whole queue with it. */
  readonly work: (key: Key) => Promise<Next>;
  /** Aborted: keys that wait are dropped, keys at work end, and nothing new starts. */
  readonly stop?: AbortSignal;
}

/**
 * A queue of keys, not of operations. The worker of a key finds out for itself which operations the key needs.
 *
 * ```
 *         add            turn              done
 * (none) ────▶ ready ──────────▶ running ────────▶ (none)
 *                ▲                │  │
 *                └─ added while ──┘  └─ again ──▶ asleep
 *                └──────────── time, add or wake ─────┘
 * ```
 * A key is in exactly one of these states. A key that is added while it is ready stays one entry. A key that is added
 * while it runs, runs again immediately afterwards.
 */
export class WorkQueue<Key> {
  readonly #options: WorkQueueOptions<Key>;
  readonly #ready = new Set<Key>();
  readonly #running = new Set<Key>();
  readonly #dirty = new Set<Key>();
  readonly #asleep = new Map<Key, AbortController>();
  readonly #failures: unknown[] = [];
  readonly #watchers: (() => void)[] = [];
  readonly #drop = () => this.#dropAll();

  constructor(options: WorkQueueOptions<Key>) {
    this.#options = options;
    options.stop?.addEventListener('abort', this.#drop, { once: true });
  }

  add(key: Key): void {
    if (this.#isShut()) return;
    this.#rouse(key);
    if (this.#running.has(key)) this.#dirty.add(key);
    else this.#ready.add(key);
    this.#pump();
  }

  /** Resolves when no key is ready, running or asleep. Rejects with the first failure. From then on the queue ignores `stop`. */
  async drained(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#watchers.push(resolve);
      this.#settleIfIdle();
    });
    this.#options.stop?.removeEventListener('abort', this.#drop);
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  #isShut(): boolean {
    return this.#failures.length > 0 || this.#options.stop?.aborted === true;
  }

  #dropAll(): void {
    this.#ready.clear();
    this.#dirty.clear();
    for (const key of [...this.#asleep.keys()]) this.#rouse(key);
    this.#settleIfIdle();
  }

  #pump(): void {
    for (const key of this.#ready) {
      if (this.#running.size >= this.#options.concurrency) return;
      this.#ready.delete(key);
      this.#running.add(key);
      void this.#run(key);
    }
  }

  async #run(key: Key): Promise<void> {
    try {
      const next = await this.#options.work(key);
      this.#running.delete(key);
      if (this.#dirty.delete(key)) this.add(key);
      else if (next.next === 'again' && !this.#isShut()) this.#sleep(key, next.afterMs);
    } catch (error) {
      this.#running.delete(key);
      this.#failures.push(error);
      this.#dropAll();
    }
    this.#pump();
    this.#settleIfIdle();
  }

  #sleep(key: Key, ms: number): void {
    const nap = new AbortController();
    this.#asleep.set(key, nap);
    this.#options.clock.sleep(ms, nap.signal).then(
      () => this.add(key),
      () => undefined,
    );
  }

  /** Ends the sleep of a key. Does nothing if the key is not asleep. */
  #rouse(key: Key): void {
    const nap = this.#asleep.get(key);
    this.#asleep.delete(key);
    nap?.abort('roused');
  }

  #settleIfIdle(): void {
    if (this.#ready.size + this.#running.size + this.#asleep.size > 0) return;
    for (const watcher of this.#watchers.splice(0)) watcher();
  }
}
