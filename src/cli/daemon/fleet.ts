import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Desired } from '../../core/desired.ts';
import { type FleetQueue, urgencies } from '../../core/fleet.ts';
import { type Assignment, Board } from '../../daemon/fleet/board.ts';
import { DatabaseClock } from '../../daemon/fleet/database-clock.ts';
import { Fleet } from '../../daemon/fleet/fleet.ts';
import { Lease } from '../../daemon/fleet/lease.ts';
import { Releases } from '../../daemon/fleet/releases.ts';
import type { Notifier } from '../../daemon/notifications/notifier.ts';
import type { DaemonLogger } from '../../daemon/ports.ts';
import { memoryNote, readMemory } from '../../daemon/project/memory.ts';
import { systemClock, systemRandom } from '../../platform/system.ts';
import { JobQueue } from '../../state/job-queue.ts';
import type { PostgresInspection } from '../../state/postgres-inspection.ts';
import type { Replica } from '../../state/postgres-sessions.ts';
import { isPostgresUrl, parsePostgresUrl } from '../../state/postgres-url.ts';
import { stateNameOf, stateWord } from '../flags.ts';
import { ownName, ownState, stateLocation } from '../settings/config.ts';
import type { Io } from '../terminal.ts';
import type { DaemonSettings, RunFlags } from './settings.ts';

/** Many projects whose states are in PostgreSQL may be worked on by many processes. */
export function isShared({ projects, mode }: DaemonSettings, flags: RunFlags, io: Io): boolean {
  return projects === 'many' && mode === 'correct' && isPostgresUrl(stateLocation(flags, io));
}

/** This process as one of a fleet. */
export type OpenFleet = Awaited<ReturnType<typeof openFleet>>;

/**
 * Makes this process one of a fleet. The replicas find each other by the state they were given.
 *
 * @returns `clock`: the time that the replicas share
 * @throws StateError where the server cannot be reached or used.
 */
export async function openFleet(
  { parallel, rollout }: DaemonSettings,
  flags: RunFlags,
  io: Io,
  log: DaemonLogger,
  notified: Notifier,
  deletions: (desired: Desired) => Promise<number>,
) {
  const location = stateLocation(flags, io);
  const own = ownState(location, 'fleet');
  const name = replicaName();
  const lease = new Lease(systemClock);
  const clock = new DatabaseClock(systemClock);
  const { PostgresSessions } = await import('../../state/postgres-sessions.ts');
  const sessions = new PostgresSessions(parsePostgresUrl(location));
  // The first connection checks the URL and the server, and makes the tables.
  sessions.giveBack(await sessions.take());
  const queue: FleetQueue = await JobQueue.open(location, {
    ...{ instance: name, as: 'replica', tenants: rollout.tenants, random: systemRandom },
    onError: (error) => log.debug({ error }, 'error of the queue'),
  });
  const { PostgresInspection } = await import('../../state/postgres-inspection.ts');
  const inspection: PostgresInspection = new PostgresInspection(location);
  const replica: Replica = { id: randomUUID(), isAlive: () => lease.isAlive(), sessions };
  const { openPublications } = await import('../../state/postgres-publications.ts');
  const open = (mode: 'read' | 'write') =>
    openPublications(own, { mode, now: systemClock.now(), lineage: randomUUID(), replica });
  const assignments = (of?: readonly number[]) => assignmentsOf(inspection, location, of);
  const board = new Board({ open, assignments, clock });
  const ask = (projects: readonly number[]) => queue.ask(projects.map(String), 'fleet', urgencies.edit);
  const releases = new Releases({
    ...{ policy: rollout, board, ask, left: assignments, deletions, atOnce: parallel, clock, log },
    approval: (change) => `vdcsync approve-commit ${change} --state ${stateWord(location, io.env)}`,
    onNotification: (notification) => notified.notify(notification),
  });
  const fleet = new Fleet({
    ...{ replica: name, board, queue, lease, log, clock, atOnce: parallel },
    close: async () => {
      await inspection.close();
      await sessions.close();
    },
  });
  return { fleet, queue, replica, releases, inspection, clock };
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
    .map(({ projectId: project, owner, note }) => ({
      project,
      worker: owner && replicaName(owner.host, owner.pid),
      since: owner?.since,
      memory: readMemory(note),
    }));
}

/** The name of a process in the records of its turns. Default: this process. */
export function replicaName(host = hostname(), pid = process.pid): string {
  return `${host}:${pid}`;
}
