import { within } from '../../core/clock.ts';
import { LaterReleaseError, messageOf, StateError, StateInUseError } from '../../core/errors.ts';
import {
  continued,
  type FleetQueue,
  type JobClaim,
  type NextReconciliation,
  sourceKey,
  type Trigger,
  urgencies,
} from '../../core/fleet.ts';
import type { DaemonLogger } from '../ports.ts';
import type { DaemonProject } from '../project/project.ts';
import { Wake } from '../scheduling/wake.ts';
import { markOf } from '../sources/source.ts';
import type { Board, SpecInForce } from './board.ts';
import type { DatabaseClock } from './database-clock.ts';
import { Fitness, UnfitError } from './fitness.ts';
import type { Lease } from './lease.ts';

/** Time after which the queue is asked again. Real ms. */
const pollMs = 1_000;
/** Jobs that end at about the same time are replaced by one statement. Real ms. */
const gatherMs = 20;
/** Time between two confirmations of the jobs in hand. Real ms. */
const confirmMs = 3_000;
/** Time between two checks whether the specs of the projects in hand have changed. Real ms. */
const changedMs = 1_000;
/** How long work may take to end after the request to stop. Then other replicas take over its states. Real ms. */
const graceMs = 7_000;
/** Waiting time before a project whose state another process owns is tried again. Real ms. */
const inUseRetryMs = 5_000;
/** Work that was asked to end, and has not ended after this time, counts as hanging. Real ms. */
const hangsMs = 60_000;
/** A queue that has not answered for so long is out of reach. Real ms. */
const silentMs = 8_000;
/** The leader gives the lead back after this time, before the queue would. Real ms. */
const leadMs = 12 * 3_600_000;
/** The share of additional places for edits and commands, because a full round takes all other places for a while. */
const keptShare = 0.25;
/** The share of the places that one tenant may have: while jobs of others are due, and at most. */
const tenantShare = { fair: 0.5, most: 0.75 } as const;

/** This process as one of several that share projects, state and work. */
export interface FleetOptions {
  /** This process's name among the others. */
  readonly replica: string;
  readonly board: Board;
  readonly queue: FleetQueue;
  readonly lease: Lease;
  /** The largest number of projects that are reconciled at the same time. */
  readonly atOnce: number;
  /** Set by each job that this replica takes. */
  readonly clock: DatabaseClock;
  readonly log: DaemonLogger;
  /** Closes the connections. */
  readonly close: () => Promise<void>;
}

/** The methods of a project that the fleet needs to work on it. */
type Workable = Pick<DaemonProject, 'condition' | 'isWaiting' | 'runOnce'>;

export interface FleetWork {
  /** The project by this spec. Returns why this replica cannot use the spec, for example without its token. */
  readonly open: (spec: SpecInForce, trigger: Trigger) => Promise<Workable | string>;
  /** Leads until the signal aborts or the lead is lost. */
  readonly lead: (over: AbortSignal) => Promise<void>;
}

/** A job in hand. */
interface JobInHand {
  readonly claim: JobClaim;
  readonly over: AbortController;
  done: Promise<void>;
  project: Workable | undefined;
  /** Of the spec that it works by. */
  version: number;
  /** When it was asked to end. Monotonic. */
  endsSince: number | undefined;
}

/**
 * The jobs of this replica, from the shared {@link FleetQueue}: the next reconciliation of a project, or the lead. The jobs
 * in hand are independent of each other. The results of a job are in the project's state, for the replica that takes the
 * next job of the project.
 */
export class Fleet {
  readonly replica: string;
  readonly board: Board;
  readonly #options: FleetOptions;
  readonly #fitness: Fitness;
  readonly #jobs = new Map<string, JobInHand>();
  #work: FleetWork | undefined;
  readonly #wake = new Wake();
  /** How many jobs were at work when all places were taken. Zero if places were left. */
  #full = 0;
  #answeredAt = Number.NEGATIVE_INFINITY;
  #lateMs = 0;

