import type { Trigger } from '../../core/fleet.ts';
import type { ApplyReport } from '../../core/progress.ts';
import type { Condition } from '../../view/condition.ts';
import type { ReconciliationFacts } from '../../view/facts.ts';

/** The result of one reconciliation. Wall times are of the project's clock. */
export interface ReconciliationRecord extends ReconciliationFacts {
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
