import type { Claim } from '../../core/claims.ts';
import type { Desired } from '../../core/desired.ts';
import type { Diagnostic } from '../../core/errors.ts';
import type { World } from '../../core/kind.ts';
import type { Blocked, Plan } from '../../core/plan.ts';
import type { ApplyReport, RequestCounts } from '../../core/progress.ts';
import type { Binding, Intent, StateInfo } from '../../core/state.ts';
import type { LeftBackups } from '../../engine/claims/left-backups.ts';
import type { Mode, Trigger } from '../ports.ts';
import type { BackOff } from '../scheduling/back-off.ts';
import type { ShownPause } from '../scheduling/pauses.ts';
import type { Commit } from '../sources/source.ts';
import type { InFlight } from './activity.ts';
import type { Condition } from './condition.ts';

/** The desired state of a project, and its origin. */
export interface Offer {
  readonly desired: Desired;
  readonly files: readonly string[];
  readonly commit: Commit | undefined;
}

/** The result of one reconciliation. Wall times are of the project's clock. */
export interface ReconciliationRecord {
  readonly number: number;
  readonly triggers: readonly Trigger[];
  readonly startedAt: number;
  readonly endedAt: number;
  /** A plan that is not applied either waits for an approval, or the check command has refused it. */
  readonly outcome:
    | Exclude<ApplyReport['outcome'], 'declined'>
    | 'awaiting_approval'
    | 'check_refused'
    | 'observed'
    | 'error';
  /** The number of operations that ended, with success or without. */
  readonly operations: number;
  /** The number of operations that are done or failed. Operations that are postponed do not count. */
  readonly settled: number;
  readonly commit: string | undefined;
}

/** All facts about a project at one moment: the input of status, page and metrics. */
export interface ProjectFacts {
  readonly id: number;
  readonly mode: Mode;
  readonly intervalMs: number;
  /** The data of the state and the client. Absent until the state is open. */
  readonly known: Known | undefined;
  readonly offer: Offer | undefined;
  /** The reasons why the newest spec cannot be used. Empty if it can be used. */
  readonly problem: readonly Diagnostic[];
  /** When the newest spec became unusable. */
  readonly problemSince: number | undefined;
  readonly plan: Plan | undefined;
  readonly world: World | undefined;
  readonly refreshedAt: number | undefined;
  /** The error that ended the last reconciliation. */
  readonly error: unknown;
  /** The owner of the state that this process waits for. */
  readonly waitingFor: string | undefined;
  readonly condition: Condition;
  readonly conditionSince: number | undefined;
  readonly reconciling: boolean;
  readonly reconciliations: number;
  readonly lastReconciliation: ReconciliationRecord | undefined;
  readonly nextReconciliationAt: number | undefined;
  /** The time since which the project has differed from the file. */
  readonly differsSince: number | undefined;
  readonly inFlight: readonly InFlight[];
  readonly pauses: readonly ShownPause[];
  /** When each blocked entry was first seen, by {@link blockedName}. */
  readonly blockedSince: ReadonlyMap<string, number>;
  /** When an address was first seen without a server, by the id of the address. */
  readonly idleSince: ReadonlyMap<number, number>;
  /** The flags that select this project in a command. */
  readonly flags: string;
}

export interface Known {
  /** The project's clock. */
  readonly now: number;
  readonly info: StateInfo;
  readonly bindings: readonly Binding[];
  readonly intents: readonly Intent[];
  /** Backups of deleted servers, which are still billed. */
  readonly leftBackups: readonly LeftBackups[];
  readonly claims: readonly Claim[];
  /** The last writes, newest first. */
  readonly history: readonly Intent[];
  readonly limits: { readonly windowMs: number; readonly reads: number; readonly writes: number };
  readonly used: { readonly reads: number; readonly writes: number };
  readonly counts: RequestCounts;
  /** Age in ms of the oldest answer about a server that this data is based on. */
  readonly oldestReadMs: number;
  readonly backOff: readonly BackOff[];
}

/** A project as a line of the overview. Wall times are of the project's clock. */
export interface ProjectSummary {
  readonly id: number;
  readonly name: string | undefined;
  readonly condition: Condition;
  readonly since: number | undefined;
  readonly now: number;
  /** When the last reconciliation ended. Absent before the first one of this process. */
  readonly reconciledAt: number | undefined;
  /** How many entries are blocked. */
  readonly blocked: number;
  /** A server is public, and its firewall is not in place. */
  readonly exposed: boolean;
  /** Something is billed that no entry of the file asks for. */
  readonly leaking: boolean;
  /** The newest spec cannot be used. */
  readonly broken: boolean;
}

/** The result of the spec in force. */
export interface ProjectResult {
  readonly id: number;
  readonly condition: Condition;
  /** The reasons why the newest spec cannot be used. Empty if it can be used. */
  readonly problem: readonly Diagnostic[];
  /** The commit of the last reconciliation that was not cut short. */
  readonly reconciled: string | undefined;
  /** Counts of the first plan for the spec in force. */
  readonly planned: Plan['summary'] | undefined;
  readonly blocked: readonly Blocked[];
  /** The daemon only observes. */
  readonly observing: boolean;
}