  constructor(options: FleetOptions) {
    this.replica = options.replica;
    this.board = options.board;
    this.#options = options;
    this.#fitness = new Fitness(options.clock);
  }

  leads(): boolean {
    return this.board.leads();
  }

  /** Reports to the leader that the source may have changed. Never rejects. */
  hint(trigger: Trigger): void {
    this.#send({ of: 'source', trigger });
  }

  /** Asks for a reconciliation of every project. Never rejects. */
  askForAll(trigger: Trigger): void {
    this.#send({ of: 'projects', trigger });
  }

  /** Asks for reconciliations of these projects, and takes some of the jobs at once. Only for the leader. */
  async ask(...wanted: Parameters<FleetQueue['ask']>): Promise<void> {
    await this.#options.queue.ask(...wanted);
    this.#wake.nudge('fleet');
  }

  /** Takes another job if a job has begun to wait, because that frees its place. */
  progress(): void {
    if (this.#full > 0 && this.#busy().length < this.#full) this.#wake.nudge('fleet');
  }

  /** How long the jobs that this replica took last were due, at most. Ms. */
  lagMs(): number {
    return this.#lateMs;
  }

  /** How many jobs of the fleet were due and waited at the last check of the monitor. */
  waiting(): Promise<number> {
    return this.#options.queue.waiting();
  }

  /** Why this replica cannot be counted on. */
  notReady(): readonly string[] {
    const { clock } = this.#options;
    const now = clock.monotonic();
    const { reason } = this.#fitness;
    const isSilent = reason === undefined && now - this.#answeredAt > silentMs;
    const hanging = [...this.#jobs.values()].filter(({ endsSince = now }) => now - endsSince > hangsMs);
    return [
      ...(isSilent ? ['the shared database does not answer'] : []),
      ...(reason === undefined ? [] : [`this replica takes few jobs, or none: ${reason}`]),
      ...hanging.map(({ claim }) => `the reconciliation of project ${claim.key} was stopped, and still runs`),
    ];
  }

  /** Works until `stop` aborts. Then waits until the current work has ended, or the grace period is over. */
  async run(work: FleetWork, stop: AbortSignal): Promise<void> {
    const { clock, queue, close } = this.#options;
    this.#work = work;
    const end = new AbortController();
    const beside = [this.#confirming(end.signal), this.#following(end.signal)];
    await this.#taking(stop);
    for (const job of this.#jobs.values()) this.#end(job, stop.reason);
    const working = Promise.all([...this.#jobs.values()].map(({ done }) => done));
    await within(clock, graceMs, working);
    end.abort();
    await Promise.all(beside);
    await this.board.close();
    await queue.close().catch(() => undefined);
    await close();
  }

  async #taking(stop: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    let failing = false;
    while (!stop.aborted) {
      this.#wake.take();
      try {
        await this.#take(stop);
        if (failing) log.info({}, 'the queue answers again');
        failing = false;
      } catch (error) {
        if (!failing && !stop.aborted) log.warn({ error }, 'the queue does not answer');
        failing = true;
      }
      await this.#wake.sleep(clock, pollMs, stop).catch(() => undefined);
      if (this.#wake.pending()) await clock.sleep(gatherMs, stop).catch(() => undefined);
    }
  }

  async #take(stop: AbortSignal): Promise<void> {
    const { atOnce, queue, lease, clock } = this.#options;
    const busy = this.#busy();
    const places = this.#fitness.places(atOnce) - busy.length;
    const kept = Math.ceil(atOnce * keptShare) + places;
    const isFit = this.#fitness.reason === undefined;
    if (!isFit && places <= 0) return;
    const [most, leastUrgency] =
      places > 0 ? [places, 0] : kept > 0 ? [kept, urgencies.edit] : [1, urgencies.lead];
    const sent = lease.moment();
    const claims: JobClaim[] = [];
    let mayBeMore = false;
    // First edits and commands, then all jobs; of both, first those of tenants that have less than half of the places.
    const urgent = Math.max(leastUrgency, urgencies.edit);
    const passes = [urgent, leastUrgency].flatMap((urgency) =>
      Object.values(tenantShare).map((share) => ({ urgency, share })),
    );
    for (const { urgency, share } of passes) {
      const limit = Math.max(1, Math.floor(atOnce * share));
      const byTenant = Map.groupBy([...busy.map(({ claim }) => claim), ...claims], ({ tenant }) => tenant);
      const rooms = [...byTenant].flatMap(([tenant, { length }]) =>
        tenant === undefined ? [] : [{ tenant, room: limit - length }],
      );
      const fullTenants = rooms.flatMap(({ tenant, room }) => (room > 0 ? [] : [tenant]));
      const left = Math.min(most - claims.length, ...rooms.flatMap(({ room }) => (room > 0 ? [room] : [])));
      // The queue gives the most urgent jobs first, so one request to the queue suffices if no tenant has to wait.
      const isLast = fullTenants.length === 0 && share === tenantShare.fair;
      if (left > 0) {
        const taken = await queue.take(left, { leastUrgency: isLast ? leastUrgency : urgency, fullTenants });
        claims.push(...taken);
        mayBeMore ||= taken.length === left;
      }
      if (isLast) break;
    }
    this.#answeredAt = clock.monotonic();
    if (this.#jobs.size === 0) lease.confirm(sent);
    if (claims.length > 0) {
      this.#lateMs = Math.max(...claims.map(({ lateMs }) => lateMs));
      clock.set(Math.max(...claims.map(({ takenAt }) => takenAt)));
    }
    for (const claim of claims) {
      if (stop.aborted) await queue.end(claim, continued(claim));
      else this.#start(claim);
    }
    this.#full = claims.length < places ? 0 : busy.length + claims.length;
    if (mayBeMore) this.#wake.nudge('fleet');
  }

  /** The jobs that have a place: jobs that do not only wait. */
  #busy(): readonly JobInHand[] {
    return [...this.#jobs.values()].filter(
      ({ claim, project }) => claim.key !== sourceKey && project?.isWaiting() !== true,
    );
  }

  #start(claim: JobClaim): void {
    const over = new AbortController();
    const job: JobInHand = {
      ...{ claim, over, project: undefined, version: 0, endsSince: undefined, done: Promise.resolve() },
    };
    this.#jobs.set(claim.id, job);
    const { life } = this.#options.lease;
    const onEnd = () => this.#end(job, life.reason);
    life.addEventListener('abort', onEnd, { once: true });
    if (life.aborted) onEnd();
    job.done = this.#make(job).finally(() => {
      life.removeEventListener('abort', onEnd);
      this.#jobs.delete(claim.id);
      this.#wake.nudge('fleet');
    });
  }

  #end(job: JobInHand, reason: unknown): void {
    const { clock, log } = this.#options;
    if (job.over.signal.aborted) return;
    log.debug({ project: job.claim.key, error: reason }, 'stopping work on the project');
    job.endsSince = clock.monotonic();
    job.over.abort(reason);
  }

  /** Carries out the job, and queues the next one. Never rejects: the queue repeats a job that could not be ended. */
  async #make(job: JobInHand): Promise<void> {
    const { queue, log } = this.#options;
    const { claim } = job;
    try {
      const next = await (claim.key === sourceKey ? this.#lead(job) : this.#workOn(job));
      await queue.end(claim, next);
    } catch (error) {
      if (error instanceof UnfitError) {
        this.#fitness.rest(error.message);
        // At once, for another replica.
        await queue.end(claim, continued(claim)).catch(() => undefined);
        return;
      }
      if (error instanceof LaterReleaseError) this.#fitness.end(error.message);
      log.debug({ project: claim.key, error, attempt: claim.attempt }, 'reconciliation failed, retrying');
      await queue.fail(claim, messageOf(error)).catch(() => undefined);
    }
  }

  async #lead(job: JobInHand): Promise<NextReconciliation> {
    const { clock } = this.#options;
    const { signal } = job.over;
    const term = clock.sleep(leadMs, signal).then(
      () => this.#end(job, new Error('the term of the leader is over')),
      () => undefined,
    );
    try {
      await this.#work?.lead(signal);
    } finally {
      this.#end(job, new Error('this replica no longer leads'));
      await term;
    }
    return continued(job.claim);
  }

