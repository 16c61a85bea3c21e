/** The input of the engine: the ports that the engine works through, and the options of one run. */

import type { Clock, Random } from '../core/clock.ts';
import type { HiddenTexts } from '../core/hidden-texts.ts';
import type { ResourceKind, World } from '../core/kind.ts';
import type { KindName } from '../core/kind-facts.ts';
import type { Operation, Plan, Selection } from '../core/plan.ts';
import type { ReadPort, TaskWatch, Tracing, WritePort } from '../core/ports.ts';
import type { ApiProfile } from '../core/profile.ts';
import type { ProgressEvent, RequestCounts } from '../core/progress.ts';
import type { StateStore } from '../core/state.ts';
import type { BilledHistory } from './month-cost.ts';
import type { ReadCache } from './observe.ts';
import type { Stopwatch } from './timing.ts';

/**
 * The engine touches the outside only through these ports. Demo, tests, simulation and production differ only here.
 */
export interface EngineDeps {
  /** `halt` aborts every read of the port. */
  readonly reads: (priority: 'operation' | 'evidence' | 'poll' | 'refresh', halt?: AbortSignal) => ReadPort;
  readonly writes: WritePort;
  readonly tasks: TaskWatch;
  /** Of the client behind `reads` and `writes`. */
  readonly hidden: HiddenTexts;
  readonly counts: () => RequestCounts;
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly kinds: ReadonlyMap<KindName, ResourceKind>;
  readonly profile: ApiProfile;
  /** The client's time-out for one request, in ms of `clock`. */
  readonly requestTimeoutMs: number;
  readonly onEvent?: (event: ProgressEvent) => void;
  readonly tracing?: Tracing;
}

/** The decisions of the caller about one apply: the plan, the applied part of it, and the end of the run. */
export interface ApplyOptions {
  /** Called with each plan that has operations no earlier question covered. `false` ends the run. */
  readonly approve: (plan: Plan) => Promise<boolean>;
  /** No operator reads the plans of later rounds. The next run handles deletions that the first plan did not show. */
  readonly unattended?: boolean;
  /** A saved plan, which is applied exactly. A different current plan throws `PlanStaleError`. */
  readonly saved?: Plan;
  /** Deletes all managed resources instead. */
  readonly destroy?: boolean;
  /** Aborted: settle the writes in flight, and start no new write. */
  readonly stop?: AbortSignal;
  /** Aborted: stop now. The next run settles the writes in flight. */
  readonly halt?: AbortSignal;
  readonly repeating?: Repeating;
  /** Applies only this part of the plan. */
  readonly selection?: Selection;
}

/** The objects that a process with many runs keeps from one run to the next. */
export interface Repeating {
  /**
   * Reads about the inside of servers come from the cache at any age: the caller refreshes them. Lists are read again
   * in each run.
   */
  readonly cache: ReadCache;
  /** The time from the refusal of a class of writes until a run sends one of them again, in ms. */
  readonly probeMs: number;
  /** Times that this process has measured itself: confirming an absence takes longer than many runs. */
  readonly stopwatch: Stopwatch;
  /** Outlives the session, so that the journal is not read for each run. */
  readonly billed?: BilledHistory;
  /**
   * The time to wait for tasks of earlier runs before the plan is made, in ms. The tasks then continue in parallel.
   */
  readonly settleMs: number;
  /** Left for a later run, together with the operations that need it: each operation that failed too often lately. */
  readonly isPaused?: (operation: Operation) => boolean;
  /** Called after each refresh of the project. */
  readonly onRefresh?: (world: World) => void;
}

/** The options of a plan that no apply follows, with the meaning that they have in {@link ApplyOptions}. */
export interface PlanOptions {
  readonly destroy?: boolean;
  readonly selection?: Selection;
  readonly repeating?: Repeating;
}

/** The decision of the operator about a write that evidence cannot settle. */
export type Resolution =
  | { readonly type: 'adopt'; readonly id: string }
  | { readonly type: 'absent' | 'retry' | 'abandon' };

/** The reason why this run sends no more writes of a class. */
export interface Pause {
  readonly code: string;
  readonly reason: string;
}
