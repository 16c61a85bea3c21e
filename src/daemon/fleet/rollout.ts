import { hash } from 'node:crypto';
import { z } from 'zod';
import type { Desired } from '../../core/desired.ts';
import type { Taken } from '../sources/intake.ts';
import { markOf, projectsByFile, type Snapshot, type SpecText } from '../sources/source.ts';

/** Which projects get a change together. `percent`: of the projects that the change concerns, with those that have it already. */
export const wave = z.union([
  z.strictObject({ match: z.strictObject({ label: z.string().min(1) }) }),
  z.strictObject({ percent: z.number().gt(0).max(100) }),
]);

/** How a change reaches the projects of a fleet. Durations in real ms. */
const waves = z.object({
  /** After the last one all projects get the change. */
  waves: z.array(wave),
  /** The projects of a wave have to stay converged for so long. */
  stayMs: z.number(),
  /** A wave that has not converged after this time has failed. */
  deadlineMs: z.number(),
  /** How long newer changes may take projects out of a rollout. After this time the rollout runs to its end. */
  supersedeMs: z.number(),
  /** The projects of each label. */
  labels: z.record(z.string(), z.array(z.number())),
});

export type WavePolicy = z.infer<typeof waves>;

/** The limits that the operator sets for one change of the whole fleet. */
export interface RolloutPolicy extends WavePolicy {
  /** Deletions and replacements of one change, over all projects; more wait for an approval. */
  readonly maxDeletions: number;
  /** Projects of one customer or team share the places that one tenant may have. */
  readonly tenants: Readonly<Record<string, readonly number[]>>;
}

export const defaultPolicy: RolloutPolicy = {
  maxDeletions: 10,
  waves: [],
  stayMs: 10 * 60_000,
  deadlineMs: 6 * 3_600_000,
  supersedeMs: 3_600_000,
  labels: {},
  tenants: {},
};

/** The part of the policy that a rollout keeps. */
export function wavesOf(policy: RolloutPolicy): WavePolicy {
  return waves.parse(policy);
}

const watched = z.object({ project: z.number(), mark: z.string() });

const rollout = z.object({
  id: z.string(),
  /** The commit's id, or a digest where specs come from a folder. */
  change: z.string(),
  /** A digest of all specs of the change that the leader can use. */
  candidate: z.string(),
  /**
   * - `counting`: the deletions are being counted; no project has the change
   * - `waiting`: more deletions than allowed; the projects that would delete do not get the change until an operator
   *   approves it
   * - `queued`: the change begins when the rollouts that its projects are part of have ended
   * - `running`: the projects of the last wave have it, and are watched
   * - `stopped`: a wave has failed; all other projects keep their current spec
   */
  phase: z.enum(['counting', 'waiting', 'queued', 'running', 'stopped']),
  approved: z.boolean(),
  /** The number of projects that the change concerned at first, that have the change, and that still wait for it. */
  total: z.number(),
  released: z.number(),
  left: z.number(),
  /** Deletions and replacements, where they were counted. */
  deletions: z.number().nullable(),
  /** The waves of the leader that began the rollout. A later leader with another configuration does not change them. */
  policy: waves,
  /** How many waves have the change. 0: the change has not begun. */
  wave: z.number(),
  /** Projects that have to converge before the next wave. */
  watched: z.array(watched),
  /** The projects that wait for the approval or the begin of the change. The other projects get the change without them. */
  held: z.array(watched),
  /** When the last wave got the change. Wall ms of the database. */
  since: z.number(),
  /** When this rollout, or the first of those that it has superseded, began. Wall ms of the database. */
  begunAt: z.number(),
  /** Why it waits or has stopped. */
  reason: z.string().nullable(),
});

/**
 * A change that is not in force in all projects yet. The rollout is published with the specs, so that a new leader
 * continues it.
 */
export type Rollout = z.infer<typeof rollout>;

/** A project that is part of a rollout and does not have its change yet. */
export interface Waiting {
  readonly project: number;
  /** The id of the rollout. */
  readonly rollout: string;
  /**
   * The spec that the rollout puts in force. `null`: a newer change wants another spec. That one is put in force after
   * this rollout, because nothing has shown yet that it is good.
   */
  readonly spec: SpecText | null;
}

/** The specs in force in a fleet, and the changes that are on their way into them. */
export interface Shared extends Snapshot {
  /** The oldest first. Of those that have not begun, at most the last one holds no projects. */
  readonly rollouts?: readonly Rollout[];
  /** Only the leader knows these projects. */
  readonly waiting?: readonly Waiting[];
  /** The newest candidate whose deletions were counted and allowed. Projects that get it later are not counted again. */
  readonly counted?: string;
}

