import type { Desired } from '../core/desired.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { ProofChecks, World } from '../core/kind.ts';
import { factsOf } from '../core/kind-facts.ts';
import type { Binding } from '../core/state.ts';
import type { EngineDeps } from './deps.ts';
import { type ObserveInput, observeAll, observeOne, subjectOf, worldOf } from './observe.ts';
import type { ReadCache } from './read-cache.ts';
import type { RunMemory } from './run.ts';

/** The highest age of an observation that decides an operation, in ms. */
export const freshMs = 60_000;
const catalogueFreshMs = 10 * 60_000;

interface ViewOptions {
  readonly deps: EngineDeps;
  readonly proofChecks?: ProofChecks;
  readonly desired: Desired;
  /** Always shows the current bindings. */
  readonly bindings: ReadonlyMap<ResourceKey, Binding>;
  readonly cache: ReadCache;
  readonly onRefresh: ((world: World) => void) | undefined;
}

/** A view without content before its first refresh. */
export function createView({ deps, desired, bindings, cache, onRefresh, proofChecks }: ViewOptions) {
  const { clock, kinds, profile } = deps;
  const wanted = new Map(desired.resources.map((resource) => [resource.key, resource]));
  let latest: World | undefined;
  /** The start of the last refresh, and the time when each resource was observed since. Monotonic ms. */
  let allAt = 0;
  const refreshedAt = new Map<ResourceKey, number>();

  const known = (): World => {
    if (latest === undefined) throw new Error('The view has no content before its first refresh.');
    return latest;
  };

  const input = (since: number): ObserveInput => ({
    ...{ desired, bindings, kinds, profile, proofChecks },
    read: cache.since(since),
    catalogueRead: cache.since(clock.monotonic() - catalogueFreshMs),
  });

  async function observe(key: ResourceKey, since = clock.monotonic() - freshMs): Promise<World> {
    const at = clock.monotonic();
    const seen = await observeOne(input(since), known(), key);
    // Other callers may have observed and bound resources meanwhile, so only the new observations are merged.
    const now = known();
    const observed = new Map(now.observed);
    observed.delete(key);
    for (const [each, what] of seen.observed) observed.set(each, what);
    latest = worldOf(input(since), { ...now, ...seen, observed });
    refreshedAt.set(key, at);
    return latest;
  }

  const view = {
    observe,
    async refresh(since = clock.monotonic()) {
      latest = await observeAll(input(since));
      allAt = since;
      onRefresh?.(latest);
      return latest;
    },
    async observeIfOld(key: ResourceKey) {
      const oldest = clock.monotonic() - freshMs;
      const isFresh = Math.max(allAt, refreshedAt.get(key) ?? 0) >= oldest;
      return isFresh ? known() : observe(key);
    },
  };

  return {
    view,
    get world() {
      return known();
    },
    /** Takes the changed binding of a key into the view, without a read. */
    follow(key: ResourceKey): void {
      if (latest === undefined) return;
      if (bindings.has(key)) refreshedAt.set(key, clock.monotonic());
      const subjects = new Map(latest.subjects);
      const inside = [...subjects.values()].filter(({ parent }) => parent === key).map((each) => each.key);
      for (const touched of [key, ...inside]) {
        const subject = subjectOf({ wanted, bindings }, touched);
        if (subject === undefined) subjects.delete(touched);
        else subjects.set(touched, subject);
      }
      // The observations are those of the server that had the key before.
      const { kind, id } = bindings.get(key) ?? {};
      const seen = latest.observed.get(key)?.id ?? id;
      const isAnother = kind !== undefined && factsOf(kind).container && seen !== id;
      const stale = new Set(isAnother ? [key, ...inside] : []);
      const observed = new Map([...latest.observed].filter(([each]) => !stale.has(each)));
      latest = worldOf(input(0), { ...latest, subjects, observed });
    },
  } satisfies Pick<RunMemory, 'view' | 'world'> & { follow: (key: ResourceKey) => void };
}
