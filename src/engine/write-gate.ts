/**
 * One write at a time for a token: what differs between two lists is then the work of
 * one write. Among those that wait, the most urgent goes first, then the longest waiting.
 */
export interface WriteGate {
  /** Runs `work` alone. Rejects with the signal's reason where it aborts before the turn comes. */
  run<Result>(urgency: number, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result>;
}

interface Waiter {
  readonly urgency: number;
  readonly enter: () => void;
}

export function createWriteGate(): WriteGate {
  const waiting: Waiter[] = [];
  let busy = false;

  function leave(): void {
    const next = waiting.shift();
    if (next === undefined) busy = false;
    else next.enter();
  }

  async function enter(urgency: number, signal: AbortSignal | undefined): Promise<void> {
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
    async run(urgency, work, signal) {
      await enter(urgency, signal);
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
}
