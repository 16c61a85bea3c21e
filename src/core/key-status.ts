import { isInside, type ResourceKey } from './keys.ts';
import { type Blocked, type Plan, tellsDifference, type Warning } from './plan.ts';
import type { Binding, Intent } from './state.ts';

/**
 * The status of the resource that a key is bound to, for output; the worst comes last.
 *
 * - `converged`: matches the file
 * - `unknown`: vdcsync has not read the API
 * - `undeclared`: the resource, or the server that it is in, has left the file, so nothing is compared
 * - `differs`: the plan has an operation for the resource or deletes its server, or reports a difference from the file
 * - `in_flight`: a write of the resource is open
 * - `blocked`: manual decision needed
 * - `tainted`: the resource exists, but is not usable
 */
export const keyStatuses = [
  'converged',
  'unknown',
  'undeclared',
  'differs',
  'in_flight',
  'blocked',
  'tainted',
] as const;

export type KeyStatus = (typeof keyStatuses)[number];

/** The facts that decide a standing. */
export interface StatusFacts {
  readonly bindings: readonly Pick<Binding, 'key' | 'tainted'>[];
  /** Open ones. */
  readonly intents: readonly Pick<Intent, 'key' | 'phase'>[];
  readonly plan?: Plan | undefined;
  /** The blocked keys, where another source than the plan knows them. */
  readonly blocked?: readonly Pick<Blocked, 'key'>[];
}

export function keyStatusOf(key: ResourceKey, { bindings, intents, plan, ...facts }: StatusFacts): KeyStatus {
  const isOf = (each: { readonly key: ResourceKey | null }) => each.key === key;
  const blocked = facts.blocked ?? plan?.blocked ?? intents.filter(({ phase }) => phase === 'blocked');
  if (bindings.find(isOf)?.tainted !== undefined) return 'tainted';
  if (blocked.some(isOf)) return 'blocked';
  if (intents.some(isOf)) return 'in_flight';
  if (plan === undefined) return 'unknown';
  const ends = (each: Pick<Blocked, 'key' | 'verb'> & { readonly replacement?: unknown }) =>
    each.verb === 'delete' && each.replacement === undefined && isInside(key, each.key);
  if ([...plan.operations, ...plan.warnings.filter(tellsDifference)].some(isOf)) return 'differs';
  if (plan.operations.some(ends)) return 'differs';
  if (plan.blocked.some(ends)) return 'undeclared';
  return plan.warnings.some((each) => isUndeclared(key, each)) ? 'undeclared' : 'converged';
}

/** The warning of the newest backup covers older backups as well. */
function isUndeclared(key: ResourceKey, warning: Warning): boolean {
  if (warning.code !== 'no_longer_declared' || warning.key === null) return false;
  return key === warning.key || isInside(key, warning.key);
}
