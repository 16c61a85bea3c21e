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

  const input = (since: number): SurveyInput => ({
    ...{ desired, bindings, kinds, profile },
    read: cache.since(since),
    catalogueRead: cache.since(clock.monotonic() - catalogueFreshMs),
  });

  return {
    get world() {
      return world as World;
    },
    async look(since = clock.monotonic()) {
      world = await survey(input(since));
      onLook?.(world);
      return world;
    },
    async lookAgain(key: ResourceKey, since = clock.monotonic() - freshMs) {
      const seen = await lookAtOne(input(since), world as World, key);
      // Others have looked and bound meanwhile, so only what was just seen is put in.
      const now = world as World;
      const observed = new Map(now.observed);
      observed.delete(key);
      for (const [each, what] of seen.observed) observed.set(each, what);
      world = worldOf(input(since), { ...now, ...seen, observed });
      return world;
    },
    /** Takes in that the key's binding has changed, without reading anything. */
    follow(key: ResourceKey): void {
      if (world === undefined) return;
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
