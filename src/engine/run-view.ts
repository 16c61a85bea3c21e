import type { Desired } from '../core/desired.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { World } from '../core/kind.ts';
import type { Binding } from '../core/state.ts';
import type { EngineDeps } from './deps.ts';
import type { ReadCache } from './read-cache.ts';
import { lookAtOne, type SurveyInput, subjectOf, survey, worldOf } from './survey.ts';

/** The highest age of an observation that decides an operation, in ms. */
export const freshMs = 60_000;
const catalogueFreshMs = 10 * 60_000;

/** The project as a run observes it. */
export interface RunView {
  /** The last refresh. Each operation observes its own resources again. */
  readonly world: World;
  /**
   * Refreshes all resources. `since` (monotonic ms) is the earliest start of a read that is still usable, now by
   * default. A write makes older reads unusable.
   */
  look(since?: number): Promise<World>;
  /**
   * Observes one resource again. `since` (monotonic ms) is the earliest start of a usable read, a minute ago by
   * default.
   */
  lookAgain(key: ResourceKey, since?: number): Promise<World>;
  /** Observes one resource again unless the resource was observed or bound within the last minute. */
  lookAgainOnceOld(key: ResourceKey): Promise<World>;
}

interface ViewOptions {
  readonly deps: EngineDeps;
  readonly desired: Desired;
  /** Always shows the current bindings. */
  readonly bindings: ReadonlyMap<ResourceKey, Binding>;
  readonly cache: ReadCache;
  readonly onLook: ((world: World) => void) | undefined;
}

/** A view without content before its first refresh. */
export function createView({ deps, desired, bindings, cache, onLook }: ViewOptions) {
  const { clock, kinds, profile } = deps;
  const wanted = new Map(desired.resources.map((resource) => [resource.key, resource]));
  let world: World | undefined;
  /** The start of the last refresh, and the time when each resource was observed since. Monotonic ms. */
  let allAt = 0;
  const lookedAt = new Map<ResourceKey, number>();

  const input = (since: number): SurveyInput => ({
    ...{ desired, bindings, kinds, profile },
    read: cache.since(since),
    catalogueRead: cache.since(clock.monotonic() - catalogueFreshMs),
  });

  async function lookAgain(key: ResourceKey, since = clock.monotonic() - freshMs): Promise<World> {
    const at = clock.monotonic();
    const seen = await lookAtOne(input(since), world as World, key);
    // Other callers may have observed and bound resources meanwhile, so only the new observations are merged.
    const now = world as World;
    const observed = new Map(now.observed);
    observed.delete(key);
    for (const [each, what] of seen.observed) observed.set(each, what);
    world = worldOf(input(since), { ...now, ...seen, observed });
    lookedAt.set(key, at);
    return world;
  }

  return {
    lookAgain,
    get world() {
      return world as World;
    },
    async look(since = clock.monotonic()) {
      world = await survey(input(since));
      allAt = since;
      onLook?.(world);
      return world;
    },
    async lookAgainOnceOld(key: ResourceKey) {
      const oldest = clock.monotonic() - freshMs;
      const isFresh = Math.max(allAt, lookedAt.get(key) ?? 0) >= oldest;
      return isFresh ? (world as World) : lookAgain(key);
    },
    /** Takes the changed binding of a key into the view, without a read. */
    follow(key: ResourceKey): void {
      if (world === undefined) return;
      if (bindings.has(key)) lookedAt.set(key, clock.monotonic());
      const subjects = new Map(world.subjects);
      const inside = [...subjects.values()].filter(({ parent }) => parent === key).map((each) => each.key);
      for (const touched of [key, ...inside]) {
        const subject = subjectOf({ wanted, bindings, kinds }, touched);
        if (subject === undefined) subjects.delete(touched);
        else subjects.set(touched, subject);
      }
      world = worldOf(input(0), { ...world, subjects });
    },
  } satisfies RunView & { follow: (key: ResourceKey) => void };
}
