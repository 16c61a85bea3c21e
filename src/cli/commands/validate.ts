import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Desired, isEntry } from '../../core/desired.ts';
import { type Diagnostic, formatDiagnostic, SpecError } from '../../core/errors.ts';
import { counted, printable } from '../../core/text.ts';
import { specNames } from '../../spec/load.ts';
import { type ExitCode, exitCodes, usageError } from '../exit.ts';
import type { ResultFlags } from '../flags.ts';
import { readSpec } from '../settings/spec-source.ts';
import type { Io } from '../terminal.ts';

interface Read {
  readonly spec?: Desired;
  readonly errors: readonly Diagnostic[];
  readonly cautions: readonly Diagnostic[];
}

/**
 * Checks the spec offline, or every spec of a folder, as each is a project of its own. Errors are
 * thrown as `SpecError`, all at once, or listed as JSON.
 */
export async function validate(flags: ResultFlags, io: Io): Promise<ExitCode> {
  const projects = filesOfFolder(flags, io)?.map((file) => ({ ...flags, file: [file] })) ?? [flags];
  const read = await oneFileEach(projects, await Promise.all(projects.map((each) => readOne(each, io))));
  const [errors, specs] = [read.flatMap((each) => each.errors), read.flatMap((each) => each.spec ?? [])];
  const cautions = read.flatMap((each) => each.cautions);
  if (flags.format === 'json') {
    const [only] = projects.length === 1 ? specs : [];
    const resources = specs.reduce((sum, each) => sum + entries(each), 0);
    const found = { errors: errors.map(flat), warnings: cautions.map(flat) };
    const valid = errors.length === 0;
    const result = { format_version: 1, valid, project_id: only?.projectId ?? null, resources, ...found };
    io.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
    return errors.length === 0 ? exitCodes.done : exitCodes.failed;
  }
  for (const { position, message } of cautions) {
    io.stderr.write(`${formatDiagnostic({ position, message: `warning: ${printable(message)}` })}\n`);
  }
  for (const [at, { spec }] of read.entries()) {
    const what =
      projects.length === 1 && projects[0] === flags ? 'The spec' : printable(projects[at]?.file?.[0] ?? '');
    if (spec === undefined) continue;
    io.stdout.write(`${what} is valid: project ${spec.projectId}, ${counted(entries(spec), 'resource')}.\n`);
  }
  if (errors.length > 0) throw new SpecError(errors);
  return exitCodes.done;
}

/** The results of a folder, with the daemon's refusal of two files for one project. */
async function oneFileEach(
  projects: readonly ResultFlags[],
  read: readonly Read[],
): Promise<readonly Read[]> {
  if (projects.length === 1) return read;
  const { holdersAfter, refuseOthers } = await import('../../daemon/sources/claims.ts');
  const taken = read.map(({ spec, errors }, at) => {
    const name = projects[at]?.file?.[0] ?? '';
    return spec === undefined
      ? { name, problem: errors }
      : { name, offer: { desired: spec, files: [name], commit: undefined } };
  });
  const judged = refuseOthers(taken, holdersAfter(taken, {}));
  return read.map((each, at) => {
    const found = judged[at];
    if (found === undefined || !('problem' in found)) return each;
    return { errors: found.problem, cautions: each.cautions };
  });
}

/** As many as a plan counts. */
function entries({ resources }: Desired): number {
  return resources.filter(isEntry).length;
}

async function readOne(flags: ResultFlags, io: Io): Promise<Read> {
  try {
    const spec = await readSpec(flags, io);
    return { spec, errors: [], cautions: spec.resources.flatMap((each) => each.cautions ?? []) };
  } catch (error) {
    if (error instanceof SpecError) return { errors: error.diagnostics, cautions: error.cautions };
    throw error;
  }
}

/** The files that `run -f FOLDER` takes as projects. */
function filesOfFolder(flags: ResultFlags, io: Io): string[] | undefined {
  const { file: files = [] } = flags;
  const isFolder = (file: string) =>
    file !== '-' && statSync(resolve(io.cwd, file), { throwIfNoEntry: false })?.isDirectory() === true;
  const [folder] = files.filter(isFolder);
  if (folder === undefined) return undefined;
  if (files.length > 1) {
    throw usageError('-f takes one folder of projects, or the files of one project, not both');
  }
  const overlays = new Set(flags.overlay?.map((file) => resolve(io.cwd, file)));
  const found = specNames(readdirSync(resolve(io.cwd, folder))).map((name) => join(folder, name));
  const specs = found.filter((file) => !overlays.has(resolve(io.cwd, file)));
  if (specs.length > 0) return specs;
  throw usageError(`the folder ${folder} holds no spec: none of its files ends in .yaml or .yml`);
}

function flat({ position, message }: Pick<Diagnostic, 'position' | 'message'>) {
  return { ...position, message };
}
