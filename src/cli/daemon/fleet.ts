import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Assignment } from '../../daemon/fleet/assignment.ts';
import { Board } from '../../daemon/fleet/board.ts';
import { Fleet } from '../../daemon/fleet/fleet.ts';
import { Heart } from '../../daemon/fleet/heart.ts';
import type { PassQueue } from '../../daemon/fleet/pass-queue.ts';
import type { Notifier } from '../../daemon/notices/notifier.ts';
import type { DaemonLogger } from '../../daemon/ports.ts';
import { memoryNote, readMemory } from '../../daemon/project/memory.ts';
import { systemClock } from '../../platform/system-clock.ts';
import { systemRandom } from '../../platform/system-random.ts';
import { isPostgresUrl, parsePostgresUrl } from '../../state/postgres-url.ts';
import { openStore } from '../compose.ts';
import { stateLocation } from '../settings/config.ts';
import { ownName, ownState } from '../settings/own-state.ts';
import { stateNameOf } from '../settings/state-url.ts';
import type { Io } from '../terminal.ts';
import type { DaemonSettings, RunFlags } from './settings.ts';

/** Many projects whose states are in PostgreSQL may be worked on by many processes. */
export function isShared({ projects, mode }: DaemonSettings, flags: RunFlags, io: Io): boolean {
  return projects === 'many' && mode === 'correct' && isPostgresUrl(stateLocation(flags, io));
}

/**
 * This process as one of a fleet. The replicas find each other by the state they were given.
 *
 * @throws StateError where the server cannot be reached or used.
 */
export async function openFleet(
  { intervalMs, timeScale, parallel }: DaemonSettings,
  flags: RunFlags,
  io: Io,
  log: DaemonLogger,
  told: Notifier,
): Promise<{ readonly fleet: Fleet; readonly queue: PassQueue; readonly heart: Heart }> {
  const location = stateLocation(flags, io);
  const own = { ...flags, state: ownState(location, 'fleet') };
  // Says in words what is wrong with the server, before the queue does in its own.
  await (await openStore(own, io, 'read')).close();
  const place = { id: randomUUID(), host: hostname(), pid: process.pid };
  const { PostgresHeartbeat } = await import('../../state/postgres-replica.ts');
  const recorded = new PostgresHeartbeat(parsePostgresUrl(location), place);
  const heart = new Heart({
    ...{ id: place.id, clock: systemClock, log },
    beat: () => recorded.beat(),
    close: () => recorded.close(),
  });
  await heart.start();
  const open = (mode: 'read' | 'write') => openStore(own, io, mode, { replica: heart });
  const board = new Board({ open, assignments: () => assignmentsOf(location), clock: systemClock });
  // Loaded only here: nobody else needs it.
  const { openBossQueue } = await import('../../daemon/fleet/boss-queue.ts');
  const { connectionString, state: name } = parsePostgresUrl(location);
  const heartbeats = { executeSql: (sql: string, values: unknown[] = []) => recorded.run(sql, values) };
  const queue = await openBossQueue({ connectionString, name, heartbeats, clock: systemClock, log });
  const fleet = new Fleet({
    ...{ board, queue, heart, told, log, clock: systemClock, random: systemRandom, atOnce: parallel },
    replica: replicaName(place.host, place.pid),
    intervalMs: intervalMs / timeScale,
  });
  return { fleet, queue, heart };
}

async function assignmentsOf(location: string): Promise<readonly Assignment[]> {
  const { surveyPostgres } = await import('../../state/postgres-survey.ts');
  const fleet = stateNameOf(location);
  const states = await surveyPostgres(location, memoryNote);
  return states
    .filter(({ name, projectId }) => name === ownName(fleet, projectId))
    .map(({ projectId: project, owner, note }) => ({
      project,
      worker: owner && replicaName(owner.host, owner.pid),
      since: owner?.since,
      memory: readMemory(note),
    }));
}

function replicaName(host: string, pid: number): string {
  return `${host}:${pid}`;
}
