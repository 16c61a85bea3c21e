import { type Claim, type HeldClaim, isHeldClaim, objectName } from '../../core/claims.ts';
import type { Desired, DesiredResource } from '../../core/desired.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { Binding, Intent } from '../../core/state.ts';

type Line = ReadonlySet<ResourceKey>;

interface Known {
  readonly desired: Pick<Desired, 'resources' | 'scope'>;
  readonly bindings: ReadonlyMap<ResourceKey, Binding>;
  readonly claims: Iterable<Claim>;
  /** The open writes. */
  readonly intents?: Iterable<Intent>;
}

/**
 * The lines of the entries of a spec. The line of an entry has every key under which its resource may have been bought:
 * its own key first, the key that its `moved` names, and each key that ever had an object in common with a key of the
 * line. Another entry of the spec, and an object that is bound to it, belong to the line of that entry alone.
 *
 * A purchase needs proof that nothing of its line exists.
 */
export class Lines {
  readonly #entries: readonly DesiredResource[];
  readonly #bindings: Known['bindings'];
  readonly #declared: Line;
  readonly #held: readonly HeldClaim[];
  #taken: ReadonlyMap<ResourceKey, HeldClaim> | undefined;
  /** The keys of each object, by each of these keys. */
  readonly #together: ReadonlyMap<ResourceKey, readonly (readonly ResourceKey[])[]>;

  constructor({ desired, bindings, claims, intents = [] }: Known) {
    this.#entries = desired.resources;
    this.#bindings = bindings;
    this.#declared = new Set(desired.resources.map(({ key }) => key));
    // The keys of another scope say nothing about the entries of this spec.
    this.#held = [...claims]
      .filter(isHeldClaim)
      .filter(({ holder }) => holder.is === 'released' || holder.scope === desired.scope);
    const objects = [
      ...[...bindings.values()].map(({ key, formerKeys = [] }) => [key, ...formerKeys]),
      ...this.#held.map(keysOf),
      ...[...intents].map(({ key, entry }) => [key, ...(entry?.moved ? [entry.moved] : [])]),
    ];
    const pairs = objects.flatMap((keys) => keys.map((key) => ({ key, keys })));
    this.#together = new Map(
      [...Map.groupBy(pairs, ({ key }) => key)].map(([key, each]) => [key, each.map(({ keys }) => keys)]),
    );
  }

  of({ key, moved }: Pick<DesiredResource, 'key' | 'moved'>): Line {
    const line = new Set([key, ...(moved === undefined ? [] : [moved])]);
    // A set also visits the keys that are added during the visit.
    for (const each of line) {
      if (this.#isAnother(each, key)) continue;
      for (const keys of this.#together.get(each) ?? [])
        if (!this.#isAnother(keys[0] ?? key, key))
          for (const one of keys) if (!this.#isAnother(one, key)) line.add(one);
    }
    return line;
  }

  #isAnother(each: ResourceKey, own: ResourceKey): boolean {
    return each !== own && this.#declared.has(each);
  }

  /**
   * The objects that entries without a binding take back: each object was released from a key of the line, or a key of
   * the line was answered with it. An answer goes before a release, the own key before an earlier key, and the latest
   * object before older ones.
   */
  held(): ReadonlyMap<ResourceKey, HeldClaim> {
    this.#taken ??= this.#takenBack();
    return this.#taken;
  }

  #takenBack(): ReadonlyMap<ResourceKey, HeldClaim> {
    const wanting = this.#entries.filter(
      ({ key, managed, id, parent }) =>
        managed && id === undefined && parent === undefined && !this.#bindings.has(key),
    );
    const fitting = wanting.flatMap((entry) => {
      const line = this.of(entry);
      return this.#held
        .filter((claim) => claim.kind === entry.kind && line.has(keyOf(claim)))
        .map((claim) => ({ key: entry.key, claim, rank: rankOf(claim, entry.key) }));
    });
    const taken = new Map<ResourceKey, HeldClaim>();
    const given = new Set<HeldClaim>();
    for (const { key, claim } of fitting.sort((one, other) => (one.rank < other.rank ? -1 : 1))) {
      if (taken.has(key) || given.has(claim)) continue;
      taken.set(key, claim);
      given.add(claim);
    }
    return taken;
  }
}

/** The key that had the object last comes first. */
function keysOf({ holder }: HeldClaim): readonly ResourceKey[] {
  return holder.is === 'found'
    ? [holder.key, ...(holder.askedFor === undefined ? [] : [holder.askedFor])]
    : [holder.formerKey, ...(holder.formerKeys ?? [])];
}

function keyOf(claim: HeldClaim): ResourceKey {
  return keysOf(claim)[0] as ResourceKey;
}

/** Sorts as text: the claim that an entry takes first comes first. */
function rankOf(claim: HeldClaim, key: ResourceKey): string {
  const age = Number.MAX_SAFE_INTEGER - claim.at;
  return [claim.holder.is, keyOf(claim) === key ? 0 : 1, age, objectName(claim), key].join(' ');
}

/** The spec, in which each entry without a binding takes back the object of its line. The plan shows the adoption. */
export function withHeldObjects(
  desired: Desired,
  claims: ReadonlyMap<string, Claim>,
  bindings: Known['bindings'],
): Desired {
  const objects = new Lines({ desired, bindings, claims: claims.values() }).held();
  if (objects.size === 0) return desired;
  const resources = desired.resources.map((each): DesiredResource => {
    const claim = objects.get(each.key);
    if (claim === undefined) return each;
    const { id, identity, holder } = claim;
    const applied = holder.is === 'released' && holder.applied;
    return { ...each, id, held: { by: holder.is, identity, ...(applied && { applied }) } };
  });
  return { ...desired, resources };
}
