import { type Claim, type HeldClaim, isHeldClaim } from '../../core/claims.ts';
import type { Desired, DesiredResource } from '../../core/desired.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Binding } from '../../core/state.ts';

type Bindings = ReadonlyMap<ResourceKey, Binding>;

/**
 * The line of an entry: every key under which its resource may have been bought. These are its own key first, the key
 * that its `moved` names, and the keys that the state once bound to the same object.
 *
 * A purchase needs proof that nothing of its line exists.
 */
export function lineOf(
  { key, moved }: Pick<DesiredResource, 'key' | 'moved'>,
  bindings: Bindings,
  claims: Iterable<Claim>,
): ReadonlySet<ResourceKey> {
  const line = new Set([key, ...(moved === undefined ? [] : [moved])]);
  for (const each of bindings.get(key)?.formerKeys ?? []) line.add(each);
  for (const { holder } of claims) {
    if (holder.is !== 'released') continue;
    const keys = [holder.formerKey, ...(holder.formerKeys ?? [])];
    if (keys.some((each) => line.has(each))) for (const each of keys) line.add(each);
  }
  return line;
}

/**
 * The file, in which each entry without a binding takes back the object of its line: the object that its idempotency
 * key was answered with, or the object that was last released from it. The plan shows the adoption.
 *
 * Under `unmanaged: ignore`, an answered key shows an object of another file.
 */
export function withHeldObjects(
  desired: Desired,
  claims: ReadonlyMap<string, Claim>,
  bindings: Bindings,
): Desired {
  const held = [...claims.values()].filter(isHeldClaim);
  if (held.length === 0) return desired;
  const ignoresAll = desired.settings.unmanaged === 'ignore';
  const resources = desired.resources.map((each): DesiredResource => {
    if (!each.managed || each.id !== undefined || each.parent !== undefined || bindings.has(each.key))
      return each;
    const claim = objectOf(each, held, bindings);
    const isIgnored = claim?.holder.is === 'found' && ignoresAll && factsOf(each.kind).bought;
    if (claim === undefined || isIgnored) return each;
    const { id, identity, holder } = claim;
    return { ...each, id, held: { by: holder.is, identity } };
  });
  return { ...desired, resources };
}

/** The object of the entry's line that no key is bound to. An answer under the key goes before a release. */
function objectOf(
  entry: Pick<DesiredResource, 'key' | 'kind' | 'moved'>,
  held: readonly HeldClaim[],
  bindings: Bindings,
): HeldClaim | undefined {
  const line = lineOf(entry, bindings, held);
  const own = held.filter(({ kind, holder }) => {
    const key = holder.is === 'found' ? holder.key : holder.formerKey;
    return kind === entry.kind && line.has(key);
  });
  return latest(own.filter(({ holder }) => holder.is === 'found')) ?? latest(own);
}

function latest(claims: readonly HeldClaim[]): HeldClaim | undefined {
  return [...claims].sort((one, other) => other.at - one.at)[0];
}
