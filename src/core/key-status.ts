import { containersOf, type ResourceKey, retiredFrom } from './keys.ts';
import { type Blocked, isWaiting, type Plan, reportsDifference } from './plan.ts';
import type { Binding, Intent } from './state.ts';

/**
 * The status of the resource that a key is bound to, for output; the worst comes last.
 *
 * - `converged`: matches the spec
 * - `unknown`: vdcsync has not read the API
 * - `undeclared`: the resource, or the server that it is in, has left the spec, so nothing is compared
 * - `pending`: the plan has an operation for the resource, or deletes its server
 * - `differs`: vdcsync reports a difference from the spec, and does not correct it
 * - `retiring`: a new server has its key, and it is deleted once the new server is complete
 * - `in_flight`: a write of the resource is open
 * - `waiting`: the operation of the resource, or of the server that it is in, continues after another one
 * - `blocked`: manual decision needed
 * - `tainted`: the resource exists, but is not usable
 */
export const keyStatuses = [
  'converged',
  'unknown',
  'undeclared',
  'pending',
  'differs',
  'retiring',
  'in_flight',
  'waiting',
  'blocked',
  'tainted',
] as const;

/** The status that `status`, the page and the metrics show for a key; {@link keyStatuses} explains each value. */
export type KeyStatus = (typeof keyStatuses)[number];

/** The facts that decide a standing. */
export interface StatusFacts {
  readonly bindings: readonly Pick<Binding, 'key' | 'tainted'>[];
  /** Open ones. */
  readonly intents: readonly Pick<Intent, 'key' | 'phase'>[];
  readonly plan?: Plan | undefined;
  /** The blocked keys, where another source than the plan knows them. */
  readonly blocked?: readonly Pick<Blocked, 'key' | 'verb' | 'code' | 'remedies'>[];
  /** Whether the plan is only reported. */
  readonly observing?: boolean | undefined;
}

/** The status of each key. The facts are indexed once: a project has thousands of keys. */
export function keyStatusesOf({
  bindings,
  intents,
  plan,
  ...facts
}: StatusFacts): (key: ResourceKey) => KeyStatus {
  const found = facts.blocked ?? plan?.blocked ?? [];
  const isStuck = plan === undefined && facts.blocked === undefined;
  const tainted = keysOf(bindings.filter((each) => each.tainted !== undefined));
  const blocked = keysOf([
    ...found.filter((each) => !isWaiting(each)),
    ...intents.filter(({ phase }) => isStuck && phase === 'blocked'),
  ]);
  const waiting = keysOf(found.filter(isWaiting));
  // The parts of a server that does not exist wait for it.
  const absent = keysOf(found.filter(({ verb }) => verb === 'create' || verb === 'adopt'));
  const open = keysOf(intents);
  const planned = keysOf(plan?.operations ?? []);
  const differing = keysOf((plan?.warnings ?? []).filter(reportsDifference));
  const ending = keysOf((plan?.operations ?? []).filter(ends));
  const endBlocked = keysOf((plan?.blocked ?? []).filter(ends));
  const undeclared = keysOf((plan?.warnings ?? []).filter(({ code }) => code === 'no_longer_declared'));
  return (key) => {
    if (tainted.has(key)) return 'tainted';
    if (blocked.has(key)) return 'blocked';
    if (waiting.has(key)) return 'waiting';
    if (open.has(key)) return 'in_flight';
    if (retiredFrom(key) !== undefined) return 'retiring';
    if (plan === undefined) return 'unknown';
    const containers = containersOf(key);
    const isWithin = (keys: ReadonlySet<ResourceKey | null>) => containers.some((each) => keys.has(each));
    if (differing.has(key)) return 'differs';
    if (planned.has(key) || isWithin(ending)) return facts.observing ? 'differs' : 'pending';
    if (isWithin(absent)) return 'waiting';
    // The warning of the newest backup covers older backups as well.
    return isWithin(endBlocked) || undeclared.has(key) || isWithin(undeclared) ? 'undeclared' : 'converged';
  };
}

function keysOf(parts: readonly { readonly key: ResourceKey | null }[]): ReadonlySet<ResourceKey | null> {
  return new Set(parts.map(({ key }) => key));
}

/** Whether the operation ends its resource, and every resource inside. */
function ends(each: Pick<Blocked, 'verb'> & { readonly replacement?: unknown }): boolean {
  return each.verb === 'delete' && each.replacement === undefined;
}
