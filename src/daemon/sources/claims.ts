import type { Taken } from './intake.ts';
import { fileProblem, type Holders, projectsByFile } from './source.ts';

/**
 * The file that describes each project, after the specs have been read again. Two files for one project would undo each
 * other's work, and the second file is most often a copy with an unchanged id. So a file keeps its project as long as
 * the file exists, valid or not. A project without a file gets the only file that describes the project, and no file
 * if there are several. A renamed file counts as a deleted file and a new file.
 *
 * The function is idempotent: with the same specs, its result is the same again.
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

/** Rejects each spec that describes a project of another file. */
export function refuseOthers(specs: readonly Taken[], holders: Holders): readonly Taken[] {
  const projectOfFile = projectsByFile(holders);
  const claims = claimants(specs);
  return specs.map((spec) => {
    const projectId = projectOf(spec);
    if (!('offer' in spec) || projectId === undefined) return spec;
    const { name } = spec;
    const current = projectOfFile.get(name);
    if (current === projectId) return spec;
    const message =
      current === undefined
        ? whyNotTaken(name, projectId, holders[projectId], claims.get(projectId) ?? [])
        : whyNotMoved(current, projectId);
    return { name, projectId, problem: fileProblem(name, message) };
  });
}

function claimants(specs: readonly Taken[]): ReadonlyMap<number | undefined, readonly Taken[]> {
  const byProject = Map.groupBy(specs, projectOf);
  byProject.delete(undefined);
  return byProject;
}

/** The project that a spec names. Also known for a broken spec, as far as the spec can be parsed. */
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
    return `two files are for project ${projectId}: ${holder}, which stays in force, and ${name}, which vdcsync ignores. Give ${name} the id of its own project, or delete it`;
  }
  const names = all.map((each) => each.name);
  return `these files are for the same project ${projectId}, so vdcsync uses none of them: ${names.join(', ')}. Give each file the id of its own project, or delete all but one`;
}

function whyNotMoved(current: number, projectId: number): string {
  return `project.id was ${current} and is ${projectId} now, but the state belongs to project ${current}. Write ${current} again. For project ${projectId}, use another spec with its own state`;
}
