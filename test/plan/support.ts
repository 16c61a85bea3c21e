import { attribute } from '../../src/core/attribute.ts';
import type { Desired } from '../../src/core/desired.ts';
import type { Subject, World, WorldParts } from '../../src/core/kind.ts';
import type { Plan } from '../../src/core/plan.ts';
import { documentedProfile } from '../../src/core/profile.ts';
import type { Binding } from '../../src/core/state.ts';
import { createWorld } from '../../src/core/world.ts';
import { buildPlan, type PlanInput } from '../../src/plan/build.ts';
import type { Register } from '../../src/plan/unmanaged.ts';
import { kinds } from '../../src/reconcilers/registry.ts';

/** What the emulator sells, as the reads give it. */
export const catalogue: World['catalogue'] = {
  types: [
    { id: 3, name: 'sliders-1', pricing_mode: 'sliders', gpu: false },
    { id: 8, name: 'gpu-fixed', pricing_mode: 'fixed', gpu: true },
  ],
  pricing: new Map([
    [8, { gpu_packages: [{ key: 'l40s-1', name: '1 × L40S', price: '890', backup_price: '89' }] }],
  ]),
  images: new Map([3, 8].map((id) => [id, [{ id: `os-${id}`, name: 'ubuntu-24.04', type: 'os' }]])),
} as unknown as World['catalogue'];

/** A project in which nothing of the spec is there yet; `parts` puts something there. */
export function worldOf(
  desired: Desired,
  parts: Partial<WorldParts> = {},
  bindings: readonly Binding[] = [],
): World {
  const bound = new Map(bindings.map((binding) => [binding.key, binding]));
  const subjects = desired.resources.map((resource): Subject => {
    const { key, kind, parent } = resource;
    const binding = bound.get(key);
    return {
      key,
      kind,
      desired: resource,
      ...(parent === undefined ? {} : { parent }),
      ...(binding === undefined ? {} : { binding }),
    };
  });
  return createWorld({
    project: { id: 4711, name: 'shop', status: 'Active' } as World['project'],
    settings: desired.settings,
    profile: documentedProfile,
    catalogue,
    ips: [],
    networks: [],
    subjects: new Map(subjects.map((subject) => [subject.key, subject])),
    observed: new Map(),
    apiNow: Date.UTC(2026, 0, 1),
    now: Date.UTC(2026, 0, 1),
    ...parts,
  });
}

export function planOf(world: World, input: Partial<PlanInput> = {}): Plan {
  return buildPlan({
    kinds,
    world,
    openIntents: [],
    desiredDigest: 'sha256:spec',
    register: registered(world),
    destroy: false,
    deletedBefore: 0,
    now: Date.UTC(2026, 0, 1),
    ...input,
  }).plan;
}

/** The same world, its parts in another order. */
export function shuffled(world: World, order: <T>(list: readonly T[]) => T[]): World {
  return createWorld({
    ...world,
    ips: order(world.ips),
    networks: order(world.networks),
    subjects: new Map(order([...world.subjects])),
    observed: new Map(order([...world.observed])),
  });
}

/** What a state with a baseline knows of the world, and nothing else. */
function registered(world: World): Register {
  const attribution = attribute(world, { claims: [], intents: [] });
  return {
    ...attribution,
    claims: [],
    isNew: false,
    declaredAbsent: [],
    answeredElsewhere: new Map(),
    line: ({ key }) => new Set([key]),
    held: () => undefined,
  };
}

/** A binding of a table: a resource that is kept in no way, unless `more` says so. */
export const bound = (key: string, kind: string, id: string, more: object = {}) =>
  ({
    ...{ key, kind, id, identity: {}, applied: null, keep: false, protect: false, boundAt: 1 },
    ...more,
  }) as unknown as Binding;
