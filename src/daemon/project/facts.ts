import type { Diagnostic } from '../../core/errors.ts';
import type { Blocked, Plan } from '../../core/plan.ts';
import type { ApplyReport } from '../../core/progress.ts';
import type { Condition } from '../../view/condition.ts';
import type { ReconciliationFacts, SpecFacts } from '../../view/facts.ts';
import type { Trigger } from '../ports.ts';
import type { Commit } from '../sources/source.ts';

/** The desired state of a project, and its origin. */
export interface Offer extends SpecFacts {
  readonly commit: Commit | undefined;
}

/** The result of one reconciliation. Wall times are of the project's clock. */
export interface ReconciliationRecord extends ReconciliationFacts {
  readonly number: number;
  readonly triggers: readonly Trigger[];
  /** A plan that is not applied either waits for an approval, or the check command has refused it. */
  readonly outcome:
    | Exclude<ApplyReport['outcome'], 'declined'>
    | 'awaiting_approval'
    | 'check_refused'
    | 'observed'
    | 'error';
  /** The number of operations that are done or failed. Operations that are postponed do not count. */
  readonly settled: number;
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
  /** How many keys need a decision. */
  readonly blocked: number;
  /** A server is public, and its firewall is not in place. */
  readonly exposed: boolean;
  /** Something is billed that no entry of the spec asks for. */
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
}
