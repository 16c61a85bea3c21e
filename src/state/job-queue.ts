import { randomUUID } from 'node:crypto';
import type { JobWithMetadata, PgBoss } from 'pg-boss';
import { parsePostgresUrl } from './postgres-url.ts';

/** A job that this process has. */
export interface ClaimedJob<Data> {
  readonly id: string;
  /** A later attempt of the same job takes it from this one. */
  readonly attempt: number;
  readonly key: string;
  readonly data: Data;
  readonly priority: number;
  readonly group: string | undefined;
  /** How long the job was due before this process took it, in ms. */
  readonly lateMs: number;
  /** When this process took the job. Wall ms of the database. */
  readonly takenAt: number;
}

/** A job to be. */
export interface WantedJob<Data> {
  readonly key: string;
  readonly data: Data;
  readonly priority: number;
  readonly group: string | undefined;
  readonly afterMs: number;
}

export interface JobQueueOptions {
  /** For the registry of pg-boss. */
  readonly instance: string;
  /** `command`: neither migrates nor supervises. */
  readonly as: 'replica' | 'command';
  readonly onError: (error: unknown) => void;
}

/** More keys than this are inserted together first. */
const fewKeys = 20;
/**
 * So many jobs go into one statement. They have one creation time, by which the queue orders equally urgent jobs. With few of
 * them, the jobs of a replica that was killed come before most of the others that are due.
 */
const atOnce = 20;
/** A statement that takes longer has failed: behind a silent server, the process would wait without end. Real ms. */
const answerMs = 5_000;

/**
 * The keyed jobs of one fleet, with pg-boss: one queue in which a key has at most one job in hand and one that waits, and
 * one for hints. pg-boss migrates its own schema, prunes ended jobs, and gives the jobs of a process that no
 * longer confirms them to others.
 */
export class JobQueue<Data extends object, Hint extends object> {
  readonly #boss: PgBoss;
  readonly #jobs: string;
  readonly #hints: string;

  /** @throws an error of the driver if the server cannot be reached or used */
  static async open<Data extends object, Hint extends object>(
    url: string,
    { instance, as, onError }: JobQueueOptions,
  ): Promise<JobQueue<Data, Hint>> {
    const { connectionString, state } = parsePostgresUrl(url);
    // Only a fleet needs the package, and loading it takes time.
    const { PgBoss: Boss } = await import('pg-boss');
    // The database may name a schema in which another user has made functions.
    const driver = { query_timeout: answerMs, keepAlive: true, options: '-c search_path=pg_catalog' };
    const isReplica = as === 'replica';
    const boss = new Boss({
      ...{ connectionString, application_name: 'vdcsync', schema: 'vdcsync_jobs', max: 2, ...driver },
      ...{ schedule: false, migrate: isReplica, supervise: isReplica, registerInstance: isReplica },
      ...{ instanceName: instance, superviseIntervalSeconds: 3, monitorIntervalSeconds: 3 },
      // No process listens to the warnings of pg-boss, so it need not ask how the server vacuums.
      ...{ maintenanceIntervalSeconds: 60, flowIntervalSeconds: 3_600, monitorVacuum: false },
    });
    boss.on('error', onError);
    const queue = new JobQueue<Data, Hint>(boss, state);
    try {
      await boss.start({ attempts: isReplica ? 3 : 1 });
      if (isReplica) await queue.#create();
    } catch (error) {
      await boss.stop({ graceful: false }).catch(() => undefined);
      throw error;
    }
    return queue;
  }

  private constructor(boss: PgBoss, fleet: string) {
    this.#boss = boss;
    this.#jobs = `${fleet}/projects`;
    this.#hints = `${fleet}/hints`;
  }

