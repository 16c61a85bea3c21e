import { messageOf } from '../../core/errors.ts';
import { isWaiting, type Plan } from '../../core/plan.ts';
import { command, newToken, outside, type Remedy, remedyText } from '../../core/remedy.ts';
import { escapeUnseen, linesText } from '../../core/text.ts';
import { shortDigest } from '../../engine/run/approval.ts';
import { type Condition, leftIn, plannedIn } from '../../view/condition.ts';
import { approvalLines, driftLines } from './drift.ts';

/** The events of a project other than a condition, each as the rest of a sentence about the project. */
export const titles = {
  drift: 'was changed outside vdcsync',
  exposed: 'has exposed servers: each has a public address, and its firewall is not in force',
  not_exposed: 'has no exposed server any more',
  unmanaged: 'has resources that are billed and not managed',
  expiring: 'has resources that expire',
  capacity_found: 'has found the graphics cards for a waiting server',
  spec_broken: 'has a broken spec, so the newest edit has no effect',
  returned: 'has returned to the last spec that converged, because its newest spec was refused',
  spec_valid: 'has a valid spec again',
} as const;

/** An event that the operator should be notified of, once. */
export type Notification =
  | {
      readonly project: number;
      readonly event: 'condition';
      readonly condition: Condition;
      readonly detail: string;
      /** The commands or edits that settle it. */
      readonly resolve: readonly string[];
      readonly remedies: readonly Remedy[];
    }
  | {
      /**
       * 0 if the project of the spec is not known yet, and for the source of many projects or a change of many
       * projects.
       */
      readonly project: number;
      readonly event: keyof typeof titles | 'source' | 'rollout';
      readonly detail: string;
    };

/**
 * The fields of a notification about a condition.
 *
 * @param isAsked whether the operations of the plan wait for approval; the condition may name a more urgent fact
 */
export function notificationOf(
  condition: Condition,
  plan: Plan | undefined,
  error: unknown,
  flags = '',
  isAsked = false,
): Pick<Extract<Notification, { event: 'condition' }>, 'detail' | 'resolve' | 'remedies'> {
  const content = contentOf(condition, plan, error);
  const isBeside = isAsked && plan !== undefined && condition !== 'awaiting_approval';
  const asked = isBeside ? linesText(['A plan waits for your approval:', ...approvalLines(plan)]) : '';
  const detail = [content.detail, asked].filter((part) => part !== '').join('\n');
  const remedies = [...(content.remedies ?? []), ...(isBeside ? approvalOf(plan) : [])];
  return { detail, remedies, resolve: remedies.map((each) => escapeUnseen(remedyText(each, flags))) };
}

function contentOf(
  condition: Condition,
  plan: Plan | undefined,
  error: unknown,
): { readonly detail: string; readonly remedies?: readonly Remedy[] } {
  const blocked = (plan?.blocked ?? []).filter((each) => condition !== 'blocked' || !isWaiting(each));
  switch (condition) {
    case 'blocked':
    case 'paused':
    case 'waiting':
    case 'suspended':
      return {
        detail: linesText(linesOf(blocked)),
        remedies: distinct(blocked.flatMap(({ remedies }) => remedies)),
      };
    case 'awaiting_approval':
      return { detail: linesText(plan === undefined ? [] : approvalLines(plan)), remedies: approvalOf(plan) };
    case 'drifting':
      return { detail: linesText([...leftIn(plan), ...driftLines(plan?.operations ?? [])]) };
    case 'converging':
      return { detail: linesText(plannedIn(plan)) };
    case 'converged':
    case 'starting':
      return { detail: '' };
    case 'unauthorized':
    case 'fenced':
    case 'unreachable':
    case 'failing':
      return { detail: linesText([messageOf(error)]), remedies: waysOfError(condition) };
  }
}

/** One line for each reason, because all operations of a plan may be blocked for the same reason. */
function linesOf(blocked: Plan['blocked']): readonly string[] {
  const byReason = Map.groupBy(blocked, ({ reason }) => reason);
  return [...byReason].map(([reason, found]) => `${found.map(({ key }) => key).join(', ')}: ${reason}`);
}

function distinct(remedies: readonly Remedy[]): readonly Remedy[] {
  return [...new Map(remedies.map((each) => [JSON.stringify(each), each])).values()];
}

/** The ways out of a condition that comes from an error. */
export function waysOfError(condition: Condition): readonly Remedy[] {
  return condition === 'unauthorized' || condition === 'fenced'
    ? [outside(newTokenForDaemon), doctor]
    : [doctor];
}

/** The command that approves the plan. */
export function approvalOf(plan: Pick<Plan, 'digest'> | undefined): readonly Remedy[] {
  return plan === undefined ? [] : [command('approve', [shortDigest(plan.digest)])];
}

const doctor = command('doctor', [], { when: 'to check connection, token, project and state' });

const newTokenForDaemon = `${newToken}. vdcsync tries a new token in a file at once. After you set VDC_TOKEN, restart vdcsync`;
