import { PgBoss } from 'pg-boss';
import type { Clock } from '../../core/clock.ts';
import type { DaemonLogger, Trigger } from '../ports.ts';
import type { PassQueue, PassWork, Wanted } from './pass-queue.ts';

type Database = ReturnType<PgBoss['getDb']>;

export interface BossQueueOptions {
  readonly connectionString: string;
  /** Tells fleets that share a database apart. */
  readonly name: string;
  /** Where heartbeats of jobs go, so that they never wait behind other statements. Left out: with the rest. */
  readonly heartbeats?: Pick<Database, 'executeSql'>;
  /** Real time. */
  readonly clock: Clock;
  readonly log: DaemonLogger;
}

interface PassJob {
  readonly project: number;
  readonly trigger: Trigger;
}

/** A job as it was taken: the attempt tells it from the same job in another replica's hands. */
interface Claim {
  readonly id: string;
  readonly retryCount: number;
  readonly project: number;
  readonly lost: AbortController;
}

const schema = 'vdcsync_jobs';
/** A worker that has said nothing for so long is taken for dead. */
const heartbeatSeconds = 10;
/** How often the living look for the dead. */
const superviseSeconds = 3;
/** Real ms. */
const everyMs = {
  /** Between two looks for work, where the last one found less than there was room for. */
  look: 1_000,
  heartbeat: 3_000,
  /** Between two looks whether somebody asked for a project that is worked on here. */
  asked: 2_000,
  hints: 1_000,
  /** Between two tries to say how a job ended. */
  settle: 500,
} as const;
/** A job whose end could not be told for so long is found by its missed heartbeat instead. Real ms. */
const settleMs = 10_000;

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

const byPeople: ReadonlySet<Trigger> = new Set(['file', 'git', 'webhook', 'signal', 'order', 'token']);

/**
 * The queue in PostgreSQL, by pg-boss, in a schema of its own. A project is a key of the queue:
 * one job of it may wait (policy `short`) and one be worked on (group concurrency 1).
 *
 * Jobs are taken, kept alive and ended here, several in one statement, and not by pg-boss's
 * own workers: each of those polls for itself, takes one job a poll, and keeps jobs that are done.
 */
export async function openBossQueue(options: BossQueueOptions): Promise<PassQueue> {
  const { connectionString, name, clock, log } = options;
  const boss = new PgBoss({
    connectionString,
    application_name: 'vdcsync',
    schema,
    max: 4,
    schedule: false,
    superviseIntervalSeconds: superviseSeconds,
    monitorIntervalSeconds: superviseSeconds,
  });
  const say = sayRarely(clock, log);
  boss.on('error', say);
  await boss.start();
  const [passes, hints] = [`passes.${name}`, `hints.${name}`];
  await boss.createQueue(passes, { policy: 'short', ...everyJob });
  await boss.updateQueue(passes, everyJob);
  await boss.createQueue(hints, { policy: 'short', retentionSeconds: 60, deleteAfterSeconds: 60 });
  await addIndex(boss.getDb());
  return new BossQueue(boss, { passes, hints }, options, say);
}

class BossQueue implements PassQueue {
  readonly #boss: PgBoss;
  readonly #names: { readonly passes: string; readonly hints: string };
  readonly #options: BossQueueOptions;
  readonly #say: (error: unknown) => void;
  readonly #stop = new AbortController();
  readonly #claims = new Map<number, Claim>();
  readonly #inHand = new Set<Promise<void>>();
  #loops: Promise<unknown> = Promise.resolve();
  #wake = new AbortController();
  #lagMs = 0;

  constructor(
    boss: PgBoss,
    names: { readonly passes: string; readonly hints: string },
    options: BossQueueOptions,
    say: (error: unknown) => void,
  ) {
    this.#boss = boss;
    this.#names = names;
    this.#options = options;
    this.#say = say;
  }

