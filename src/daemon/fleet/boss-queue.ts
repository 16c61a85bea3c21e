import { PgBoss } from 'pg-boss';
import type { Clock } from '../../core/clock.ts';
import type { DaemonLogger, Trigger } from '../ports.ts';
import type { PassQueue } from './pass-queue.ts';

export interface BossQueueOptions {
  readonly connectionString: string;
  /** Tells fleets that share a database apart. */
  readonly name: string;
  /** Real time. */
  readonly clock: Clock;
  readonly log: DaemonLogger;
}

interface PassJob {
  readonly project: number;
  readonly trigger: Trigger;
}

/** A worker that has said nothing for so long is taken for dead. */
const heartbeatSeconds = 12;
/** How often the living look for the dead, and a free place for work. */
const lookSeconds = 4;
const pollSeconds = 1;

const everyJob = {
  heartbeatSeconds,
  // Its own limits end a pass; a worker that is gone is told by its heartbeat.
  expireInSeconds: 23 * 3_600,
  // A pass that dies comes up again after 1, 2, 4 … s, at most 15 min, for ever.
  retryLimit: 1_000_000,
  retryDelay: 1,
  retryBackoff: true,
  retryDelayMax: 900,
  deleteAfterSeconds: 600,
} as const;

/**
 * The queue in PostgreSQL, by pg-boss, in a schema of its own. A project is a key of the queue:
 * one job of it may wait (policy `short`) and one be worked on (group concurrency 1).
 */
export async function openBossQueue(options: BossQueueOptions): Promise<PassQueue> {
  const { connectionString, name, clock, log } = options;
  const boss = new PgBoss({
    connectionString,
    application_name: 'vdcsync',
    schema: 'vdcsync_jobs',
    max: 4,
    schedule: false,
    superviseIntervalSeconds: lookSeconds,
    monitorIntervalSeconds: lookSeconds,
  });
  boss.on('error', sayRarely(clock, log));
  await boss.start();
  const [passes, hints] = [`passes.${name}`, `hints.${name}`];
  await boss.createQueue(passes, { policy: 'short', ...everyJob });
  await boss.updateQueue(passes, everyJob);
  await boss.createQueue(hints, { policy: 'short', retentionSeconds: 60, deleteAfterSeconds: 60 });

  async function waiting(project: number) {
    const [job] = await boss.findJobs<PassJob>(passes, { key: String(project), queued: true });
    return job;
  }

  return {
    async ask(project, trigger, afterMs) {
      const key = String(project);
      const data: PassJob = { project, trigger };
      const startAfter = Math.max(0, afterMs) / 1000;
      const job = { singletonKey: key, group: { id: key }, startAfter };
      if ((await boss.send(passes, data, job)) !== null) return;
      const waits = await waiting(project);
      if (waits === undefined || waits.startAfter.getTime() <= clock.now() + afterMs) return;
      await boss.update(passes, data, { id: waits.id, startAfter });
    },
    async takeDue(project) {
      const waits = await waiting(project);
      if (waits === undefined || waits.startAfter.getTime() > clock.now()) return undefined;
      await boss.deleteJob(passes, waits.id);
      return waits.data.trigger;
    },
    async work(atOnce, pass) {
      const way = {
        localConcurrency: atOnce,
        groupConcurrency: 1,
        heartbeatRefreshSeconds: heartbeatSeconds / 4,
        pollingIntervalSeconds: pollSeconds,
      };
      await boss.work<PassJob>(passes, way, async ([job]) => {
        if (job !== undefined) await pass(job.data.project, job.data.trigger);
      });
    },
    async hint(trigger) {
      await boss.send(hints, { trigger }, { singletonKey: trigger });
    },
    async takeHints(take) {
      await boss.work<{ trigger: Trigger }>(hints, { pollingIntervalSeconds: pollSeconds }, async ([job]) => {
        if (job !== undefined) take(job.data.trigger);
      });
      return () => boss.offWork(hints);
    },
    close: (graceMs) => boss.stop({ graceful: true, timeout: graceMs }),
  };
}

/** Every idle worker finds the same server gone, every second. */
function sayRarely(clock: Clock, log: DaemonLogger): (error: Error) => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  return (error) => {
    if (clock.monotonic() - saidAt < 30_000) return;
    saidAt = clock.monotonic();
    log.warn({ error }, 'the queue of passes cannot be used');
  };
}
