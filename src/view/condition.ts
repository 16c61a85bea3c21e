import { ApiProblem, FenceError } from '../core/errors.ts';
import { namesIn } from '../core/json.ts';
import type { ResourceKey } from '../core/keys.ts';
import { isLeft, isWaiting, type Plan } from '../core/plan.ts';
import { TransportError } from '../core/transport.ts';

/**
 * How a condition ends.
 *
 * - `rest`: nothing is left to do, so it lasts until something changes
 * - `progress`: vdcsync ends it in normal operation
 * - `waits`: the API or an approval ends it, and vdcsync then continues
 * - `stuck`: it lasts until the spec, the token or the project is corrected
 */
export type Ending = 'rest' | 'progress' | 'waits' | 'stuck';

/** How urgent something is. */
export type Level = 'bad' | 'warn' | 'busy' | 'good' | 'dim';

interface ConditionNature {
  readonly ending: Ending;
  readonly level: Level;
  /** The part of a sentence after the word of the condition. */
  readonly means: string;
}

/** The state of a project in one word: the first condition that applies. */
const natures = {
  starting: { ending: 'progress', level: 'dim', means: '' },
  fenced: { ending: 'stuck', level: 'bad', means: ': the token belongs to another project' },
  unauthorized: { ending: 'stuck', level: 'bad', means: ': the API refuses the token' },
  unreachable: { ending: 'waits', level: 'bad', means: ': the API does not answer' },
  failing: { ending: 'stuck', level: 'bad', means: ': the last reconciliation ended with an error' },
  blocked: { ending: 'stuck', level: 'bad', means: ': a manual decision is needed' },
  awaiting_approval: { ending: 'waits', level: 'warn', means: ': a plan waits for your approval' },
  paused: {
    ending: 'waits',
    level: 'warn',
    means: ': the API refuses some writes, and vdcsync does not send them again yet',
  },
  drifting: {
    ending: 'stuck',
    level: 'warn',
    means: ': the project differs from its spec, and vdcsync only reports the difference',
  },
  converging: { ending: 'progress', level: 'busy', means: '' },
  waiting: {
    ending: 'rest',
    level: 'busy',
    means: ': the next change starts when a window under `settings.windows` opens',
  },
  suspended: { ending: 'rest', level: 'warn', means: ': `settings.suspend` stops all changes' },
  converged: { ending: 'rest', level: 'good', means: ' again' },
} as const satisfies Readonly<Record<string, ConditionNature>>;

export type Condition = keyof typeof natures;

export const conditions = namesIn(natures);

export function levelOf(condition: Condition): Level {
  return natures[condition].level;
}

/** The condition as a sentence, with its word in status and metrics: `is blocked: a manual decision is needed`. */
export function sentenceOf(condition: Condition): string {
  return `is ${condition.replaceAll('_', ' ')}${natures[condition].means}`;
}

/** How a condition ends. A condition that this release does not know is in progress until a reconciliation replaces it. */
export function endingOf(condition: string | undefined): Ending {
  return natures[knownCondition(condition) ?? 'starting'].ending;
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
  const pauseCodes = new Set(['unauthorized', ...pauses.map(({ code }) => code)]);
  if (plan.blocked.some((each) => !pauseCodes.has(each.code) && !isWaiting(each))) return 'blocked';
  if (awaiting !== undefined && plan.operations.length > 0) return 'awaiting_approval';
  const isPaused = plan.blocked.some(({ code }) => pauseCodes.has(code));
  if (isPaused || (pauses.length > 0 && plan.operations.length + plan.blocked.length > 0)) return 'paused';
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
export function exposedKeys(plan: Pick<Plan, 'warnings'> | undefined): readonly ResourceKey[] {
  return (plan?.warnings ?? []).flatMap(({ code, key }) => (code === 'exposed' && key !== null ? [key] : []));
}
