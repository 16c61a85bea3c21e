import { meter } from './metering.ts';
import { appear, finishTask } from './tasks.ts';
import { utcTimestamp } from './time.ts';
import type { BackupPolicy, Project, World } from './world.ts';

const DAY_MS = 86_400_000;
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** No policy is run more often than this at once, however far the clock has moved. */
const MOST_RUNS = 366;

/**
 * Applies every change that was due by `nowMs`: tasks end, leftovers of failed tasks
 * appear, backups become available, scheduled backups are taken. No part of the emulator
 * waits for a timer. The emulator calls this function before each request and each read of the world.
 */
export function advance(world: World, nowMs: number): void {
  for (const project of world.projects) {
    const due = project.tasks.filter((task) => !task.done && !task.stuck && task.endsMs <= nowMs);
    due.sort((one, other) => one.endsMs - other.endsMs);
    for (const task of due) {
      if (task.done) continue;
      finishTask(world, project, task);
      meter(project, task.endsMs);
    }
    for (const task of project.tasks) if ((task.appearsMs ?? Infinity) <= nowMs) appear(world, project, task);
    runPolicies(project, nowMs);
    for (const backup of project.backups) {
      if (backup.status === 'creating' && backup.readyMs <= nowMs) backup.status = 'available';
    }
  }
}

/** When the policy runs next (UTC), or null when it does not. */
export function nextRun(policy: BackupPolicy, afterMs: number): number | null {
  if (!policy.enabled || policy.days.length === 0) return null;
  const midnight = Math.floor(afterMs / DAY_MS) * DAY_MS;
  for (let ahead = 0; ahead <= 7; ahead += 1) {
    const moment = midnight + ahead * DAY_MS + (policy.hour * 60 + policy.minute) * 60_000;
    const day = DAYS[new Date(moment).getUTCDay()] ?? '';
    if (moment > afterMs && policy.days.includes(day)) return moment;
  }
  return null;
}

/** The time of a scheduled backup decides its size, without dice. So the moment of the next request has no effect on it. */
function runPolicies(project: Project, nowMs: number): void {
  for (const server of project.servers) {
    const { policy } = server;
    for (let run = 0; run < MOST_RUNS && policy.nextRunMs !== null && policy.nextRunMs <= nowMs; run += 1) {
      const createdMs = policy.nextRunMs;
      project.backups.push({
        id: utcTimestamp(createdMs),
        serverId: server.id,
        createdMs,
        readyMs: createdMs + 60_000,
        status: 'creating',
        sizeBytes: 5_000_000_000 + (createdMs % 1_000_000),
        scheduled: true,
      });
      policy.lastRunMs = createdMs;
      policy.nextRunMs = nextRun(policy, createdMs);
      const mine = project.backups.filter((backup) => backup.serverId === server.id && backup.scheduled);
      const old = new Set(mine.slice(0, Math.max(0, mine.length - policy.keep)));
      project.backups = project.backups.filter((backup) => !old.has(backup));
    }
  }
}
