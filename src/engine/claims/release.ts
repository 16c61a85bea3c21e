import type { Claim } from '../../core/claims.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { factsOf, isAddress } from '../../core/kind-facts.ts';
import type { Binding, StateChange } from '../../core/state.ts';
import { boundIn, type Run } from '../run.ts';

/**
 * The bindings that end with a resource that is gone: the network interfaces and firewall of a server, but not its
 * address.
 */
export function released(run: Run, key: ResourceKey, reason: string): StateChange[] {
  const children = boundIn(run, key).filter((each) => !factsOf(each.kind).independent);
  return [
    { type: 'release', key, gone: true, reason },
    ...children.map(
      (child) =>
        ({ type: 'release', key: child.key, gone: false, reason: 'deleted with its server' }) as const,
    ),
  ];
}

/**
 * The bindings that end when a resource stays but is managed no longer: the resources inside it, and its address too.
 * A resource that is billed separately is claimed as released.
 */
export function releasing(
  run: Run,
  key: ResourceKey,
  by: 'operator' | 'file',
  reason: string,
): StateChange[] {
  const own = run.bindings.get(key);
  const inside = boundIn(run, key);
  return [
    ...[key, ...inside.map((child) => child.key)].map(
      (each) => ({ type: 'release', key: each, gone: false, reason }) as const,
    ),
    ...(own === undefined ? [] : releasedClaim(run, own, by)),
    ...inside.flatMap((child) => releasedClaim(run, child, by, child.parentId)),
  ];
}

/**
 * The key is bound to another object: an earlier binding was wrong. The object goes back to the key that had it before,
 * or that was answered with it.
 */
export function exchanging(run: Run, key: ResourceKey, by: 'operator' | 'file', id: string): StateChange[] {
  return releasing(run, key, by, `bound to ${id} instead`).map((change): StateChange => {
    if (change.type !== 'claim' || change.claim.holder.is !== 'released') return change;
    const { holder } = change.claim;
    const earlier = [...(holder.formerKeys ?? [])];
    const before = earlier.pop();
    if (before === undefined) return change;
    const formerKeys = [holder.formerKey, ...earlier];
    return { ...change, claim: { ...change.claim, holder: { ...holder, formerKey: before, formerKeys } } };
  });
}

/**
 * The claim on a resource that stays, and that the key is not bound to.
 *
 * @param server the live id of the server that is released together with the resources inside it
 */
export function releasedClaim(
  { deps, world }: Run,
  binding: Pick<Binding, 'key' | 'kind' | 'id' | 'identity' | 'formerKeys' | 'recovered'> &
    Partial<Pick<Binding, 'applied'>>,
  by: 'operator' | 'file',
  server?: string,
): StateChange[] {
  const { key: formerKey, kind, id, formerKeys, recovered, applied } = binding;
  if (factsOf(kind).collection === undefined) return [];
  const address = isAddress(kind) ? (world.ip(id)?.address ?? binding.identity.address) : undefined;
  const claim: Claim = {
    ...{ kind, id, ...(server === undefined ? {} : { parentId: server }) },
    identity: address === undefined ? {} : { address },
    holder: {
      is: 'released',
      by,
      formerKey,
      ...(formerKeys && { formerKeys }),
      ...(recovered && { recovered }),
      ...(applied && { applied }),
    },
    at: deps.clock.now(),
  };
  return [{ type: 'claim', claim }];
}
