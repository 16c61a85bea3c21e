import { ApiProblem, FenceError } from '../core/errors.ts';
import type { ResourceKey } from '../core/keys.ts';
import { isLeft, isWaiting, type Plan } from '../core/plan.ts';
import { TransportError } from '../core/transport.ts';

/**
 * The state of a project in one word: the first condition that applies.
 *
 * - `starting`: not reconciled yet
 * - `fenced`: the token belongs to another project; nothing is written
 * - `unauthorized`: the API does not accept the token
 * - `unreachable`: the API does not answer, or fails
 * - `failing`: reconciliations end with another error
 * - `waiting`: all that is left waits for a window under `settings.windows`
 * - `suspended`: nothing is changed while `settings.suspend` lasts
 * - `blocked`: an operation needs a manual decision, for a reason other than `paused`
 * - `awaiting_approval`: the plan waits for the operator (`settings.approval`)
 * - `paused`: the API refuses a class of writes
 * - `drifting`: the project differs from the spec, and nothing corrects it, because of the spec, the mode or the API
 * - `converging`: differences are being removed
 * - `converged`
 */
export const conditions = [
  'starting',
  'fenced',
  'unauthorized',
  'unreachable',
  'failing',
  'blocked',
  'awaiting_approval',
  'paused',
  'drifting',
  'converging',
  'waiting',
  'suspended',
  'converged',
] as const;

export type Condition = (typeof conditions)[number];

/**
 * How a condition ends.
 *
 * - `rest`: nothing is left to do, so it lasts until something changes
 * - `progress`: vdcsync ends it in normal operation
 * - `waits`: the API or an approval ends it, and vdcsync then continues
 * - `stuck`: it lasts until the spec, the token or the project is corrected
 */
export type Ending = 'rest' | 'progress' | 'waits' | 'stuck';

const endings: Readonly<Record<Condition, Ending>> = {
  starting: 'progress',
  fenced: 'stuck',
  unauthorized: 'stuck',
  unreachable: 'waits',
  failing: 'stuck',
  blocked: 'stuck',
  awaiting_approval: 'waits',
  paused: 'waits',
  drifting: 'stuck',
  converging: 'progress',
  waiting: 'rest',
  suspended: 'rest',
  converged: 'rest',
};

/** How a condition ends. A condition that this release does not know is in progress until a reconciliation replaces it. */
export function endingOf(condition: string | undefined): Ending {
  return endings[knownCondition(condition) ?? 'starting'];
}

/** A condition in the text that another process recorded. */
export function knownCondition(text: string | undefined): Condition | undefined {
  return conditions.find((each) => each === text);
}

/** Only another token helps. */
export function isHopeless(condition: Condition): boolean {
  return condition === 'unauthorized' || condition === 'fenced';
}

/** The result of the last reconciliation. */
export interface ConditionFacts {
  readonly plan: Plan | undefined;
  /** The error that ended the last reconciliation. */
  readonly error: unknown;
  readonly observing: boolean;
  /** Digest of the plan that waits for the operator. */
  readonly awaiting?: string | undefined;
  readonly pauses: readonly { readonly code: string }[];
}

export function conditionOf({ plan, error, observing, awaiting, pauses }: ConditionFacts): Condition {
  if (error !== undefined) return conditionOfError(error);
  if (plan === undefined) return 'starting';
  const suspended = plan.blocked.length > 0 && plan.blocked.every(({ code }) => code === 'suspended');
  if (suspended) return 'suspended';
  // A read that is refused pauses the writes of one reconciliation only.
  const held = new Set(['unauthorized', ...pauses.map(({ code }) => code)]);
  if (plan.blocked.some((each) => !held.has(each.code) && !isWaiting(each))) return 'blocked';
  if (awaiting !== undefined && plan.operations.length > 0) return 'awaiting_approval';
  const isHeld = plan.blocked.some(({ code }) => held.has(code));
  if (isHeld || (pauses.length > 0 && plan.operations.length + plan.blocked.length > 0)) return 'paused';
  if (plan.warnings.some(({ code }) => code === 'drift')) return 'drifting';
  // A write in flight is no longer an operation of the plan, and not done yet.
  if (isInFlight(plan)) return 'converging';
  if (waitsForWindow(plan)) return 'waiting';
  if (plan.operations.length + plan.blocked.length === 0)
    return plan.warnings.some(isLeft) ? 'drifting' : 'converged';
  if (observing) return 'drifting';
  return 'converging';
}

/** Whether a write, or a task of a write, had not ended when the plan was made. */
export function isInFlight({ warnings }: Plan): boolean {
  return warnings.some(({ code }) => code === 'in_flight');
}

/** Whether all that is left to do waits for a window under `settings.windows`. */
export function waitsForWindow(plan: Plan): boolean {
  const { operations, blocked } = plan;
  const isWindowed = blocked.length > 0 && blocked.every(({ starts_at }) => starts_at !== undefined);
  return isWindowed && operations.length === 0 && !isInFlight(plan);
}

function conditionOfError(error: unknown): Condition {
  if (error instanceof FenceError) return 'fenced';
  if (error instanceof TransportError) return 'unreachable';
  if (error instanceof ApiProblem)
    return error.status === 401 ? 'unauthorized' : error.status >= 500 ? 'unreachable' : 'failing';
  return 'failing';
}

/** All differences between project and spec, a line each: first those that no operation corrects. */
export function differences(plan: Plan | undefined): readonly string[] {
  return [...leftIn(plan), ...plannedIn(plan)];
}

export function leftIn(plan: Plan | undefined): readonly string[] {
  return (plan?.warnings ?? []).filter(isLeft).map(({ key, message }) => `${key}: ${message}`);
}

export function plannedIn(plan: Plan | undefined): readonly string[] {
  return (plan?.operations ?? []).map(({ verb, key }) => `${verb} ${key}`);
}

/** The exposed servers by a plan. */
export function exposedServers(plan: Pick<Plan, 'warnings'> | undefined): readonly ResourceKey[] {
  return (plan?.warnings ?? []).flatMap(({ code, key }) => (code === 'exposed' && key !== null ? [key] : []));
}
