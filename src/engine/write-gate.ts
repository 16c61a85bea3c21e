/**
 * One write at a time for a token: what differs between two lists is then the work of
 * one write. Among those that wait, the most urgent goes first, then the longest waiting.
 */
export interface WriteGate {
  /**
   * Runs `work` alone. Rejects with the signal's reason where it aborts before the turn
   * comes. `getReady` is called when the turn is near: what the work has to know is best read then.
   */
  run<Result>(
    urgency: number,
    work: () => Promise<Result>,
    signal?: AbortSignal,
    getReady?: () => void,
  ): Promise<Result>;
  /** Called by whoever has the turn and is about to send: those next in line are to get ready. */
  readyNext(): void;
}

interface Waiter {
  readonly urgency: number;
  readonly enter: () => void;
  getReady?: (() => void) | undefined;
}

/** So many get ready at a time: the reads of one take about as long as a write or two. */
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
