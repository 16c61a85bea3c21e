import { existsSync, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import type { Desired } from '../../core/desired.ts';
import { ConfigError, reasonOf, SpecError } from '../../core/errors.ts';
import { parseKey, type ResourceKey } from '../../core/keys.ts';
import { collections } from '../../core/kind-facts.ts';
import type { Plan, Selection } from '../../core/plan.ts';
import { didYouMeanKey, nearMiss } from '../../core/suggest.ts';
import { printable } from '../../core/text.ts';
import { systemClock } from '../../platform/system.ts';
import { allowedEnvironment, isReservedVariable, type SpecTrust } from '../../spec/environment.ts';
import { decodeSpec, loadSpec, mostBytes, type Source, unreadable } from '../../spec/load.ts';
import type { Session } from '../compose.ts';
import { usageError } from '../exit.ts';
import { type CommonFlags, isUrl, type SelectionFlags, type TrustFlags } from '../flags.ts';
import { isRunName } from '../runs.ts';
import type { Io } from '../terminal.ts';
import { ownState, specFiles, stateLocation } from './config.ts';

/** Characters of the files that are loaded without a thread. */
const mostInProcess = 64 * 1024;

/**
 * Reads the spec that a call means, from files and, for `-`, standard input.
 *
 * @throws SpecError with every error of every file.
 */
export async function readSpec(flags: CommonFlags, io: Io): Promise<Desired> {
  return loadWithinLimits(await readSources(flags, io), trustOf(flags, io), io);
}

/**
 * A daemon with a folder of projects keeps a state for each project. A command for one file of that folder, with the same
 * settings, would start a second state, and buy all resources of the first state again.
 *
 * @throws ConfigError if the given state does not belong to this project and the project has a state of its own.
 */
export async function refuseSecondState(projectId: number, flags: CommonFlags, io: Io): Promise<void> {
  const location = stateLocation(flags, io);
  const own = ownState(location, projectId);
  if (own === location || (!isUrl(own) && !existsSync(own))) return;
  const { refuseBeside } = await import('./own-state.ts');
  await refuseBeside(own, projectId, flags, io);
}

/** The spec of a call that uses the state. @throws ConfigError as `refuseSecondState` */
export async function readSpecWithState(flags: CommonFlags, io: Io): Promise<Desired> {
  const desired = await readSpec(flags, io);
  await refuseSecondState(desired.projectId, flags, io);
  return desired;
}

/** The same for a command that can show the state without a spec. If there is a spec, it must be valid. */
export async function specIfAny(flags: CommonFlags, io: Io): Promise<Desired | undefined> {
  let desired: Desired;
  try {
    desired = await readSpec(flags, io);
  } catch (error) {
    if (error instanceof ConfigError && error.misuse && flags.file === undefined) return undefined;
    throw error;
  }
  await refuseSecondState(desired.projectId, flags, io);
  return desired;
}

/**
 * Loads a spec as the daemon does: a large one in a thread with a deadline and bounded memory. The values of a small one
 * are bounded, so that it takes less time than a thread takes to start.
 */
export async function loadWithinLimits(
  sources: readonly Source[],
  trust: SpecTrust,
  { env }: Io,
): Promise<Desired> {
  const characters = sources.reduce((sum, { text }) => sum + text.length, 0);
  if (characters <= mostInProcess) return loadSpec(sources, env, trust);
  const { readOnce } = await import('../../daemon/sources/spec-thread.ts');
  const environment = allowedEnvironment(env, trust);
  const answer = await readOnce({ sources, environment, trust }, systemClock);
  if ('desired' in answer) return answer.desired;
  if ('problem' in answer) throw new SpecError(answer.problem, answer.projectId);
  throw new SpecError(unreadable(sources[0]?.file ?? '-', answer.failure));
}

/** The spec with the call's limit of deletions, if the call has one, in place of the spec's limit. */
export function capped(desired: Desired, most: number | undefined): Desired {
  if (most === undefined) return desired;
  return { ...desired, settings: { ...desired.settings, max_deletions: most } };
}

/**
 * The spec and the part of it that a call asks for.
 *
 * @param saved the plan that the call carries out: its selection counts
 */
export async function askedBy(flags: SelectionFlags, desired: Desired, session: Session, saved?: Plan) {
  if (flags.undo === undefined)
    return { desired, selection: saved?.selection ?? (await selectionOf(flags, desired, session)) };
  const { undoneRun } = await import('./undo.ts');
  const undo = await undoneRun(flags.undo, desired, session);
  return { desired: undo.desired, selection: undo.selection, undo };
}

/**
 * The part of the plan that the flags select, or `undefined` for the whole plan.
 *
 * @throws ConfigError for a key that neither the spec nor the state has: it would select nothing.
 */
async function selectionOf(
  { target = [], exclude = [] }: SelectionFlags,
  desired: Desired,
  { store }: Session,
): Promise<Selection | undefined> {
  if (target.length + exclude.length === 0) return undefined;
  const known = new Set<string>([
    ...desired.resources.map(({ key }) => key),
    ...(await store.bindings()).map(({ key }) => key),
  ]);
  const checked =
    (flag: string) =>
    (text: string): ResourceKey => {
      const key = parseKey(text)?.key;
      if (key !== undefined && known.has(key)) return key;
      const hint = didYouMeanKey(text, known, '');
      throw usageError(`${flag} ${printable(text)}: neither the spec nor the state has this key${hint}`);
    };
  return { targets: target.map(checked('--target')), excludes: exclude.map(checked('--exclude')) };
}

/** @throws ConfigError if the flags select another part than the saved plan in `path` contains. */
export function refuseOtherSelection(saved: Plan, given: SelectionFlags, path: string): void {
  const { targets = [], excludes = [] } = saved.selection ?? {};
  const [made, asked] = [written(targets, excludes), written(given.target, given.exclude)];
  if (asked === '' || asked === made) return;
  const of = made === '' ? 'for the complete file' : `with ${made}`;
  throw usageError(
    `${printable(path)} was made ${of}, and this command has ${asked}. Remove these flags, or make the plan again with them`,
  );
}

function written(targets: readonly string[] = [], excludes: readonly string[] = []): string {
  const flags = [
    ...targets.map((key) => `--target ${printable(key)}`),
    ...excludes.map((key) => `--exclude ${printable(key)}`),
  ];
  return [...new Set(flags)].sort().join(' ');
}

/** @throws ConfigError for a text that is no key, with a suggestion for its collection. */
export function checkedKey(text: string): ResourceKey {
  const parsed = parseKey(text);
  if (parsed !== undefined) return parsed.key;
  const [first = '', ...rest] = text.split('.');
  const collection = rest.length === 0 ? undefined : nearMiss(first, collections);
  const meant = parseKey(`${collection}.${rest.join('.')}`)?.key;
  const like = 'examples of keys: servers.web-1, servers.web-1.network_interfaces.backend';
  const hint = meant === undefined ? `: ${like}` : `; did you mean ${printable(meant)}?`;
  throw usageError(`${JSON.stringify(printable(text))} is not a key${hint}`);
}

/** Refused before the command reads or opens anything. */
export function checkUndo({ undo, target, exclude }: SelectionFlags): void {
  if (undo === undefined) return;
  if (!isRunName(undo))
    throw usageError(
      `--undo ${printable(undo)} names no run. Take one from vdcsync history, such as 2026-01-31T12:00:00Z`,
    );
  if (target !== undefined || exclude !== undefined)
    throw usageError('--undo selects the resources of its run: leave out --target and --exclude');
}

/** The texts of the spec files, not parsed yet. */
export async function readSources(flags: CommonFlags, io: Io): Promise<readonly Source[]> {
  const files = [...specFiles(flags, io), ...(flags.overlay ?? [])];
  if (flags.overlay?.includes('-')) throw usageError('--overlay takes a file, not standard input');
  const twice = files.find((file, index) => files.indexOf(file) !== index);
  if (twice !== undefined) throw usageError(`${twice} is given twice`);
  const sources: Source[] = [];
  const overlays = new Set(flags.overlay);
  for (const file of files) {
    const source = await readSource(file, io);
    sources.push(overlays.has(file) ? { ...source, overlay: true } : source);
  }
  return sources;
}

async function readSource(file: string, io: Io): Promise<Source> {
  if (file === '-') return { file: '<stdin>', text: await readAll(io.stdin) };
  if (/\.[cm]?[jt]s$/.test(file)) {
    const why = `it is a program. First render it: vdcsync render ${file} --out vdcsync.yaml`;
    throw new SpecError(unreadable(file, why));
  }
  const path = resolve(io.cwd, file);
  try {
    const stats = statSync(path);
    if (stats.isDirectory())
      throw usageError(
        `${file} is a folder, which only run and validate accept. Name one of its files with -f`,
      );
    if (stats.size > mostBytes) throw new SpecError(unreadable(file, 'it is longer than 1 MiB'));
    const source = decodeSpec(readFileSync(path), file);
    if ('text' in source) return source;
    throw new SpecError(source);
  } catch (error) {
    if (error instanceof SpecError || error instanceof ConfigError) throw error;
    throw new SpecError(unreadable(file, reasonOf(error)));
  }
}

const name = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * The permissions of specs, in every command. The author of a spec need not be the operator, also where a pipeline plans
 * the file of a merge request, so a spec has no permissions by default.
 */
export function trustOf(flags: TrustFlags, { env, cwd }: Pick<Io, 'env' | 'cwd'>): SpecTrust {
  const given = flags.allowEnv ?? (env.VDCSYNC_ALLOW_ENV ?? '').split(',').map((each) => each.trim());
  const variables = given.filter((each) => each !== '');
  for (const each of variables) {
    if (name.test(each) && !isReservedVariable(each)) continue;
    throw usageError(
      `--allow-env ${JSON.stringify(each)} is not possible: specs cannot use VDC_*, VDCSYNC_* and PG*, which belong to vdcsync, nor CI_*, GITHUB_* and ACTIONS_*, which belong to the pipeline`,
    );
  }
  const folder = flags.tokenFolder ?? env.VDCSYNC_TOKEN_FOLDER ?? '';
  const prefix = flags.tokenEnvPrefix ?? env.VDCSYNC_TOKEN_ENV_PREFIX ?? '';
  if (prefix !== '' && !name.test(prefix)) {
    throw usageError(
      `--token-env-prefix ${JSON.stringify(prefix)} cannot be the beginning of a variable name`,
    );
  }
  return {
    variables,
    tokens: {
      ...(folder === '' ? {} : { folder: resolve(cwd, folder) }),
      ...(prefix === '' ? {} : { prefix }),
      base: cwd,
    },
  };
}
