import { isInside, type ResourceKey } from './keys.ts';
import { type Blocked, type Plan, tellsDifference, type Warning } from './plan.ts';
import type { Binding, Intent } from './state.ts';

/**
 * How what a key stands for is, for people; the worst comes last.
 *
 * - `converged`: as the file says
 * - `unknown`: the API was not looked at
 * - `undeclared`: its server's entry does not name it any more, so nothing is compared
 * - `differs`: the plan has an operation on it, or tells that it is not as the file says
 * - `in_flight`: a write of it is open
 * - `blocked`: it waits for an operator
 * - `tainted`: it is there, and of no use
 */
export const standings = [
  'converged',
  'unknown',
  'undeclared',
  'differs',
  'in_flight',
  'blocked',
  'tainted',
] as const;

export type Standing = (typeof standings)[number];

/** What a standing is read from. */
export interface StandingFacts {
  readonly bindings: readonly Pick<Binding, 'key' | 'tainted'>[];
  /** Open ones. */
  readonly intents: readonly Pick<Intent, 'key' | 'phase'>[];
  readonly plan?: Plan | undefined;
  /** What is blocked, where that is known from elsewhere than the plan. */
  readonly blocked?: readonly Pick<Blocked, 'key'>[];
}

export function standingOf(key: ResourceKey, { bindings, intents, plan, ...facts }: StandingFacts): Standing {
  const isOf = (each: { readonly key: ResourceKey | null }) => each.key === key;
  const blocked = facts.blocked ?? plan?.blocked ?? intents.filter(({ phase }) => phase === 'blocked');
  if (bindings.find(isOf)?.tainted !== undefined) return 'tainted';
  if (blocked.some(isOf)) return 'blocked';
  if (intents.some(isOf)) return 'in_flight';
  if (plan === undefined) return 'unknown';
  if ([...plan.operations, ...plan.warnings.filter(tellsDifference)].some(isOf)) return 'differs';
  return plan.warnings.some((each) => isUndeclared(key, each)) ? 'undeclared' : 'converged';
}

/** Older backups are told of with the newest. */
function isUndeclared(key: ResourceKey, warning: Warning): boolean {
  if (warning.code !== 'no_longer_declared' || warning.key === null) return false;
  return key === warning.key || isInside(key, warning.key);
}
