import type { Desired } from '../core/desired.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { World } from '../core/kind.ts';
import type { Binding } from '../core/state.ts';
import type { EngineDeps } from './deps.ts';
import type { ReadCache } from './read-cache.ts';
import { lookAtOne, type SurveyInput, subjectOf, survey, worldOf } from './survey.ts';

/** How old a look may be that an operation is decided on, in ms. */
export const freshMs = 60_000;
const catalogueFreshMs = 10 * 60_000;

/** The project as a run sees it. */
export interface RunView {
  /** The last look at everything; operations look again at their own part. */
  readonly world: World;
  /** Looks at everything; `since` (monotonic ms) is how old a read may be that no write has overtaken, now by default. */
  look(since?: number): Promise<World>;
  /** Looks at one resource again; `since` (monotonic ms) is how old the reads may be, a minute by default. */
  lookAgain(key: ResourceKey, since?: number): Promise<World>;
  /** Looks at one resource again where it was neither looked at nor bound within the last minute. */
  lookAgainOnceOld(key: ResourceKey): Promise<World>;
}

interface ViewOptions {
  readonly deps: EngineDeps;
  readonly desired: Desired;
  /** Follows what is written. */
  readonly bindings: ReadonlyMap<ResourceKey, Binding>;
  readonly cache: ReadCache;
  readonly onLook: ((world: World) => void) | undefined;
}

/** A view that shows nothing before its first look. */
export function createView({ deps, desired, bindings, cache, onLook }: ViewOptions) {
  const { clock, kinds, profile } = deps;
  const wanted = new Map(desired.resources.map((resource) => [resource.key, resource]));
  let world: World | undefined;
  /** How old the last look at everything may be, and when each resource was looked at since. Monotonic ms. */
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
    // Others have looked and bound meanwhile, so only what was just seen is put in.
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
    /** Takes in that the key's binding has changed, without reading anything. */
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
