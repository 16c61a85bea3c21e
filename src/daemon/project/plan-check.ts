import type { Desired } from '../../core/desired.ts';
import type { Trigger } from '../../core/fleet.ts';
import type { Blocked, Plan } from '../../core/plan.ts';
import { outside, type Remedy, resolveText } from '../../core/remedy.ts';
import { shortDigest } from '../../engine/run/approval.ts';
import { withFindings } from '../../engine/run/findings.ts';
import type { DaemonDeps } from '../ports.ts';

/** Triggers with which the operator asks for another check of the same plan. */
const operators: ReadonlySet<Trigger> = new Set(['signal', 'start']);

/**
 * Asks the command of the operator about each plan before any of its operations is carried out. The command is not asked
 * again about a plan that it has refused, until the plan changes or the operator asks for it.
 */
export class PlanCheck {
  readonly #deps: Pick<DaemonDeps, 'checkPlan' | 'log'>;
  #refused: { readonly digest: string; readonly reason: string } | undefined;

  constructor(deps: Pick<DaemonDeps, 'checkPlan' | 'log'>) {
    this.#deps = deps;
  }

  /** Called when a reconciliation begins. */
  begin(triggers: readonly Trigger[]): void {
    if (triggers.some((each) => operators.has(each))) this.#refused = undefined;
  }

  /** Whether the plan may be carried out. After `halt`, the answer is no verdict. */
  async accepts(plan: Plan, { token }: Pick<Desired, 'token'>, halt: AbortSignal): Promise<boolean> {
    const { checkPlan, log } = this.#deps;
    if (checkPlan === undefined || plan.operations.length === 0) return true;
    if (this.#refused?.digest === plan.digest) return false;
    const reason = await checkPlan(plan, token, halt);
    if (halt.aborted) return false;
    this.#refused = reason === undefined ? undefined : { digest: plan.digest, reason };
    if (reason !== undefined) {
      const fields = { digest: shortDigest(plan.digest), reason, resolve: resolveText([remedyFor(plan)]) };
      log.warn(fields, 'plan refused by the check command');
    }
    return reason === undefined;
  }

  /** The plan with its operations blocked, if the command has refused the plan. */
  blocked(plan: Plan): Plan {
    const refused = this.#refused;
    if (refused?.digest !== plan.digest) return plan;
    const remedies = [remedyFor(plan)];
    const { reason } = refused;
    const entries = plan.operations.map(
      ({ key, verb }): Blocked => ({ key, verb, code: 'check_refused', reason, remedies }),
    );
    return withFindings(plan, entries);
  }
}

function remedyFor({ digest }: Plan): Remedy {
  return outside(
    `change the spec, or the policy that refuses the plan ${shortDigest(digest)}. After a change of the policy, send SIGHUP: the daemon checks a plan only once`,
  );
}
