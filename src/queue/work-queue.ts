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
 * there is to do. A key that is added while it waits is one entry; added while it is
 * being worked on, it runs once more afterwards.
 */
export interface WorkQueue<Key> {
  add(key: Key): void;
  /** Resolves when nothing waits, runs or sleeps; rejects with the first failure. */
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
  const sleeping = new Set<Promise<void>>();
  const failures: unknown[] = [];
  const watchers: (() => void)[] = [];
  const asleep = new AbortController();

  stop?.addEventListener('abort', () => shut(), { once: true });

  function shut(): void {
    ready.clear();
    dirty.clear();
    asleep.abort(new Error('The queue has stopped.'));
    settleIfIdle();
  }

  function closed(): boolean {
    return failures.length > 0 || stop?.aborted === true;
  }

  function add(key: Key): void {
    if (closed()) return;
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
      else if (next.next === 'again' && !closed()) sleepThenAdd(key, next.afterMs);
    } catch (error) {
      running.delete(key);
      failures.push(error);
      shut();
    }
    pump();
    settleIfIdle();
  }

  function sleepThenAdd(key: Key, afterMs: number): void {
    const nap = clock
      .sleep(afterMs, asleep.signal)
      .then(
        () => add(key),
        () => undefined,
      )
      .finally(() => {
        sleeping.delete(nap);
        settleIfIdle();
      });
    sleeping.add(nap);
  }

  function settleIfIdle(): void {
    if (ready.size + running.size + sleeping.size > 0) return;
    for (const watcher of watchers.splice(0)) watcher();
  }

  return {
    add,
    async drained() {
      await new Promise<void>((resolve) => {
        watchers.push(resolve);
        settleIfIdle();
      });
      if (failures.length > 0) throw failures[0];
    },
  };
}
