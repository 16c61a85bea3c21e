import type { Clock } from '../../core/clock.ts';
import type { Trigger } from '../ports.ts';

/**
 * Where triggers come together. However many arrive while somebody works, they are one
 * reason to look once more: level-triggered, not edge-triggered.
 */
export interface Wake {
  nudge(trigger: Trigger): void;
  /** Whether somebody has nudged since the last `taken`. */
  pending(): boolean;
  /** Gives what has come in, and forgets it. */
  take(): readonly Trigger[];
  /** Resolves at the next nudge, at once where one waits, or after `ms`; rejects with the signal's reason. */
  sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void>;
}

export function createWake(): Wake {
  const triggers = new Set<Trigger>();
  let awake: AbortController | undefined;

  return {
    nudge(trigger) {
      triggers.add(trigger);
      awake?.abort();
    },
    pending: () => triggers.size > 0,
    take() {
      const taken = [...triggers];
      triggers.clear();
      return taken;
    },
    async sleep(clock, ms, signal) {
      signal.throwIfAborted();
      if (triggers.size > 0) return;
      const mine = new AbortController();
      awake = mine;
      const forward = () => mine.abort();
      signal.addEventListener('abort', forward, { once: true });
      try {
        await clock.sleep(ms, mine.signal).catch(() => undefined);
      } finally {
        // Not AbortSignal.any: on a signal that lives for months each one would be a listener that stays.
        signal.removeEventListener('abort', forward);
      }
      signal.throwIfAborted();
    },
  };
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}
