/** What the engine is handed: the ports it works through, and what is asked of one run. */

import type { Clock } from '../core/clock.ts';
import type { KindName } from '../core/keys.ts';
import type { ResourceKind, World } from '../core/kind.ts';
import type { Operation, Plan, Selection } from '../core/plan.ts';
import type { ReadPort, TaskWatch, WritePort } from '../core/ports.ts';
import type { ApiProfile } from '../core/profile.ts';
import type { ProgressEvent, RequestCounts } from '../core/progress.ts';
import type { Random } from '../core/random.ts';
import type { StateStore } from '../core/state.ts';
import type { Tracing } from '../core/tracing.ts';
import type { Stopwatch } from './intents/stopwatch.ts';
import type { ReadCache } from './read-cache.ts';

/** Everything the engine touches; demo, tests, simulation and production differ only here. */
export interface EngineDeps {
  /** `halt` gives up on every read of the port. */
  readonly reads: (priority: 'poll' | 'operation' | 'refresh', halt?: AbortSignal) => ReadPort;
  readonly writes: WritePort;
  readonly tasks: TaskWatch;
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

export interface ApplyOptions {
  /** Asked with each plan that has operations not asked about before; `false` ends the run. */
  readonly approve: (plan: Plan) => Promise<boolean>;
  /** Nobody reads the plans of later rounds: what they delete and the first did not show is left to the next run. */
  readonly unattended?: boolean;
  /** A saved plan: carried out exactly, or `PlanStaleError`. */
  readonly saved?: Plan;
  /** Deletes all that is managed instead. */
  readonly destroy?: boolean;
  /** Aborted: settle what is in flight, start nothing new. */
  readonly stop?: AbortSignal;
  /** Aborted: stop now; what is in flight is settled by the next run. */
  readonly halt?: AbortSignal;
  readonly repeating?: Repeating;
  /** Carries out this part of the plan alone. */
  readonly selection?: Selection;
}

/** What a process that runs again and again keeps from one run to the next. */
export interface Repeating {
  /** What is inside servers is taken from it however old; whoever hands it in refreshes it. Lists are read anew. */
  readonly cache: ReadCache;
  /** Classes of writes that the API refuses, by scope or by a write's name; outlives the run that met the refusal. */
  readonly holds: Map<string, Hold>;
  /** What this process has timed itself: absence takes longer than many a run. */
  readonly stopwatch: Stopwatch;
  /** How long tasks of earlier runs are waited for before the plan is made, in ms; they go on beside it. */
  readonly settleMs: number;
  /** Left for a later run, and what needs it with it: whatever failed too often lately. */
  readonly withholds?: (operation: Operation) => boolean;
  /** Told every look at the project. */
  readonly onLook?: (world: World) => void;
}

export interface PlanOptions {
  readonly destroy?: boolean;
  readonly selection?: Selection;
  readonly repeating?: Repeating;
}

/** An operator's word on a write that evidence cannot settle. */
export type Resolution =
  | { readonly type: 'adopt'; readonly id: string }
  | { readonly type: 'absent' }
  | { readonly type: 'abandon' };

/** Why nothing of a class is sent any more in this run. */
export interface Hold {
  readonly code: string;
  readonly reason: string;
}
