import type { Taken } from './intake.ts';
import type { Holders } from './source.ts';

/**
 * Who describes which project, after the specs have been read anew. Two files of one project would undo each
 * other's work, and the second is most often a copy whose id has not been changed yet. So a file keeps its
 * project for as long as it is there, broken or not; what nobody holds goes to the only file that describes
 * it, and to none where there are several. A file that was renamed is a file that is gone, and another one.
 *
 * Holders that came out of this are the same when the same specs are judged by them again.
 */
export function holdersAfter(specs: readonly Taken[], before: Holders): Holders {
  const names = new Set(specs.map(({ name }) => name));
  const kept = Object.entries(before).filter(([, name]) => names.has(name));
  const busy = new Set(kept.map(([, name]) => name));
  const found = [...claimants(specs)].flatMap(([project, [only, ...others]]) =>
    only !== undefined && others.length === 0 && 'offer' in only && !busy.has(only.name)
      ? [[String(project), only.name] as const]
      : [],
  );
  return Object.fromEntries([...found, ...kept]);
}

/** Turns away what does not hold the project that it describes. */
export function refuseOthers(specs: readonly Taken[], holders: Holders): readonly Taken[] {
  const heldBy = new Map(Object.entries(holders).map(([project, name]) => [name, Number(project)]));
  const claims = claimants(specs);
  return specs.map((spec) => {
    const projectId = projectOf(spec);
    if (!('offer' in spec) || projectId === undefined) return spec;
    const { name } = spec;
    const held = heldBy.get(name);
    if (held === projectId) return spec;
    const message =
      held === undefined
        ? whyNotTaken(name, projectId, holders[projectId], claims.get(projectId) ?? [])
        : whyNotMoved(held, projectId);
    return { name, projectId, problem: [{ position: { file: name, line: 1, column: 1 }, message }] };
  });
}

function claimants(specs: readonly Taken[]): ReadonlyMap<number | undefined, readonly Taken[]> {
  const byProject = Map.groupBy(specs, projectOf);
  byProject.delete(undefined);
  return byProject;
}

/** Whose a spec says that it is; of a broken one too, as far as it can be read. */
function projectOf(spec: Taken): number | undefined {
  return 'offer' in spec ? spec.offer.desired.projectId : spec.projectId;
}

function whyNotTaken(
  name: string,
  projectId: number,
  holder: string | undefined,
  all: readonly Taken[],
): string {
  if (holder !== undefined) {
    return `project ${projectId} is described in both ${holder} and ${name}: ${holder} was first and stays in force, and vdcsync ignores ${name}. Give ${name} the id of its own project, or delete it`;
  }
  const names = all.map((each) => each.name);
  return `project ${projectId} is described in both ${names.join(' and ')}, so vdcsync uses neither. Give each file the id of its own project, or delete one of them`;
}

function whyNotMoved(held: number, projectId: number): string {
  return `project.id was ${held} and is ${projectId} now: the state is project ${held}'s. Write ${held} back; project ${projectId} needs another file, and where this vdcsync has one project alone, another vdcsync`;
}
