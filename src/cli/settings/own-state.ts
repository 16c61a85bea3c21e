import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ConfigError } from '../../core/errors.ts';
import { shownLocation } from '../../state/open.ts';
import { openStore } from '../compose.ts';
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
  if (found === null && isUrl(own) && !(await isPublished(projectId, location, io))) return;
  const [given, there] = [location, own].map((each) =>
    shownLocation(isUrl(each) ? each : relative(io.cwd, each)),
  );
  const way = isUrl(own)
    ? `the same URL with state=${stateNameOf(own)}, --state ${stateWord(own, io.env)}`
    : `--state ${there}, or move it away if it is of no use any more`;
  throw new ConfigError(
    `project ${projectId} is kept at ${there}, by a vdcsync run with a folder of projects, and not at ${given}: a second state would buy anew what the first one has. Give the first one: ${way}`,
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
async function isPublished(projectId: number, location: string, io: Io): Promise<boolean> {
  const { holdersOn } = await import('../../daemon/fleet/board.ts');
  const board = await openStore({ state: ownState(location, 'fleet') }, io, 'read');
  try {
    return String(projectId) in (await holdersOn(board));
  } finally {
    await board.close();
  }
}

async function projectOf(flags: CommonFlags, io: Io): Promise<number | null> {
  const store = await openStore(flags, io, 'read');
  try {
    return (await store.info()).projectId;
  } finally {
    await store.close();
  }
}