  /** The most urgent jobs that are due. `fullGroups`: groups whose jobs wait. */
  async take(
    most: number,
    { leastPriority, fullGroups }: { readonly leastPriority: number; readonly fullGroups: readonly string[] },
  ): Promise<readonly ClaimedJob<Data>[]> {
    const jobs = await this.#boss.fetch<Data>(this.#jobs, {
      ...{ batchSize: most, includeMetadata: true, minPriority: leastPriority },
      ...(fullGroups.length === 0 ? {} : { ignoreGroups: [...fullGroups] }),
    });
    return jobs.map(claimed);
  }

  /** Returns the ids of the jobs that this process still has. */
  async confirm(jobs: readonly Attempt[]): Promise<ReadonlySet<string>> {
    const answer: object = await this.#boss.touch(this.#jobs, jobs.map(attemptOf));
    return new Set('settled' in answer ? (answer.settled as string[]) : jobs.map(({ id }) => id));
  }

  /** The job is done. The next one is there first, so that a process that ends in between loses no key. */
  async end(job: Attempt, next?: WantedJob<Data>): Promise<void> {
    if (next !== undefined) await this.#boss.insert(this.#jobs, [insertOf(next)]);
    await this.#boss.complete(this.#jobs, [attemptOf(job)]);
  }

  /** The job is made again, with the back-off of the queue. */
  async fail(job: Attempt, message: string): Promise<void> {
    await this.#boss.fail(this.#jobs, [attemptOf(job)], { message });
  }

  /** The keys that have a job, in hand or waiting. */
  async keys(): Promise<ReadonlySet<string>> {
    // `findJobs` of pg-boss returns every column, and the ended jobs too.
    const sql = `SELECT DISTINCT singleton_key AS key FROM vdcsync_jobs.job WHERE name = $1 AND state <= 'active'`;
    const { rows } = await this.#boss.getDb().executeSql(sql, [this.#jobs]);
    return new Set(rows.map(({ key }: { readonly key: string }) => key));
  }

  /** Adds the jobs whose keys have none that waits. Returns the others. */
  async add(jobs: readonly WantedJob<Data>[]): Promise<readonly WantedJob<Data>[]> {
    const left: WantedJob<Data>[] = [];
    for (let at = 0; at < jobs.length; at += atOnce) {
      const some = jobs.slice(at, at + atOnce).map((job) => ({ job, id: randomUUID() }));
      const inserts = some.map(({ job, id }) => ({ ...insertOf(job), id }));
      const added = new Set(await this.#boss.insert(this.#jobs, inserts, { returnId: true }));
      left.push(...some.flatMap(({ job, id }) => (added.has(id) ? [] : [job])));
    }
    return left;
  }

  /**
   * Adds the jobs. Where a job of the key waits already, that one takes the new data, priority and time.
   * `keepPriority`: it takes no new priority.
   */
  async put(jobs: readonly WantedJob<Data>[], { keepPriority = false } = {}): Promise<void> {
    let left = jobs.length > fewKeys ? await this.add(jobs) : jobs;
    // `upsert` of pg-boss is a transaction with three statements and more.
    while (left.length > 0) {
      const missed: WantedJob<Data>[] = [];
      for (const job of left) {
        const { data, ...rest } = job;
        const { priority, ...options } = optionsOf(rest);
        const changed = keepPriority ? options : { ...options, priority };
        const { updated } = await this.#boss.update(this.#jobs, data, changed);
        if (updated === 0) missed.push(job);
      }
      left = await this.add(missed);
    }
  }

  async send(hint: Hint): Promise<void> {
    await this.#boss.send(this.#hints, hint);
  }

  /** The hints that were sent, each until it is done. */
  async hints(): Promise<readonly { readonly hint: Hint; readonly done: () => Promise<void> }[]> {
    const jobs = await this.#boss.fetch<Hint>(this.#hints, { batchSize: 100 });
    return jobs.map(({ id, retryCount, data }) => ({
      hint: data,
      done: async () => void (await this.#boss.complete(this.#hints, [{ id, retryCount }])),
    }));
  }

  /** How many jobs were due and waited at the last check of the monitor. */
  async waiting(): Promise<number> {
    return (await this.#boss.getQueue(this.#jobs))?.readyCount ?? 0;
  }

  close(): Promise<void> {
    return this.#boss.stop({ graceful: false });
  }

  async #create(): Promise<void> {
    await this.#boss.createQueue(this.#jobs, { policy: 'stately', ...jobOptions });
    // A leader that ends before it has done a hint leaves the hint to the next one after a minute.
    await this.#boss.createQueue(this.#hints, {
      expireInSeconds: 60,
      retryLimit: 1_000,
      deleteAfterSeconds: 60,
    });
  }
}

type Attempt = Pick<ClaimedJob<unknown>, 'id' | 'attempt'>;

const jobOptions = {
  heartbeatSeconds: 10,
  // The longest that pg-boss allows: a turn ends with its work.
  expireInSeconds: 24 * 3_600,
  retentionSeconds: 365 * 24 * 3_600,
  deleteAfterSeconds: 60,
  // A job that ends the process each time comes back later and later.
  retryLimit: 1_000_000,
  retryDelay: 1,
  retryBackoff: true,
  retryDelayMax: 900,
};

function attemptOf({ id, attempt }: Attempt) {
  return { id, retryCount: attempt };
}

function optionsOf({ key, priority, group, afterMs }: Omit<WantedJob<unknown>, 'data'>) {
  return {
    ...{ singletonKey: key, priority, startAfter: Math.max(0, afterMs) / 1_000 },
    ...(group === undefined ? {} : { group: { id: group } }),
  };
}

function insertOf<Data extends object>({ data, ...job }: WantedJob<Data>) {
  return { ...optionsOf(job), data };
}

function claimed<Data extends object>(job: JobWithMetadata<Data>): ClaimedJob<Data> {
  const { id, retryCount, singletonKey, data, priority, groupId, startAfter, startedOn } = job;
  return {
    ...{ id, attempt: retryCount, key: singletonKey ?? '', data, priority, group: groupId ?? undefined },
    lateMs: Math.max(0, startedOn.getTime() - startAfter.getTime()),
    takenAt: startedOn.getTime(),
  };
}
