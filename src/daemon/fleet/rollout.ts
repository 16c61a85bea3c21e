import { hash } from 'node:crypto';
import { z } from 'zod';
import type { Desired } from '../../core/desired.ts';
import type { Plan } from '../../core/plan.ts';
import type { Taken } from '../sources/intake.ts';
import type { Snapshot, SpecText } from '../sources/source.ts';

/** Which projects get a change together. `percent`: of the projects that the change concerns, with those that have it already. */
export type Wave = { readonly match: { readonly label: string } } | { readonly percent: number };

/** The limits that the operator sets for one change of the whole fleet. Durations in real ms. */
export interface RolloutPolicy {
  /** Deletions and replacements of one change, over all projects; more wait for an approval. */
  readonly maxDeletions: number;
  /** After the last one all projects get the change. */
  readonly waves: readonly Wave[];
  /** The projects of a wave have to stay converged for so long. */
  readonly stayMs: number;
  /** A wave that has not converged after this time has failed. */
  readonly deadlineMs: number;
  readonly labels: Readonly<Record<string, readonly number[]>>;
}

export const defaultPolicy: RolloutPolicy = {
  maxDeletions: 10,
  waves: [],
  stayMs: 10 * 60_000,
  deadlineMs: 6 * 3_600_000,
  labels: {},
};

const watched = z.object({ project: z.number(), mark: z.string() });

const rollout = z.object({
  /** The commit's id, or a digest where specs come from a folder. */
  change: z.string(),
  /** Marks all specs as the change wants them. */
  candidate: z.string(),
  /**
   * - `counting`: the deletions are being counted; no project has the change
   * - `waiting`: more deletions than allowed; no project has the change until an operator approves it
   * - `running`: the projects of the last wave have it, and are watched
   * - `stopped`: a wave has failed; all other projects keep their current spec
   */
  phase: z.enum(['counting', 'waiting', 'running', 'stopped']),
  approved: z.boolean(),
  /** How many projects the change concerns, and how many of them do not have it yet. */
  total: z.number(),
  left: z.number(),
  /** Deletions and replacements, where they were counted. */
  deletions: z.number().nullable(),
  /** How many waves have the change. */
  wave: z.number(),
  /** Projects that have to converge before the next wave. */
  watched: z.array(watched),
  /** Wall ms. */
  since: z.number(),
  /** Why it waits or has stopped. */
  reason: z.string().nullable(),
});

/**
 * A change that is not in force in all projects yet. The rollout is published with the specs, so that a new leader
 * continues it.
 */
export type Rollout = z.infer<typeof rollout>;

/** The specs in force in a fleet, and the change that is on its way into them. */
export interface Shared extends Snapshot {
  readonly rollout?: Rollout;
}

/** `undefined` where there is none, or where another release has written it. */
export function readRollout(value: unknown): Rollout | undefined {
  return rollout.safeParse(value).data;
}

/** A project whose spec in force is another one than the change wants. */
export interface Member {
  readonly project: number;
  readonly name: string;
  readonly mark: string;
  readonly desired: Desired;
}

/** Specs that cannot be used are no members: they put nothing in force. */
export function membersOf(before: Snapshot, wanted: Snapshot, taken: readonly Taken[]): readonly Member[] {
  const inForce = new Map(before.specs.map((spec) => [spec.name, markOf(spec)]));
  const holders = new Map(Object.entries(wanted.holders ?? {}).map(([id, name]) => [name, Number(id)]));
  const texts = new Map(wanted.specs.map((spec) => [spec.name, spec]));
  return taken.flatMap((each) => {
    const project = holders.get(each.name);
    const text = texts.get(each.name);
    if (!('offer' in each) || text === undefined || each.offer.desired.projectId !== project) return [];
    const mark = markOf(text);
    const isSame = inForce.get(each.name) === mark && before.holders?.[project] === each.name;
    return isSame ? [] : [{ project, name: each.name, mark, desired: each.offer.desired }];
  });
}

/** The wanted snapshot, except for these projects, which keep their current specs. */
export function heldBack(before: Snapshot, wanted: Snapshot, projects: ReadonlySet<number>): Snapshot {
  const old = new Map(before.specs.map((spec) => [spec.name, spec]));
  const specs = new Map(wanted.specs.map((spec) => [spec.name, spec]));
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
  const old = new Map(before.specs.map((spec) => [spec.name, spec]));
  const broken = new Set(taken.flatMap((each) => ('offer' in each ? [] : [each.name])));
  const specs = shared.specs.flatMap((spec) => (broken.has(spec.name) ? (old.get(spec.name) ?? []) : spec));
  return { ...shared, specs };
}

/** Those of `left` that get the change with a wave; `total`: how many the change concerned at first. */
export function projectsOf(
  wave: Wave | undefined,
  left: readonly Member[],
  total: number,
  { labels }: RolloutPolicy,
): readonly Member[] {
  if (wave === undefined) return left;
  if ('match' in wave) {
    const labelled = new Set(labels[wave.match.label]);
    return left.filter(({ project }) => labelled.has(project));
  }
  const wanted = Math.ceil((total * wave.percent) / 100) - (total - left.length);
  // The same order for each change, so that one that follows a failed one goes the same way.
  return left.toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1)).slice(0, Math.max(0, wanted));
}

function orderOf({ project }: Member): string {
  return hash('sha1', String(project));
}

/** How much a plan destroys, counted as for `settings.max_deletions`. */
export function deletionsOf({ operations }: Pick<Plan, 'operations'>): number {
  return operations.filter(({ verb, kind, key, replacement }) => {
    if (verb !== 'delete') return false;
    if (kind === 'network_interface') return replacement === undefined;
    return key.split('.').length === 2 || kind === 'backup';
  }).length;
}

const marks = new WeakMap<SpecText, string>();

/** Equal for equal texts. */
export function markOf(spec: SpecText): string {
  const known = marks.get(spec);
  if (known !== undefined) return known;
  const mark = hash('sha256', JSON.stringify(spec)).slice(0, 24);
  marks.set(spec, mark);
  return mark;
}

/** Marks all that a change wants. */
export function candidateOf({ specs }: Snapshot): string {
  const all = specs.map((spec) => `${spec.name} ${markOf(spec)}`).sort();
  return hash('sha256', all.join('\n')).slice(0, 24);
}
