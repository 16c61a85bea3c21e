import type { Claim } from '../../core/claims.ts';
import type { Desired, DesiredResource } from '../../core/desired.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Binding } from '../../core/state.ts';

/** How long a key replays its answer. @source API §8 */
const keyLifeMs = 24 * 3_600_000;

/** Adds to the entries the ids that were found under their keys, unless the key is bound or the answer is too old. */
export function withFound(
  desired: Desired,
  claims: Iterable<Claim>,
  bindings: ReadonlyMap<ResourceKey, Binding>,
  now: number,
): Desired {
  const found = new Map(
    [...claims].flatMap((claim) =>
      claim.holder.is === 'found' && Math.abs(now - claim.at) <= keyLifeMs
        ? [[claim.holder.key, claim.id] as const]
        : [],
    ),
  );
  if (found.size === 0) return desired;
  const ignoresAll = desired.settings.unmanaged === 'ignore';
  const resources = desired.resources.map((each): DesiredResource => {
    const id = found.get(each.key);
    const isIgnored = ignoresAll && factsOf(each.kind).bought;
    if (id === undefined || each.id !== undefined || bindings.has(each.key) || isIgnored) return each;
    return { ...each, id, found: true };
  });
  return { ...desired, resources };
}
