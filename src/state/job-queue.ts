import { randomUUID } from 'node:crypto';
import type { JobWithMetadata, PgBoss } from 'pg-boss';
import type { Random } from '../core/clock.ts';
import {
  type FleetQueue,
  type HeardHint,
  type Hint,
  type JobClaim,
  type NextReconciliation,
  sourceKey,
  type Taking,
  type Trigger,
  urgencies,
} from '../core/fleet.ts';
import { parsePostgresUrl } from './postgres-url.ts';

/** A job to be. */
interface WantedJob extends NextReconciliation {
  readonly key: string;
}

interface JobQueueOptions {
  /** For the registry of pg-boss. */
  readonly instance: string;
  /** `command`: neither migrates nor supervises. */
  readonly as: 'replica' | 'command';
  /** The projects of each tenant. */
  readonly tenants?: Readonly<Record<string, readonly number[]>>;
  readonly random: Random;
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
export class JobQueue implements FleetQueue {
  readonly #boss: PgBoss;
  readonly #jobs: string;
  readonly #hints: string;
  readonly #random: Random;
  /** By key. */
  readonly #tenants: ReadonlyMap<string, string>;

  /** @throws an error of the driver if the server cannot be reached or used */
  static async open(url: string, options: JobQueueOptions): Promise<JobQueue> {
    const { instance, as, onError } = options;
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
    const queue = new JobQueue(boss, state, options);
    try {
      await boss.start({ attempts: isReplica ? 3 : 1 });
      if (isReplica) await queue.#create();
    } catch (error) {
      await boss.stop({ graceful: false }).catch(() => undefined);
      throw error;
    }
    return queue;
  }

  private constructor(boss: PgBoss, fleet: string, { random, tenants = {} }: JobQueueOptions) {
    this.#boss = boss;
    this.#jobs = `${fleet}/projects`;
    this.#hints = `${fleet}/hints`;
    this.#random = random;
    this.#tenants = new Map(
      Object.entries(tenants).flatMap(([tenant, ids]) => ids.map((id) => [String(id), tenant] as const)),
    );
  }

  async take(most: number, { leastUrgency, fullTenants }: Taking): Promise<readonly JobClaim[]> {
    const jobs = await this.#boss.fetch<JobData>(this.#jobs, {
      ...{ batchSize: most, includeMetadata: true, minPriority: leastUrgency },
      ...(fullTenants.length === 0 ? {} : { ignoreGroups: [...fullTenants] }),
    });
    return jobs.map(claimed);
  }

  async confirm(claims: readonly Attempt[]): Promise<ReadonlySet<string>> {
    const answer: object = await this.#boss.touch(this.#jobs, claims.map(attemptOf));
    return new Set('settled' in answer ? (answer.settled as string[]) : claims.map(({ id }) => id));
  }

  /** The next job is there before this one is done, so that a process that ends in between loses no key. */
  async end(claim: JobClaim, next: NextReconciliation | undefined): Promise<void> {
    if (next !== undefined)
      await this.#boss.insert(this.#jobs, [this.#insertOf({ ...next, key: claim.key })]);
    await this.#boss.complete(this.#jobs, [attemptOf(claim)]);
  }

  async fail(claim: Attempt, message: string): Promise<void> {
    await this.#boss.fail(this.#jobs, [attemptOf(claim)], { message });
  }

  async add(keys: readonly string[], withinMs: number): Promise<void> {
    // `findJobs` of pg-boss returns every column, and the ended jobs too.
    const sql = `SELECT DISTINCT singleton_key AS key FROM vdcsync_jobs.job WHERE name = $1 AND state <= 'active'`;
    const { rows } = await this.#boss.getDb().executeSql(sql, [this.#jobs]);
    const known = new Set(rows.map(({ key }: { readonly key: string }) => key));
    const lost = keys.filter((key) => !known.has(key));
    const next = { trigger: 'timer', urgency: urgencies.time } as const;
    await this.#insert(lost.map((key) => ({ ...next, key, afterMs: this.#random.next() * withinMs })));
  }

  /** Where a job of the key waits already, that one takes the new trigger, urgency and time. */
  async ask(keys: readonly string[], trigger: Trigger, urgency: number): Promise<void> {
    const jobs = keys.map((key) => ({ key, trigger, urgency, afterMs: 0 }));
    let left = jobs.length > fewKeys ? await this.#insert(jobs) : jobs;
    // `upsert` of pg-boss is a transaction with three statements and more.
    while (left.length > 0) {
      const notUpdated: WantedJob[] = [];
      for (const job of left) {
        const { data, priority, ...options } = this.#insertOf(job);
        // A full round must not delay an edit that waits already.
        const changed = urgency < urgencies.edit ? options : { ...options, priority };
        const { updated } = await this.#boss.update(this.#jobs, data, changed);
        if (updated === 0) notUpdated.push(job);
      }
      left = await this.#insert(notUpdated);
    }
  }

  async send(hint: Hint): Promise<void> {
    await this.#boss.send(this.#hints, hint);
  }

  async hints(): Promise<readonly HeardHint[]> {
    const jobs = await this.#boss.fetch<Hint>(this.#hints, { batchSize: 100 });
    return jobs.map(({ id, retryCount, data }) => ({
      hint: data,
      done: async () => void (await this.#boss.complete(this.#hints, [{ id, retryCount }])),
    }));
  }

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
    await this.#insert([{ key: sourceKey, trigger: 'start', urgency: urgencies.lead, afterMs: 0 }]);
  }

  /** Inserts the jobs whose keys have none that waits. Returns the others. */
  async #insert(jobs: readonly WantedJob[]): Promise<readonly WantedJob[]> {
    const left: WantedJob[] = [];
    for (let at = 0; at < jobs.length; at += atOnce) {
      const some = jobs.slice(at, at + atOnce).map((job) => ({ job, id: randomUUID() }));
      const inserts = some.map(({ job, id }) => ({ ...this.#insertOf(job), id }));
      const added = new Set(await this.#boss.insert(this.#jobs, inserts, { returnId: true }));
      left.push(...some.flatMap(({ job, id }) => (added.has(id) ? [] : [job])));
    }
    return left;
  }

  #insertOf({ key, trigger, urgency, afterMs }: WantedJob) {
    const tenant = this.#tenants.get(key);
    const data: JobData = { trigger };
    return {
      ...{ data, singletonKey: key, priority: urgency, startAfter: Math.max(0, afterMs) / 1_000 },
      ...(tenant === undefined ? {} : { group: { id: tenant } }),
    };
  }
}

interface JobData {
  readonly trigger: Trigger;
}

type Attempt = Pick<JobClaim, 'id' | 'attempt'>;

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

function claimed(job: JobWithMetadata<JobData>): JobClaim {
  const { id, retryCount, singletonKey, data, priority, groupId, startAfter, startedOn } = job;
  return {
    ...{ id, attempt: retryCount, key: singletonKey ?? '', trigger: data.trigger },
    ...{ urgency: priority, tenant: groupId ?? undefined },
    lateMs: Math.max(0, startedOn.getTime() - startAfter.getTime()),
    takenAt: startedOn.getTime(),
  };
}