/** Rollouts that another release has written are left out. */
export function readRollouts(value: unknown): readonly Rollout[] {
  return z
    .array(z.unknown())
    .catch([])
    .parse(value)
    .flatMap((each) => rollout.safeParse(each).data ?? []);
}

/** A project whose spec in force is not the spec of the change. */
export interface Member {
  readonly project: number;
  readonly name: string;
  readonly mark: string;
  readonly spec: SpecText;
  readonly desired: Desired;
}

/** A broken spec is no member, because it does not come into force. */
export function membersOf(before: Snapshot, wanted: Snapshot, taken: readonly Taken[]): readonly Member[] {
  const inForce = new Map(before.specs.map((spec) => [spec.name, markOf(spec)]));
  const holders = projectsByFile(wanted.holders);
  const texts = byName(wanted.specs);
  return taken.flatMap((each) => {
    const project = holders.get(each.name);
    const text = texts.get(each.name);
    if (!('offer' in each) || text === undefined || each.offer.desired.projectId !== project) return [];
    const mark = markOf(text);
    const isSame = inForce.get(each.name) === mark && before.holders?.[project] === each.name;
    return isSame ? [] : [{ project, name: each.name, mark, spec: text, desired: each.offer.desired }];
  });
}

/** The snapshot with these specs in the place of others of their names. */
export function withSpecs(snapshot: Snapshot, specs: readonly (SpecText | null)[]): Snapshot {
  const others = byName(specs.filter((spec) => spec !== null));
  return { ...snapshot, specs: snapshot.specs.map((spec) => others.get(spec.name) ?? spec) };
}

/** The wanted snapshot, except for these projects, which keep their current specs. */
export function keepSpecsOf(before: Snapshot, wanted: Snapshot, projects: ReadonlySet<number>): Snapshot {
  const old = byName(before.specs);
  const specs = new Map(byName(wanted.specs));
  const holders: Record<string, string> = { ...wanted.holders };
  for (const project of projects) {
    const [name, oldName] = [wanted.holders?.[project], before.holders?.[project]];
    const spec = oldName === undefined ? undefined : old.get(oldName);
    if (name !== undefined && name !== oldName) specs.delete(name);
    delete holders[project];
    if (oldName === undefined || spec === undefined) continue;
    specs.set(oldName, spec);
    holders[project] = oldName;
  }
  return { ...wanted, specs: [...specs.values()], holders };
}

/**
 * The snapshot to publish: a spec that cannot be used here keeps its last usable text. Otherwise another replica that
 * can use the spec would put it in force without a count of deletions and outside all waves.
 */
export function usable(shared: Shared, before: Shared | undefined, taken: readonly Taken[]): Shared {
  if (before === undefined) return shared;
  const old = byName(before.specs);
  const broken = brokenIn(taken);
  const specs = shared.specs.flatMap((spec) => (broken.has(spec.name) ? (old.get(spec.name) ?? []) : spec));
  return { ...shared, specs };
}

/** The names of the specs that cannot be used. */
export function brokenIn(taken: readonly Taken[]): ReadonlySet<string> {
  return new Set(taken.flatMap((each) => ('offer' in each ? [] : [each.name])));
}

function byName(specs: readonly SpecText[]): ReadonlyMap<string, SpecText> {
  return new Map(specs.map((spec) => [spec.name, spec]));
}

/** The projects of `left` that get the change with the next wave of its rollout. */
export function projectsOf<Project extends { readonly project: number }>(
  left: readonly Project[],
  { wave: done, total, released, policy }: Pick<Rollout, 'wave' | 'total' | 'released' | 'policy'>,
): readonly Project[] {
  const wave = policy.waves[done];
  if (wave === undefined) return left;
  if ('match' in wave) {
    const labelled = new Set(policy.labels[wave.match.label]);
    return left.filter(({ project }) => labelled.has(project));
  }
  const wanted = Math.ceil((total * wave.percent) / 100) - released;
  // Each change has the same order, so that the correction of a failed change reaches the same projects first.
  return left.toSorted((a, b) => (sortKeyOf(a) < sortKeyOf(b) ? -1 : 1)).slice(0, Math.max(0, wanted));
}

function sortKeyOf({ project }: { readonly project: number }): string {
  return hash('sha1', String(project));
}

/** Marks these specs. Equal for equal specs. */
export function candidateOf(specs: readonly SpecText[]): string {
  const all = specs.map((spec) => `${spec.name} ${markOf(spec)}`).sort();
  return hash('sha256', all.join('\n')).slice(0, 24);
}
