import type { Clock } from '../../core/clock.ts';

/** What is timed of an intent. */
export type Moment = 'sent' | 'not_seen' | 'accepted' | 'due' | 'silent';

/**
 * Times what has to be a span and not a date: how long ago something was sent, or not
 * seen. The state knows wall times only, and a wall clock may jump; what this process saw
 * happen is timed on the monotonic clock. What an earlier one saw is taken from the state,
 * but never as being longer to come than `mostMs`, and where absence is concluded from it
 * (`sent`, `not_seen`) never as longer ago than this stopwatch is old.
 */
export interface Stopwatch {
  /** `inMs`: the moment is that far ahead. */
  mark(intentId: string, moment: Moment, inMs?: number): void;
  /** Milliseconds since the moment; `wallAt` is what the state says of it. */
  since(intentId: string, moment: Moment, wallAt: number): number;
  /** Milliseconds until the moment, 0 where it has passed. */
  until(intentId: string, moment: Moment, wallAt: number): number;
  /** Forgets the intents that are not among these. */
  keep(intentIds: ReadonlySet<string>): void;
}

/** No wait that the outcome table knows is longer. */
const mostMs = 20 * 60_000;

export function createStopwatch(clock: Clock, timeScale: number): Stopwatch {
  const marks = new Map<string, Map<Moment, number>>();
  const bornAt = clock.monotonic();

  function sinceWall(intentId: string, moment: Moment, wallAt: number): number {
    const ms = clock.now() - wallAt;
    if (ms < 0) {
      // The wall was set back since: it is timed from here on, and not from when the wall comes by there again.
      mark(intentId, moment);
      return 0;
    }
    return moment === 'sent' || moment === 'not_seen' ? Math.min(ms, clock.monotonic() - bornAt) : ms;
  }

  function mark(intentId: string, moment: Moment, inMs = 0): void {
    const own = marks.get(intentId) ?? new Map<Moment, number>();
    marks.set(intentId, own.set(moment, clock.monotonic() + inMs));
  }

  return {
    mark,
    since(intentId, moment, wallAt) {
      const marked = marks.get(intentId)?.get(moment);
      return marked === undefined ? sinceWall(intentId, moment, wallAt) : clock.monotonic() - marked;
    },
    until(intentId, moment, wallAt) {
      const marked = marks.get(intentId)?.get(moment);
      if (marked !== undefined) return Math.max(0, marked - clock.monotonic());
      const ms = Math.max(0, Math.min(wallAt - clock.now(), mostMs * timeScale));
      // Asked again, it has come nearer, whatever the wall says.
      mark(intentId, moment, ms);
      return ms;
    },
    keep(intentIds) {
      for (const id of marks.keys()) if (!intentIds.has(id)) marks.delete(id);
    },
  };
}