  async #workOn(job: JobInHand): Promise<NextReconciliation | undefined> {
    const { log } = this.#options;
    const { claim, over } = job;
    const { trigger } = claim;
    const spec = await this.board.spec(Number(claim.key));
    // The project has left the fleet.
    if (spec === undefined) return undefined;
    const project = await this.#work?.open(spec, trigger);
    if (project === undefined || typeof project === 'string') {
      this.#fitness.fail(claim.key, `project ${claim.key} cannot be used here: ${project}`);
      log.warn({ project: claim.key, reason: project }, 'project given back');
      // The cause is this replica, so another one does not wait as long as after a failure of the project.
      return { trigger, afterMs: inUseRetryMs, urgency: claim.urgency };
    }
    Object.assign(job, { project, version: spec.version });
    try {
      const restMs = await project.runOnce(trigger, markOf(spec.spec), over.signal);
      if (over.signal.aborted) return continued(claim);
      if (project.condition === 'unreachable') this.#fitness.fail(claim.key, 'the API cannot be reached');
      else this.#fitness.succeed();
      return { trigger: 'timer', afterMs: restMs, urgency: urgencies.time };
    } catch (error) {
      if (over.signal.aborted) return continued(claim);
      if (!(error instanceof StateInUseError) || error instanceof LaterReleaseError) {
        // A database that does not answer is the fault of no replica.
        if (!(error instanceof StateError))
          this.#fitness.fail(claim.key, `project ${claim.key} cannot be opened here`);
        throw error;
      }
      log.info({ project: Number(claim.key), reason: error.message }, 'project postponed');
      return { trigger, afterMs: inUseRetryMs, urgency: claim.urgency };
    }
  }

  /** Confirms the jobs in hand, and ends the work on those that are lost. */
  async #confirming(end: AbortSignal): Promise<void> {
    const { clock, queue, lease, log } = this.#options;
    while (!end.aborted) {
      await clock.sleep(confirmMs, end).catch(() => undefined);
      const jobs = [...this.#jobs.values()];
      const sent = lease.moment();
      if (jobs.length > 0 && !end.aborted)
        await queue.confirm(jobs.map(({ claim }) => claim)).then(
          (confirmed) => {
            lease.confirm(sent);
            this.#answeredAt = clock.monotonic();
            for (const job of jobs)
              if (!confirmed.has(job.claim.id)) this.#end(job, new Error('another replica has the job'));
          },
          (error: unknown) => log.debug({ error }, 'jobs not confirmed'),
        );
      lease.endIfOver();
    }
  }

  /** Gives newer specs to the projects in hand. */
  async #following(end: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    while (!end.aborted) {
      await clock.sleep(changedMs, end).catch(() => undefined);
      const jobs = [...this.#jobs.values()].filter(({ project }) => project !== undefined);
      if (jobs.length === 0 || end.aborted) continue;
      await this.#follow(jobs).catch((error: unknown) => log.debug({ error }, 'newer specs not read'));
    }
  }

  async #follow(jobs: readonly JobInHand[]): Promise<void> {
    const byProject = new Map(jobs.map((job) => [Number(job.claim.key), job]));
    const versions = new Map([...byProject].map(([project, { version }]) => [project, version]));
    for (const project of await this.board.changed(versions)) {
      const [job, spec] = [byProject.get(project), await this.board.spec(project)];
      if (job === undefined || spec === undefined) continue;
      job.version = spec.version;
      await this.#work?.open(spec, 'fleet');
    }
  }

  #send(hint: Parameters<FleetQueue['send']>[0]): void {
    const { queue, log } = this.#options;
    queue.send(hint).catch((error: unknown) => log.warn({ error }, 'message to the leader failed'));
  }
}
