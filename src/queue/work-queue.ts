import type { Clock } from '../core/clock.ts';

/** What a worker says of a key: it is through with it, or wants it again. */
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
 * A queue of keys, not of operations: whoever works on a key looks for itself at what
 * there is to do.
 *
 * ```
 *         add            turn              done
 * (none) ────▶ ready ──────────▶ running ────────▶ (none)
 *                ▲                │  │
 *                └─ added while ──┘  └─ again ──▶ asleep
 *                └──────────── time, add or wake ─────┘
 * ```
 * A key is in one of these at a time. Added while it is ready, it is still one entry;
 * added while it runs, it runs once more afterwards, at once.
 */
export interface WorkQueue<Key> {
  add(key: Key): void;
  /** Everything asleep is worked on now. */
  wake(): void;
  /** Resolves when nothing is ready, runs or sleeps; rejects with the first failure. From then on `stop` is not heeded. */
  drained(): Promise<void>;
}

export function createWorkQueue<Key>({
  clock,
  concurrency,
  work,
  stop,
}: WorkQueueOptions<Key>): WorkQueue<Key> {
  const ready = new Set<Key>();
  const running = new Set<Key>();
  const dirty = new Set<Key>();
  const asleep = new Map<Key, AbortController>();
  const failures: unknown[] = [];
  const watchers: (() => void)[] = [];

  stop?.addEventListener('abort', drop, { once: true });

  function drop(): void {
    ready.clear();
    dirty.clear();
    for (const key of [...asleep.keys()]) rouse(key);
    settleIfIdle();
  }

  function isShut(): boolean {
    return failures.length > 0 || stop?.aborted === true;
  }

  function add(key: Key): void {
    if (isShut()) return;
    rouse(key);
    if (running.has(key)) dirty.add(key);
    else ready.add(key);
    pump();
  }

  function pump(): void {
    for (const key of ready) {
      if (running.size >= concurrency) return;
      ready.delete(key);
      running.add(key);
      void run(key);
    }
  }

  async function run(key: Key): Promise<void> {
    try {
      const next = await work(key);
      running.delete(key);
      if (dirty.delete(key)) add(key);
      else if (next.next === 'again' && !isShut()) sleep(key, next.afterMs);
    } catch (error) {
      running.delete(key);
      failures.push(error);
      drop();
    }
    pump();
    settleIfIdle();
  }

  function sleep(key: Key, ms: number): void {
    const nap = new AbortController();
    asleep.set(key, nap);
    clock.sleep(ms, nap.signal).then(
      () => add(key),
      () => undefined,
    );
  }

  /** Ends its sleep, if it sleeps. */
  function rouse(key: Key): void {
    const nap = asleep.get(key);
    asleep.delete(key);
    nap?.abort();
  }

  function settleIfIdle(): void {
    if (ready.size + running.size + asleep.size > 0) return;
    for (const watcher of watchers.splice(0)) watcher();
  }

  return {
    add,
    wake() {
      for (const key of [...asleep.keys()]) add(key);
    },
    async drained() {
      await new Promise<void>((resolve) => {
        watchers.push(resolve);
        settleIfIdle();
      });
      stop?.removeEventListener('abort', drop);
      if (failures.length > 0) throw failures[0];
    },
  };
}
