import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Desired } from '../../core/desired.ts';
import type { Assignment } from '../../daemon/fleet/assignment.ts';
import { Board } from '../../daemon/fleet/board.ts';
import { Calls, farewell } from '../../daemon/fleet/calls.ts';
import { Fleet } from '../../daemon/fleet/fleet.ts';
import { Heart } from '../../daemon/fleet/heartbeat.ts';
import { Releases } from '../../daemon/fleet/releases.ts';
import type { Notifier } from '../../daemon/notifications/notifier.ts';
import type { DaemonLogger } from '../../daemon/ports.ts';
import { memoryNote, readMemory } from '../../daemon/project/memory.ts';
import { systemClock } from '../../platform/system-clock.ts';
import { systemRandom } from '../../platform/system-random.ts';
import type { PostgresInspection } from '../../state/postgres-inspection.ts';
import type { Replica } from '../../state/postgres-replica.ts';
import { isPostgresUrl, parsePostgresUrl } from '../../state/postgres-url.ts';
import { stateLocation } from '../settings/config.ts';
import { ownName, ownState } from '../settings/own-state.ts';
import { stateNameOf, stateWord } from '../settings/state-url.ts';
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
  { intervalMs, timeScale, parallel, rollout }: DaemonSettings,
  flags: RunFlags,
  io: Io,
  log: DaemonLogger,
  notified: Notifier,
  deletions: (desired: Desired) => Promise<number>,
): Promise<{
  readonly fleet: Fleet;
  readonly calls: Calls;
  readonly heart: Heart;
  readonly replica: Replica;
  readonly releases: Releases;
  readonly inspection: PostgresInspection;
}> {
  const location = stateLocation(flags, io);
  const own = ownState(location, 'fleet');
  const place = { id: randomUUID(), host: hostname(), pid: process.pid };
  const { PostgresReplica } = await import('../../state/postgres-replica.ts');
  const calls: Calls = new Calls({ send: (text) => among.call(text), log });
  const among = new PostgresReplica(parsePostgresUrl(location), place, (text) => calls.hear(text));
  const heart = new Heart({
    ...{ id: place.id, clock: systemClock, log },
    beat: async () => (await among.beat()).map(({ id }) => id),
    close: async () => {
      await inspection.close();
      await sessions.close();
      await among.close(farewell);
    },
  });
  await heart.start();
  const { PostgresInspection } = await import('../../state/postgres-inspection.ts');
  const inspection: PostgresInspection = new PostgresInspection(location);
  const { PostgresSessions } = await import('../../state/postgres-sessions.ts');
  const sessions = new PostgresSessions(parsePostgresUrl(location));
  const replica: Replica = { id: heart.id, isAlive: () => heart.isAlive(), sessions };
  const { openPublications } = await import('../../state/postgres-publications.ts');
  const open = (mode: 'read' | 'write') =>
    openPublications(own, { mode, now: systemClock.now(), lineage: randomUUID(), replica });
  const board = new Board({
    open,
    assignments: () => assignmentsOf(inspection, location),
    clock: systemClock,
  });
  const left = (projects: readonly number[]) => assignmentsOf(inspection, location, projects);
  const releases = new Releases({
    ...{ policy: rollout, board, calls, left, deletions, atOnce: parallel, clock: systemClock, log },
    approval: (change) => `vdcsync approve-commit ${change} --state ${stateWord(location, io.env)}`,
    onNotification: (notice) => notified.tell(notice),
  });
  const fleet = new Fleet({
    ...{
      board,
      calls,
      heart,
      notified,
      log,
      left,
      clock: systemClock,
      random: systemRandom,
      atOnce: parallel,
    },
    replica: replicaName(place.host, place.pid),
    intervalMs: intervalMs / timeScale,
  });
  return { fleet, calls, heart, replica, releases, inspection };
}

async function assignmentsOf(
  inspection: PostgresInspection,
  location: string,
  projects?: readonly number[],
): Promise<readonly Assignment[]> {
  const fleet = stateNameOf(location);
  const names = projects?.map((project) => ownName(fleet, project));
  const states = await inspection.states({ note: memoryNote, names });
  return states
    .filter(({ name, projectId }) => name === ownName(fleet, projectId))
    .map(({ projectId: project, owner, isTaken, note }) => ({
      project,
      worker: owner && replicaName(owner.host, owner.pid),
      since: owner?.since,
      isTaken,
      memory: readMemory(note),
    }));
}

function replicaName(host: string, pid: number): string {
  return `${host}:${pid}`;
}
