import type { ResourceKey } from './keys.ts';
import type { Blocked, Operation, Plan, Verb, Warning } from './plan.ts';
import type { Remedy } from './remedy.ts';
import type { TaskId } from './resources.ts';

/** The events that a run reports. `at` is wall time in ms. */
export type ProgressEvent =
  /** A fresh refresh of the project; `round` counts from 1. */
  | { readonly type: 'planned'; readonly at: number; readonly round: number; readonly plan: Plan }
  | { readonly type: 'started'; readonly at: number; readonly operation: Operation }
  /**
   * The present step of an operation: `untilMs` is the known or usual end of the wait, and `deadlineMs`
   * the time at which vdcsync stops waiting. Wall time.
   */
  | {
      readonly type: 'progress';
      readonly at: number;
      readonly key: ResourceKey;
      readonly verb: Verb;
      readonly step: Step;
      readonly detail: string;
      readonly untilMs?: number;
      readonly deadlineMs?: number;
      /** Of the refusal that is waited out. */
      readonly code?: string;
    }
  | { readonly type: 'ended'; readonly at: number; readonly result: OperationResult }
  | { readonly type: 'warning'; readonly at: number; readonly warning: Warning };

/**
 * `queued`: for its turn and the write budget · `sent` · `task`: the API works · `failed`: its task failed, and the
 * operation continues · `checking`: reads decide · `waiting`: back-off.
 */
export type Step = 'queued' | 'sent' | 'task' | 'failed' | 'checking' | 'waiting';

/** The end of one operation in this run. `code`: of vdcsync or of the API; a successful operation has none. */
export interface OperationResult {
  readonly key: ResourceKey;
  readonly verb: Verb;
  /** `unresolved`: interrupted; the next run continues from here. */
  readonly outcome: 'done' | 'blocked' | 'failed' | 'unresolved';
  readonly durationMs: number;
  /** Of the last answer, for the API's support. */
  readonly requestId?: string;
  readonly code?: string;
  readonly detail?: string;
  /** Of an interrupted operation: the task that continues without vdcsync. */
  readonly taskId?: TaskId;
  /** The remedies of a blocked operation, for the time until its cause is gone. */
  readonly remedies?: readonly Remedy[];
  /** Of a firewall: how long its server was exposed before the operation, in ms. */
  readonly exposedMs?: number;
}

/** The requests that a client has sent. The API limits reads and writes separately. @source API §8 */
export interface RequestCounts {
  readonly reads: number;
  readonly writes: number;
  /** Reads of tasks, counted in `reads` as well. */
  readonly polls: number;
  /** Questions to idempotency keys, which the API must refuse; counted in `writes` as well. */
  readonly probes: number;
  /** Answers 429. */
  readonly throttled: number;
}

/** The result of one apply, for the exit code, the output and the notifications. */
export interface ApplyReport {
  /** `stopped`: by the operator at the terminal; `declined`: they said no to the plan. */
  readonly outcome: 'converged' | 'blocked' | 'failed' | 'stopped' | 'declined';
  readonly results: readonly OperationResult[];
  /** The remaining plan, from the last refresh; without operations if converged. */
  readonly plan: Plan;
  readonly blocked: readonly Blocked[];
  readonly requests: RequestCounts;
  readonly durationMs: number;
}
