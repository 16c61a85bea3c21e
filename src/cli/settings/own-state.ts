import { existsSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { ConfigError } from '../../core/errors.ts';
import { shellWord } from '../../core/text.ts';
import { once } from '../../core/work.ts';
import type { PostgresInspection } from '../../state/postgres-inspection.ts';
import type { PostgresPublications } from '../../state/postgres-publications.ts';
import { defaultStateName, shownLocation } from '../../state/postgres-url.ts';
import { fromState } from '../compose.ts';
import { usageError } from '../exit.ts';
import { type CommonFlags, isUrl, stateNameOf, stateWord } from '../flags.ts';
import type { Io } from '../terminal.ts';
import { ownState, stateLocation } from './config.ts';

/**
 * Refuses a state next to the one that the folder of a daemon keeps for the project: with a second state, vdcsync would
 * create all resources again.
 *
 * @param own the state of the project in the folder of a daemon
 * @throws ConfigError naming that state, unless the given state belongs to the project or the state of the folder does not
 */
export async function refuseBeside(
  own: string,
  projectId: number,
  flags: CommonFlags,
  io: Io,
): Promise<void> {
  const location = stateLocation(flags, io);
  if ((await projectOf(flags, io)) === projectId) return;
  const found = await projectOf({ ...flags, state: own }, io);
  if (found !== null && found !== projectId) return;
  // A state file without a project belongs to the folder's project. A database has no file, so the fleet's list decides.
  if (found === null && isUrl(own) && !(await isPublished(projectId, location))) return;
  const [given, there] = [location, own].map((each) =>
    shownLocation(isUrl(each) ? each : relative(io.cwd, each)),
  );
  const way = isUrl(own)
    ? `the same URL with state=${stateNameOf(own)}, --state ${stateWord(own, io.env)}`
    : `--state ${there}, or move it away if you no longer need it`;
  throw usageError(
    `project ${projectId} already has the state ${there}, because a daemon runs with a folder of projects. With ${given} as a second state, vdcsync would create all resources again. Use the first state: ${way}`,
  );
}

/**
 * A command that only reads a state does not create one. Before its first write, a state holds at most the plan that
 * waits for approval.
 *
 * @throws ConfigError if the given place has no project's state
 */
export async function refuseNoState(flags: CommonFlags, io: Io): Promise<void> {
  const isKept = await fromState(
    flags,
    io,
    async (store) => (await store.info()).projectId !== null || (await store.claims()).length > 0,
  );
  if (isKept) return;
  const location = stateLocation(flags, io);
  const place = shownLocation(location);
  const found =
    !isUrl(location) && existsSync(location)
      ? `the state at ${place} belongs to no project yet, because no apply has reached the API with it.`
      : `there is no state at ${place}.`;
  throw usageError(
    `${found} Name an existing state with --state or VDCSYNC_STATE (for a new state in this folder: ./NAME)`,
  );
}

/** Whether the fleet that this URL makes has the project, worked on or not. */
async function isPublished(projectId: number, location: string): Promise<boolean> {
  return inPublications(location, async (board) => (await board?.publishedFor(projectId)) !== undefined);
}

/** Reads the specs that the fleet of this URL has published. `undefined`: the database has no fleet. */
export async function inPublications<Result>(
  location: string,
  read: (publications: PostgresPublications | undefined) => Promise<Result>,
): Promise<Result> {
  const { openPublications } = await import('../../state/postgres-publications.ts');
  const options = { mode: 'read', now: 0, lineage: '' } as const;
  const publications = await openPublications(ownState(location, 'fleet'), options);
  try {
    return await read(publications);
  } finally {
    await publications?.close();
  }
}

/**
 * Resources that were created with a project's spec alone are in the given state, and not in the project's own state. A
 * daemon that reads the file as part of a folder would buy them again. Returns whether the project's own state
 * belongs to a project already, so that no later check is necessary.
 *
 * @throws ConfigError if the project's own state belongs to no project yet and the given state belongs to the project.
 */
export async function refuseStateBeside(
  projectId: number,
  flags: CommonFlags,
  io: Io,
  inspection?: Pick<PostgresInspection, 'states'>,
): Promise<boolean> {
  const location = stateLocation(flags, io);
  const own = ownState(location, projectId);
  // An embedded emulator has its world next to the state: a new state has a new world.
  if (own === location || flags.emulator === true || (!isUrl(location) && !existsSync(location)))
    return false;
  const projectIn =
    inspection === undefined ? openedStates(flags, io) : inspectedStates([own, location], inspection);
  if ((await projectIn(own)) !== null) return true;
  if ((await projectIn(location, 'emulator')) !== projectId) return false;
  const [given, there] = [location, own].map(shownLocation);
  throw new ConfigError(
    `project ${projectId} already has the state ${given}, and a daemon with a folder of projects uses ${there}. ` +
      `With this second state, vdcsync would create all resources again. Stop the process that uses the first state, and move the state: ${moveOf(location, own)}. ` +
      'If you no longer need it, move it away',
  );
}

/** The project of a state, as `projectOf`; `null` for a file that does not exist. */
function openedStates(flags: CommonFlags, io: Io) {
  return async (state: string, but?: 'emulator') =>
    isUrl(state) || existsSync(state) ? projectOf({ ...flags, state }, io, but) : null;
}

/** The same on the connection that a fleet has for inspections: thousands of projects would each open two connections. */
function inspectedStates(locations: readonly string[], inspection: Pick<PostgresInspection, 'states'>) {
  const nameIn = (location: string) => stateNameOf(location) ?? defaultStateName;
  const states = once(() => inspection.states({ names: locations.map(nameIn) }));
  return async (state: string, but?: 'emulator') => {
    const found = (await states()).find(({ name }) => name === nameIn(state));
    return found === undefined || found.service === but ? null : found.projectId;
  };
}

function moveOf(from: string, to: string): string {
  if (!isUrl(from))
    return `mkdir -p ${shellWord(dirname(to))} && mv ${shellWord(from)}* ${shellWord(dirname(to))}/`;
  const [old, name] = [from, to].map(stateNameOf);
  return `UPDATE vdcsync.states SET name = '${name}' WHERE name = '${old ?? defaultStateName}'`;
}

/** The project of the state. With `but`: null if the state was created with that service. */
async function projectOf(flags: CommonFlags, io: Io, but?: 'emulator'): Promise<number | null> {
  const { service, projectId } = await fromState(flags, io, (store) => store.info());
  return service === but ? null : projectId;
}
