/**
 * One write at a time for a token: the difference between two lists is then the effect of one write. Among the
 * waiting writes, the most urgent write goes first, then the write that has waited longest.
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
  /** Called by the work that has the turn and is about to send. The next waiting works prepare their reads. */
  readyNext(): void;
}

interface Waiter {
  readonly urgency: number;
  readonly enter: () => void;
  getReady?: (() => void) | undefined;
}

/**
 * The number of waiting works that prepare at a time. The reads of one work take about as long as one or two writes.
 */
const ahead = 4;

export function createWriteGate(): WriteGate {
  const waiting: Waiter[] = [];
  let busy = false;

  function leave(): void {
    const next = waiting.shift();
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
        getReady,
        enter: () => {
          signal?.removeEventListener('abort', abort);
          resolve();
        },
      };
      const at = waiting.findIndex((each) => each.urgency < urgency);
      waiting.splice(at === -1 ? waiting.length : at, 0, waiter);
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
    readyNext() {
      for (const waiter of waiting.slice(0, ahead)) {
        waiter.getReady?.();
        waiter.getReady = undefined;
      }
    },
  };
}
