import { markOf } from '../sources/source.ts';
import type { Member, Rollout, Waiting } from './rollout.ts';

/** A rollout that has begun, and the projects that wait in it. */
export interface Begun {
  readonly rollout: Rollout;
  readonly waiting: readonly Waiting[];
}

/** The rollouts that have begun, and the projects that get their specs now. */
export interface Advance {
  readonly begun: readonly Begun[];
  readonly released: readonly Waiting[];
}

/** With the rollouts that have not begun. */
export interface Followed extends Advance {
  readonly queued: readonly Rollout[];
}

/** The specs that the source wants now, as far as they differ from the specs in force. */
export interface WantedSpecs {
  readonly members: ReadonlyMap<number, Member>;
  /** Names of specs that cannot be used. */
  readonly broken: ReadonlySet<string>;
}

/**
 * The projects that a rollout still takes its change to, after a newer change. A project keeps its place where the newer change wants the
 * same spec. Where it wants another one, or the spec in force, it takes the project out, unless the rollout `isDue`:
 * then only the spec in force does, so that a reverted change stops at once.
 */
export function keptBy({ rollout, waiting }: Begun, { members, broken }: WantedSpecs, isDue: boolean): Begun {
  const kept = waiting.map((each) => {
    const { spec, project } = each;
    if (spec === null || broken.has(spec.name)) return each;
    const wanted = members.get(project);
    const isSame = wanted?.mark === markOf(spec);
    const waitsForIt = isDue && wanted?.name === spec.name;
    return isSame || waitsForIt ? each : { ...each, spec: null };
  });
  return { rollout: { ...rollout, left: kept.filter(({ spec }) => spec !== null).length }, waiting: kept };
}

/** Whether nothing is left of the rollout: no project is to get its change, and none has to converge by it. */
export function isOver({ rollout, waiting }: Begun): boolean {
  return rollout.watched.length === 0 && waiting.every(({ spec }) => spec === null);
}

/** Whether a change has to wait for the rollout, because both concern the same project. */
export function precedes({ rollout, waiting }: Begun, change: ReadonlyMap<number, Member>): boolean {
  return [...waiting, ...rollout.watched].some(({ project }) => change.has(project));
}

/**
 * Whether a newer change takes over everything that is left of the rollout: it has other specs for all projects that
 * wait and for all that are watched. The projects that show whether the older change is good then show it for the newer one.
 */
export function isTakenOver({ rollout, waiting }: Begun, change: ReadonlyMap<number, Member>): boolean {
  return (
    waiting.every(({ spec }) => spec === null) && rollout.watched.every(({ project }) => change.has(project))
  );
}

/** The projects that a stopped rollout watches, and that the newer change has another spec for. */
export function corrected(begun: readonly Begun[], change: ReadonlyMap<number, Member>): readonly Member[] {
  const stopped = begun.filter(({ rollout }) => rollout.phase === 'stopped');
  const watched = new Set(stopped.flatMap(({ rollout }) => rollout.watched.map(({ project }) => project)));
  return [...change.values()].filter(({ project }) => watched.has(project));
}

/** The marks of the specs that a rollout puts in force for its projects. */
export function placedBy({ begun, released }: Advance): ReadonlyMap<number, string> {
  return new Map(
    [...begun.flatMap(({ waiting }) => waiting), ...released].flatMap(({ project, spec }) =>
      spec === null ? [] : [[project, markOf(spec)]],
    ),
  );
}
