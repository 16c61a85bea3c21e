import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ConfigError } from '../../core/errors.ts';
import { shellWord } from '../../core/shell.ts';
import { shownLocation } from '../../state/open.ts';
import { defaultStateName } from '../../state/postgres-url.ts';
import { openStore, serviceNote } from '../compose.ts';
import type { Io } from '../terminal.ts';
import { type CommonFlags, stateLocation } from './config.ts';
import { isUrl, stateNameOf, stateWord } from './state-url.ts';

/** One state a project. In files: one folder each, in which state, lock and an emulator's world stand beside each other there. */
export function ownState(location: string, id: number | 'fleet'): string {
  if (location === ':memory:') return location;
  if (isUrl(location)) {
    const url = URL.parse(location);
    if (url === null) return location;
    url.searchParams.set('state', ownName(stateNameOf(location), id));
    return url.href;
  }
  return join(dirname(location), String(id), 'state.db');
}

/** What the state of one project is called in the database that a fleet of this name shares. */
export function ownName(fleet: string | null, id: number | 'fleet'): string {
  return fleet === null ? String(id) : `${fleet}-${id}`;
}

/**
 * A daemon with a folder of projects keeps a state for each. A command for one file of that folder, with the same
 * settings, would begin a second one beside it, and buy anew what the first one has.
 *
 * @throws ConfigError where the state that is meant is not this project's, and there is one beside it that is.
 */
export async function refuseSecondState(projectId: number, flags: CommonFlags, io: Io): Promise<void> {
  const location = stateLocation(flags, io);
  const own = ownState(location, projectId);
  if (own === location || (!isUrl(own) && !existsSync(own))) return;
  if ((await projectOf(flags, io)) === projectId) return;
  const found = await projectOf({ ...flags, state: own }, io);
  if (found !== null && found !== projectId) return;
  // A file that has not been written to yet is that of its folder; in a database nothing stands there before.
  if (found === null && isUrl(own) && !(await isPublished(projectId, location))) return;
  const [given, there] = [location, own].map((each) =>
    shownLocation(isUrl(each) ? each : relative(io.cwd, each)),
  );
  const way = isUrl(own)
    ? `the same URL with state=${stateNameOf(own)}, --state ${stateWord(own, io.env)}`
    : `--state ${there}, or move it away if it is of no use any more`;
  throw new ConfigError(
    `project ${projectId} is kept at ${there}, by a vdcsync run with a folder of projects, and not at ${given}: a second state would buy the resources of the first one again. Use the first one: ${way}`,
    true,
  );
}

/** @throws ConfigError where no project's state is at the place that is meant: it is not made by asking for what is in it. */
export async function refuseNoState(flags: CommonFlags, io: Io): Promise<void> {
  if ((await projectOf(flags, io)) !== null) return;
  const place = shownLocation(stateLocation(flags, io));
  throw new ConfigError(
    `nothing is recorded at ${place}, so that nothing is managed or unsettled there: name the state that is meant with --state or VDCSYNC_STATE (a new one in this folder as ./NAME)`,
    true,
  );
}

/** Whether the fleet that this URL makes has the project, worked on or not. */
async function isPublished(projectId: number, location: string): Promise<boolean> {
  const { openPublications } = await import('../../state/postgres-publications.ts');
  const options = { mode: 'read', now: 0, lineage: '' } as const;
  const board = await openPublications(ownState(location, 'fleet'), options);
  try {
    return (await board?.publishedFor(projectId)) !== undefined;
  } finally {
    await board?.close();
  }
}

/**
 * What a project's file alone has made stands in the state that was given, and not in the project's own: a daemon
 * that takes the file up with a folder would buy it anew. Gives whether the project's own state is its own for good, so
 * that nobody has to look again.
 *
 * @throws ConfigError where the project's own state is nobody's yet, and the one that was given is the project's.
 */
export async function refuseStateBeside(projectId: number, flags: CommonFlags, io: Io): Promise<boolean> {
  const location = stateLocation(flags, io);
  const own = ownState(location, projectId);
  // An embedded emulator has its world beside the state: a new state has a new world.
  if (own === location || flags.emulator === true || (!isUrl(location) && !existsSync(location)))
    return false;
  if ((isUrl(own) || existsSync(own)) && (await projectOf({ ...flags, state: own }, io)) !== null)
    return true;
  if ((await projectOf(flags, io, 'emulator')) !== projectId) return false;
  const [given, there] = [location, own].map(shownLocation);
  throw new ConfigError(
    `project ${projectId} has a state at ${given}, of its file alone, and none at ${there}, where a folder of projects keeps it: ` +
      `a second state would buy the resources of the first one again. Stop the process that uses the first one, and move it: ${moveOf(location, own)}. ` +
      'If it is of no use any more, move it away',
  );
}

function moveOf(from: string, to: string): string {
  if (!isUrl(from))
    return `mkdir -p ${shellWord(dirname(to))} && mv ${shellWord(from)}* ${shellWord(dirname(to))}/`;
  const [old, name] = [from, to].map(stateNameOf);
  return `UPDATE vdcsync.states SET name = '${name}' WHERE name = '${old ?? defaultStateName}'`;
}

/** With `but`: nobody's, where it was made with that one. */
async function projectOf(flags: CommonFlags, io: Io, but?: 'emulator'): Promise<number | null> {
  const store = await openStore(flags, io, 'read');
  try {
    if (but !== undefined && (await store.note(serviceNote)) === but) return null;
    return (await store.info()).projectId;
  } finally {
    await store.close();
  }
}
