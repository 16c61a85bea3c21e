import type { Clock } from '../core/clock.ts';

/**
 * One write at a time for a token: the difference between two lists is then the effect of one write. Waiting
 * writes take turns in proportion to their urgency. Among equally urgent writes, those that became ready a moment ago
 * go first, because their reads are still fresh, then the write that has waited longest.
 */
export interface WriteGate {
  /**
   * Runs `work` alone. Rejects with the reason of the signal if the signal aborts before the turn. `getReady` is
   * called shortly before the turn, so that `work` finds fresh reads.
   */
  run<Result>(
    urgency: number,
    work: () => Promise<Result>,
    signal?: AbortSignal,
    getReady?: () => void,
  ): Promise<Result>;
  /** Whether works wait for their turn. */
  isWaited(): boolean;
  /** Called by the work that has the turn and is about to send. The next waiting works prepare their reads. */
  readyNext(): void;
}

interface Waiter {
  readonly urgency: number;
  /** When it became ready, on the monotonic clock. */
  readonly since: number;
  readonly enter: () => void;
  getReady?: (() => void) | undefined;
}

/**
 * The number of waiting works that prepare at a time. The reads of one work take about as long as one or two writes.
 */
const ahead = 4;
/** After this wait, in ms, the reads that made a write ready are too old for it, or will soon be. */
const freshForMs = 45_000;

export function createWriteGate(clock: Pick<Clock, 'monotonic'>): WriteGate {
  const waiting: Waiter[] = [];
  const turns = new Turns();
  let busy = false;

  function leave(): void {
    const next = takeNext(waiting, turns, clock.monotonic());
    if (next === undefined) busy = false;
    else next.enter();
  }

  async function enter(
    urgency: number,
    signal: AbortSignal | undefined,
    getReady: (() => void) | undefined,
  ): Promise<void> {
    signal?.throwIfAborted();
    if (!busy) {
      busy = true;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const abort = () => {
        waiting.splice(waiting.indexOf(waiter), 1);
        reject(signal?.reason);
      };
      const waiter: Waiter = {
        urgency,
        since: clock.monotonic(),
        getReady,
        enter: () => {
          signal?.removeEventListener('abort', abort);
          resolve();
        },
      };
      waiting.push(waiter);
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  return {
    async run(urgency, work, signal, getReady) {
      await enter(urgency, signal, getReady);
      try {
        return await work();
      } finally {
        leave();
      }
    },
    isWaited: () => waiting.length > 0,
    readyNext() {
      for (const waiter of nextOf(waiting, turns, clock.monotonic())) {
        waiter.getReady?.();
        waiter.getReady = undefined;
      }
    },
  };
}

/** Takes the waiter with the next turn out of the waiting ones. */
function takeNext(waiting: Waiter[], turns: Turns, now: number): Waiter | undefined {
  const urgency = turns.next(waiting.map((waiter) => waiter.urgency));
  const isNext = (waiter: Waiter) => waiter.urgency === urgency;
  const fresh = waiting.findIndex((waiter) => isNext(waiter) && now - waiter.since < freshForMs);
  const at = fresh === -1 ? waiting.findIndex(isNext) : fresh;
  return at === -1 ? undefined : waiting.splice(at, 1)[0];
}

/** The waiters that have the next turns, if no other waiter comes. */
function nextOf(waiting: readonly Waiter[], turns: Turns, now: number): Waiter[] {
  const left = [...waiting];
  const further = turns.copy();
  return Array.from({ length: ahead }, () => takeNext(left, further, now) ?? []).flat();
}

/**
 * Divides turns in proportion to the urgencies (fair queueing): each turn of an urgency takes the time 1 / urgency, and
 * the turn that would end first is next. A turn of infinite urgency takes no time, so it is always next. An urgency that
 * did not wait for a while gains nothing by it.
 */
class Turns {
  #now = 0;
  #ends: Map<number, number>;

  constructor(now = 0, ends: ReadonlyMap<number, number> = new Map()) {
    this.#now = now;
    this.#ends = new Map(ends);
  }

  /** Takes the next turn, and returns its urgency. */
  next(urgencies: readonly number[]): number | undefined {
    let best: { readonly urgency: number; readonly end: number } | undefined;
    for (const urgency of new Set(urgencies)) {
      const end = this.#start(urgency) + 1 / urgency;
      const isSooner = best === undefined || end < best.end || (end === best.end && urgency > best.urgency);
      if (isSooner) best = { urgency, end };
    }
    if (best === undefined) return undefined;
    this.#now = this.#start(best.urgency);
    this.#ends.set(best.urgency, best.end);
    return best.urgency;
  }

  copy(): Turns {
    return new Turns(this.#now, this.#ends);
  }

  #start(urgency: number): number {
    return Math.max(this.#now, this.#ends.get(urgency) ?? 0);
  }
}
