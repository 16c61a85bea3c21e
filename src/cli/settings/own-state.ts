import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ConfigError } from '../../core/errors.ts';
import { shownLocation } from '../../state/open.ts';
import { openStore } from '../compose.ts';
import type { Io } from '../terminal.ts';
import { type CommonFlags, stateLocation } from './config.ts';
import { isUrl } from './state-url.ts';

/** One state a project. In files: one folder each, in which state, lock and an emulator's world stand beside each other there. */
export function ownState(location: string, id: number | 'fleet'): string {
  if (location === ':memory:') return location;
  if (isUrl(location)) {
    const url = URL.parse(location);
    if (url === null) return location;
    url.searchParams.set('state', ownName(url.searchParams.get('state'), id));
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
  // One that has not been written to yet is that of its folder.
  if (found !== projectId && (found !== null || isUrl(own))) return;
  const [given, there] = [location, own].map((each) =>
    shownLocation(isUrl(each) ? each : relative(io.cwd, each)),
  );
  const way = isUrl(own)
    ? `the same URL with state=${URL.parse(own)?.searchParams.get('state')}`
    : `--state ${there}, or move it away if it is of no use any more`;
  throw new ConfigError(
    `project ${projectId} has a state at ${there}, of a vdcsync run with a folder of projects, and none at ${given}: a second state would buy anew what the first one has. Give the first one: ${way}`,
    true,
  );
}

async function projectOf(flags: CommonFlags, io: Io): Promise<number | null> {
  const store = await openStore(flags, io, 'read');
  try {
    return (await store.info()).projectId;
  } finally {
    await store.close();
  }
}
