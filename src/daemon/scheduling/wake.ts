import type { Clock } from '../../core/clock.ts';
import type { Trigger } from '../ports.ts';

/**
 * Collects triggers. Any number of triggers during a reconciliation cause one more reconciliation: level-triggered,
 * not edge-triggered.
 */
export interface Wake {
  nudge(trigger: Trigger): void;
  /** Whether a trigger has come since the last `take`. */
  pending(): boolean;
  /** Returns the collected triggers, and clears them. */
  take(): readonly Trigger[];
  /** Resolves at the next trigger, at once if a trigger is pending, or after `ms`. Rejects with the signal's reason. */
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
        // Not AbortSignal.any: the signal lives for months, and each call would leave a listener on it.
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