  async ask(projects: readonly number[], { trigger, afterMs }: Wanted): Promise<void> {
    if (projects.length === 0) return;
    const { passes } = this.#names;
    await this.#boss.insert(
      passes,
      projects.map((project) => jobOf(project, trigger, afterMs)),
    );
    // What waited already keeps the sooner of the two moments.
    await this.#boss.getDb().executeSql(
      `UPDATE ${schema}.job SET start_after = clock_timestamp() + make_interval(secs => $3), priority = greatest(priority, $4),
         data = data || jsonb_build_object('trigger', $5::text)
       WHERE name = $1 AND singleton_key = ANY($2::text[]) AND state < 'active'
         AND (start_after > clock_timestamp() + make_interval(secs => $3) OR ($3 = 0 AND priority < $4))`,
      [passes, projects.map(String), Math.max(0, afterMs) / 1000, priorityOf(trigger), trigger],
    );
    if (afterMs <= 0) this.#wake.abort();
  }

  async remind(projects: Parameters<PassQueue['remind']>[0]): Promise<void> {
    if (projects.length === 0) return;
    await this.#boss.insert(
      this.#names.passes,
      projects.map(({ project, afterMs }) => jobOf(project, 'timer', afterMs)),
    );
  }

  async work(work: PassWork): Promise<void> {
    const loops = [
      this.#every(everyMs.heartbeat, () => this.#beat()),
      this.#every(everyMs.asked, () => this.#passOn(work)),
      this.#takeAndWork(work),
    ];
    this.#loops = Promise.all(loops);
  }

  lagMs(): number {
    return this.#lagMs;
  }

  async hint(trigger: Trigger): Promise<void> {
    await this.#boss.send(this.#names.hints, { trigger }, { singletonKey: trigger });
  }

  async takeHints(take: (trigger: Trigger) => void): Promise<() => Promise<void>> {
    const { hints } = this.#names;
    const end = new AbortController();
    const taking = this.#every(
      everyMs.hints,
      async () => {
        const found = await this.#boss.fetch<{ trigger: Trigger }>(hints, { batchSize: 10 });
        if (found.length > 0)
          await this.#boss.deleteJob(
            hints,
            found.map(({ id }) => id),
          );
        for (const { data } of found) take(data.trigger);
      },
      end.signal,
    );
    return async () => {
      end.abort();
      await taking;
    };
  }

  async close(graceMs: number): Promise<void> {
    const { clock } = this.#options;
    this.#stop.abort();
    const late = new AbortController();
    const grace = clock.sleep(graceMs, late.signal).catch(() => undefined);
    await Promise.race([Promise.all([...this.#inHand, this.#loops]), grace]);
    late.abort();
    // What has not ended is another replica's as soon as this one's connections are gone.
    const left = [...this.#claims.values()];
    if (left.length > 0) await this.#boss.fail(this.#names.passes, left).catch(this.#say);
    await this.#boss.stop({ graceful: false });
  }

  /** Takes as much as there is room for, at once again while there may be more. */
  async #takeAndWork(work: PassWork): Promise<void> {
    const { passes } = this.#names;
    const { clock } = this.#options;
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController();
      const room = work.atOnce - this.#claims.size;
      let taken = 0;
      if (room > 0 && work.mayTake()) {
        const way = { batchSize: room, groupConcurrency: 1, includeMetadata: true } as const;
        const jobs = await this.#boss.fetch<PassJob>(passes, way).catch((error: unknown) => {
          this.#say(error);
          return [];
        });
        taken = jobs.length;
        for (const job of jobs) {
          this.#lagMs = Math.max(0, clock.now() - job.startAfter.getTime());
          this.#begin(job, work);
        }
      }
      const mayBeMore = taken > 0 && taken === room;
      const waitMs = mayBeMore && this.#claims.size < work.atOnce ? 0 : everyMs.look;
      await this.#rest(waitMs, mayBeMore);
    }
  }

  /** `hungry`: the next free place is taken at once. */
  async #rest(ms: number, hungry: boolean): Promise<void> {
    const signal = AbortSignal.any([this.#wake.signal, this.#stop.signal]);
    const resting = this.#options.clock.sleep(ms, signal).catch(() => undefined);
    await (hungry && this.#inHand.size > 0 ? Promise.race([resting, ...this.#inHand]) : resting);
  }

  #begin(
    job: { readonly id: string; readonly retryCount: number; readonly data: PassJob },
    work: PassWork,
  ): void {
    const { project, trigger } = job.data;
    const claim = { id: job.id, retryCount: job.retryCount, project, lost: new AbortController() };
    if (this.#claims.has(project)) {
      // A job that comes again and one that waited are the same wish.
      work.onAsked(project, trigger);
      void this.#settle(() => this.#boss.deleteJob(this.#names.passes, [claim]));
      return;
    }
    this.#claims.set(project, claim);
    const working = this.#work(claim, trigger, work).finally(() => {
      this.#claims.delete(project);
      this.#inHand.delete(working);
    });
    this.#inHand.add(working);
  }

  async #work(claim: Claim, trigger: Trigger, work: PassWork): Promise<void> {
    const { passes } = this.#names;
    let wanted: Wanted | undefined;
    try {
      wanted = await work.pass(claim.project, trigger, claim.lost.signal);
    } catch (error) {
      const failed = { message: error instanceof Error ? error.message : String(error) };
      return this.#settle(() => this.#boss.fail(passes, [claim], failed));
    }
    // The next one first: a process that dies in between leaves one job too many, and not one too few.
    await this.#settle(async () => {
      if (wanted !== undefined) await this.ask([claim.project], wanted);
      await this.#boss.deleteJob(passes, [claim]);
    });
  }

  /** Says how a job ended; while it cannot be said, the project waits for its heartbeat to be missed. */
  async #settle(say: () => Promise<unknown>): Promise<void> {
    const { clock } = this.#options;
    const giveUpAt = clock.monotonic() + settleMs;
    for (;;) {
      try {
        await say();
        return;
      } catch (error) {
        this.#say(error);
        if (this.#stop.signal.aborted || clock.monotonic() > giveUpAt) return;
        await clock.sleep(everyMs.settle);
      }
    }
  }

  /** One statement for all that is worked on here. What it misses has another worker, or was given back. */
  async #beat(): Promise<void> {
    const held = [...this.#claims.values()];
    if (held.length === 0) return;
    const { rows } = await (this.#options.heartbeats ?? this.#boss.getDb()).executeSql(
      `UPDATE ${schema}.job SET heartbeat_on = clock_timestamp()
       WHERE name = $1 AND state = 'active'
         AND (id, retry_count) IN (SELECT * FROM unnest($2::uuid[], $3::integer[]))
       RETURNING id`,
      [this.#names.passes, held.map(({ id }) => id), held.map(({ retryCount }) => String(retryCount))],
    );
    const alive = new Set(rows.map(({ id }) => String(id)));
    for (const { id, project, lost } of held) {
      if (this.#claims.get(project)?.id === id && !alive.has(id))
        lost.abort(new Error('the queue has given the project to another replica'));
    }
  }

  /** Who asks while a pass is going on asks this pass. One statement for all of them. */
  async #passOn({ onAsked }: PassWork): Promise<void> {
    const keys = [...this.#claims.keys()].map(String);
    if (keys.length === 0) return;
    const { rows } = await this.#boss.getDb().executeSql(
      `DELETE FROM ${schema}.job WHERE name = $1 AND singleton_key = ANY($2::text[])
         AND state < 'active' AND start_after <= clock_timestamp()
       RETURNING data`,
      [this.#names.passes, keys],
    );
    for (const { data } of rows as { data: PassJob }[]) onAsked(data.project, data.trigger);
  }

  async #every(ms: number, work: () => Promise<void>, end?: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const signal = end === undefined ? this.#stop.signal : AbortSignal.any([end, this.#stop.signal]);
    while (!signal.aborted) {
      await work().catch(this.#say);
      await clock.sleep(ms, signal).catch(() => undefined);
    }
  }
}

function jobOf(project: number, trigger: Trigger, afterMs: number) {
  const key = String(project);
  return {
    data: { project, trigger } satisfies PassJob,
    singletonKey: key,
    group: { id: key },
    startAfter: Math.max(0, afterMs) / 1000,
    priority: priorityOf(trigger),
  };
}

/** What people did goes before what only time asks for. */
function priorityOf(trigger: Trigger): number {
  return byPeople.has(trigger) ? 1 : 0;
}

/** What waits for one project is looked up by its key: without an index each look reads all projects. */
async function addIndex(database: Database): Promise<void> {
  const there = await database.executeSql(
    'SELECT 1 FROM pg_indexes WHERE schemaname = $1 AND indexname = $2',
    [schema, 'vdcsync_waiting'],
  );
  if (there.rows.length > 0) return;
  await database.executeSql(`
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('${schema}.vdcsync_waiting'));
    CREATE INDEX IF NOT EXISTS vdcsync_waiting ON ${schema}.job_common (name, singleton_key) WHERE state < 'active';
    COMMIT;
  `);
}

/** Every idle worker finds the same server gone, every second. */
function sayRarely(clock: Clock, log: DaemonLogger): (error: unknown) => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  return (error) => {
    if (clock.monotonic() - saidAt < 30_000) return;
    saidAt = clock.monotonic();
    log.warn({ error }, 'the queue of passes cannot be used');
  };
}
