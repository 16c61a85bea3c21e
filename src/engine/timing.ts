import type { Clock } from '../core/clock.ts';
import type { Operation } from '../core/plan.ts';
import type { Span, Tracing } from '../core/ports.ts';
import type { OperationResult } from '../core/progress.ts';
import { untraced } from '../core/work.ts';

/** The moments of an intent that are timed. */
export type Moment =
  | 'begun'
  | 'sent'
  | 'not_seen'
  | 'accepted'
  | 'ended'
  | 'due'
  | 'silent'
  | 'proved'
  | 'refused_early'
  | 'asked';

/**
 * Measures time spans: the time since a write was sent, or since a resource was not found. The state has only wall
 * times, and a wall clock may jump. This process times its own events on the monotonic clock. For events of an
 * earlier process, the stopwatch uses the wall time in the state, with two limits: a remaining wait is never longer
 * than `mostMs`, and a span that ends a wait (`begun`), or confirms an absence (`sent`, `ended`, `not_seen`), is never
 * longer than the age of this stopwatch. The API's clock may show that a send is older: see `sinceSentMs`.
 */
export interface Stopwatch {
  /** `inMs`: the moment is this number of milliseconds in the future. */
  mark(intentId: string, moment: Moment, inMs?: number): void;
  /** Whether this process has timed the moment. */
  isMarked(intentId: string, moment: Moment): boolean;
  /** Milliseconds since the moment. `wallAt` is the wall time of the moment in the state. */
  since(intentId: string, moment: Moment, wallAt: number): number;
  /** Milliseconds until the moment, or 0 if the moment has passed. */
  until(intentId: string, moment: Moment, wallAt: number): number;
  /** Forgets all intents except these. */
  keep(intentIds: ReadonlySet<string>): void;
}

const ownTime: ReadonlySet<Moment> = new Set(['begun', 'sent', 'ended', 'not_seen']);
/** The outcome table has no longer wait. */
const mostMs = 20 * 60_000;

/** @param timeScale how many times faster than real time `clock` runs; the longest wait is multiplied by this factor */
export function createStopwatch(clock: Clock, timeScale: number): Stopwatch {
  const marks = new Map<string, Map<Moment, number>>();
  const bornAt = clock.monotonic();

  function sinceWall(intentId: string, moment: Moment, wallAt: number): number {
    const ms = clock.now() - wallAt;
    if (ms < 0) {
      // The wall clock was set back since. The span starts now, and not when the wall clock reaches the same time
      // again.
      mark(intentId, moment);
      return 0;
    }
    return ownTime.has(moment) ? Math.min(ms, clock.monotonic() - bornAt) : ms;
  }

  function mark(intentId: string, moment: Moment, inMs = 0): void {
    const own = marks.get(intentId) ?? new Map<Moment, number>();
    marks.set(intentId, own.set(moment, clock.monotonic() + inMs));
  }

  return {
    mark,
    isMarked: (intentId, moment) => marks.get(intentId)?.has(moment) === true,
    since(intentId, moment, wallAt) {
      const marked = marks.get(intentId)?.get(moment);
      return marked === undefined ? sinceWall(intentId, moment, wallAt) : clock.monotonic() - marked;
    },
    until(intentId, moment, wallAt) {
      const marked = marks.get(intentId)?.get(moment);
      if (marked !== undefined) return Math.max(0, marked - clock.monotonic());
      const ms = Math.max(0, Math.min(wallAt - clock.now(), mostMs * timeScale));
      // The mark makes the next call return a shorter time, even if the wall clock stops.
      mark(intentId, moment, ms);
      return ms;
    },
    keep(intentIds) {
      for (const id of marks.keys()) if (!intentIds.has(id)) marks.delete(id);
    },
  };
}

/** For this time, reads may show the state before a write, in ms. @assumption A9 */
export const staleMs = 60_000;
/** The time between the two reads that confirm a resource as absent, in ms. @assumption A9 */
export const absenceGapMs = 60_000;

/** The time until the next read of a resource that is not complete yet: short at first, later a minute. */
export function nextReadMs(elapsedMs: number): number {
  return Math.min(60_000, 10_000 + elapsedMs / 4);
}

/** The spans of writes. One span covers one write over all turns of work on its key. */
export class IntentSpans {
  readonly #tracing: Tracing;
  readonly #open = new Map<string, Span>();

  constructor(tracing: Tracing = untraced) {
    this.#tracing = tracing;
  }

  /** Runs one turn of work within the span of the write. The first turn begins the span. */
  within<Result>(
    { key, kind, verb }: Pick<Operation, 'key' | 'kind' | 'verb'>,
    turn: () => Promise<Result>,
  ): Promise<Result> {
    const attributes = { 'vdcsync.key': key, 'vdcsync.kind': kind, 'vdcsync.verb': verb };
    const span = this.#open.get(key) ?? this.#tracing.begin(`intent ${verb} ${kind}`, attributes);
    this.#open.set(key, span);
    return span.within(turn);
  }

  end({ key, outcome, requestId }: OperationResult): void {
    const span = this.#open.get(key);
    this.#open.delete(key);
    const request = requestId === undefined ? {} : { 'vdcsync.request_id': requestId };
    span?.set({ 'vdcsync.outcome': outcome, ...request });
    span?.end(outcome === 'done' ? undefined : outcome);
  }

  /** The work is over. A write that has not ended continues in a later run, in another span. */
  endAll(): void {
    for (const span of this.#open.values()) {
      span.set({ 'vdcsync.outcome': 'unresolved' });
      span.end();
    }
    this.#open.clear();
  }
}
