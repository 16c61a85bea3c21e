import type { Context, Reply, Route } from '../call.ts';
import { findServer, idIn, recordExecution, refuseDeleting, serverIn, spend } from '../context.ts';
import { between } from '../dice.ts';
import { shows } from '../router.ts';
import { utcTimestamp } from '../time.ts';
import { backupView, policyView } from '../views.ts';
import type { Backup } from '../world.ts';

/** `@source API §4 /servers/{id}/backups` */
export const backupRoutes: readonly Route[] = [
  shows('list_backups', '/servers/{id}/backups', listBackups),
  {
    name: 'take_backup',
    method: 'POST',
    path: '/servers/{id}/backups',
    spends: () => true,
    handle: takeBackup,
  },
  shows('read_backup_policy', '/servers/{id}/backup-policy', (context) =>
    policyView(serverIn(context).policy),
  ),
];

/** `@assumption A42` */
function listBackups(context: Context): unknown {
  const { project, readings } = context;
  const id = idIn(context);
  const orphans = readings.orphanBackups === 'listed' && project.goneServers.includes(id);
  if (!orphans) findServer(context, id);
  return project.backups.filter((backup) => backup.serverId === id).map(backupView);
}

/** Answers at once, without a task: the list shows when the backup is available. */
function takeBackup(context: Context): Reply {
  const server = serverIn(context);
  spend(context);
  refuseDeleting(server);
  const { world, project, settings, nowMs } = context;
  const createdMs = freeMoment(project.backups, server.id, nowMs);
  const backup: Backup = {
    id: utcTimestamp(createdMs),
    serverId: server.id,
    createdMs,
    readyMs: createdMs + between(world, settings.durations.backup),
    status: 'creating',
    sizeBytes: between(world, [1_000_000_000, 20_000_000_000]),
    scheduled: false,
  };
  project.backups.push(backup);
  recordExecution(context, 'backup', `${server.id}/${backup.id}`);
  return { status: 201, data: backupView(backup) };
}

/** A backup's id is its second, so a server has one a second. */
function freeMoment(backups: readonly Backup[], serverId: number, nowMs: number): number {
  let moment = nowMs;
  while (backups.some((other) => other.serverId === serverId && other.id === utcTimestamp(moment)))
    moment += 1000;
  return moment;
}
