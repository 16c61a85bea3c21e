import type { Clock } from '../../core/clock.ts';
import { StateHeldError } from '../../core/errors.ts';
import type { Random } from '../../core/random.ts';
import type { DaemonLogger, Trigger } from '../ports.ts';
import type { Job } from '../project/job.ts';
import type { Assignment } from './assignment.ts';
import type { Board } from './board.ts';
import { type Calls, triggerOf } from './calls.ts';
import { firstJob } from './first-job.ts';
import type { Heart } from './heartbeat.ts';
import { Schedule, type Wanted } from './schedule.ts';
import { shareOut } from './share-out.ts';

/** How long work may take to end after the request to stop. Then other replicas take over its states. Real ms. */
const graceMs = 7_000;
/** Waiting time before a project whose state another process owns is tried again. Real ms. */
const heldMs = 5_000;
/** Each job asks whether the specs have moved, and a full round has hundreds of jobs a second. Real ms. */
const movedMs = 200;
/** Work that was asked to end, and has not ended after this time, counts as hanging. Real ms. */
const hangsMs = 60_000;

/** This process as one of several that share projects, state and work. */
export interface FleetOptions {
  /** This process's name among the others. */
  readonly replica: string;
  readonly board: Board;
  readonly calls: Calls;
  readonly heart: Heart;
  readonly notified: Job['notified'];
  /** How the last turns left these projects. */
  readonly left: (projects: readonly number[]) => Promise<readonly Assignment[]>;
  /** The largest number of projects that are reconciled at the same time. */
  readonly atOnce: number;
  /** A project without a trigger is reconciled after this time, in ms of real time. */
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: DaemonLogger;
}

/** The methods of a project that the fleet needs to work on it. */
interface Workable {
  readonly id: number;
  /** Of the spec in force. */
  readonly digest: string | undefined;
  nudge(trigger: Trigger): void;
  hasBrokenSpec(): boolean;
  isWaiting(): boolean;
  runJob(job: Job, stop: AbortSignal): Promise<number>;
}

export interface FleetWork {
  readonly projects: () => readonly Workable[];
  readonly project: (id: number) => Workable | undefined;
  /** Whether the specs are being read. */
  readonly isReading: () => boolean;
  /** Reads the specs in force; gives whether it could. */
  readonly readSpecs: () => Promise<boolean>;
}

/**
 * This replica's share of a fleet's projects. {@link shareOut} computes from the list of live replicas which replica
 * works on which project. {@link Schedule} keeps in memory when each project is due. The results of a turn are in the
 * project's state, for the replica that has the next turn.
 */
export class Fleet {
  readonly replica: string;
  readonly board: Board;
  readonly #options: FleetOptions;
  /** Projects whose work was asked to end, with the time of the request. */
  readonly #ending = new Map<number, number>();
  #work: FleetWork = {
    projects: () => [],
    project: () => undefined,
    readSpecs: async () => false,
    isReading: () => false,
  };
  readonly #schedule: Schedule;
  #stop: AbortSignal = new AbortController().signal;
  /** The input of the last computation of the shares. */
  #sharedOf = '';
  #sharing: Promise<void> = Promise.resolve();

  constructor(options: FleetOptions) {
    const { replica, board, heart } = options;
    this.replica = replica;
    this.board = board;
    this.#options = options;
    this.#schedule = new Schedule({
      ...options,
      mayBegin: () => heart.isAlive(),
      isReading: () => this.#work.isReading(),
      isWaiting: (id) => this.#work.project(id)?.isWaiting() === true,
      onAsked: (id, trigger) => this.#work.project(id)?.nudge(trigger),
      job: (id, trigger, over) => this.#job(id, trigger, over),
    });
  }

  leads(): boolean {
    return this.board.leads();
  }

  /** The specs in force were read. `news` are the projects whose specs changed. */
  specsRead(news: readonly number[], trigger: Trigger): void {
    this.#shareSoon();
    this.#schedule.wake(news, { trigger, afterMs: 0, isUrgent: true });
  }

  /** Asks the replicas to reconcile all projects. Never rejects. A lost call delays a project by one interval. */
  askForAll(trigger: Trigger): void {
    this.#options.calls.send({ of: 'projects', trigger });
  }

  hint(trigger: Trigger): void {
    this.#options.calls.send({ of: 'source', trigger });
  }

  /** The longest delay of a due project that waits on this replica, in ms. */
  lagMs(): number {
    return this.#schedule.lagMs();
  }

  /** How many projects are due and wait for a place. */
  waiting(): number {
    return this.#schedule.waiting();
  }

  /** How many projects are this replica's share. */
  share(): number {
    return this.#schedule.projects().length;
  }

  /** Why this replica cannot be counted on. */
  notReady(): readonly string[] {
    const { clock, heart } = this.#options;
    const hanging = [...this.#ending].filter(([, since]) => clock.monotonic() - since > hangsMs);
    return [
      ...(heart.isAlive() ? [] : ['the shared database does not confirm the heartbeat of this replica']),
      ...hanging.map(([project]) => `the reconciliation of project ${project} was stopped, and still runs`),
    ];
  }

  /** Works until `stop` aborts. Then waits until the current work has ended, or the grace period is over. */
  async run(work: FleetWork, stop: AbortSignal): Promise<void> {
    const { heart, calls, clock } = this.#options;
    this.#work = work;
    this.#stop = stop;
    const endCalls = calls.listen((call) => {
      if (call.of === 'replicas') heart.beatSoon();
      if (call.of !== 'projects') return;
      this.#schedule.wake(call.projects ?? this.#schedule.projects(), {
        trigger: triggerOf(call),
        afterMs: 0,
      });
    });
    calls.send({ of: 'replicas' });
    const working = this.#schedule.run(stop);
    await heart
      .run(stop, () => this.#shareSoon())
      .catch((error: unknown) => {
        if (!stop.aborted) throw error;
      });
    const late = new AbortController();
    const grace = clock.sleep(graceMs, late.signal).catch(() => undefined);
    await Promise.race([working, grace]);
    late.abort();
    endCalls();
    await this.board.close();
    await heart.close();
  }

  /** One after the other, and never in the way of a heartbeat. */
  #shareSoon(): void {
    const { log } = this.#options;
    this.#sharing = this.#sharing
      .then(() => this.#share())
      .catch((error: unknown) => {
        this.#sharedOf = '';
        log.warn({ error }, 'project assignment failed');
      });
  }

  /** Takes and gives up projects, as the lists of projects and of replicas say now. */
  async #share(): Promise<void> {
    const { heart, left } = this.#options;
    const projects = this.#work.projects().map(({ id }) => id);
    const of = JSON.stringify([heart.replicas, projects]);
    if (of === this.#sharedOf || this.#stop.aborted) return;
    const shares = shareOut(projects, heart.replicas);
    for (const id of this.#schedule.projects()) if (shares.get(id) !== heart.id) this.#schedule.drop(id);
    const gained = projects.filter((id) => shares.get(id) === heart.id && !this.#schedule.has(id));
    if (gained.length > 0) {
      const before = new Map((await left(gained)).map((each) => [each.project, each]));
      const { clock, random, intervalMs } = this.#options;
      for (const id of gained) {
        const digest = this.#work.project(id)?.digest;
        const options = { digest, intervalMs, now: clock.now(), random };
        this.#schedule.add(id, firstJob(before.get(id), options));
      }
    }
    this.#sharedOf = of;
  }

  async #job(id: number, trigger: Trigger, over: AbortSignal): Promise<Wanted> {
    const { heart, replica, notified, log, calls } = this.#options;
    if ((await this.board.hasMoved(movedMs)) && !(await this.#work.readSpecs()))
      throw new Error('the specs in force cannot be read');
    const project = this.#work.project(id);
    if (project === undefined) throw new Error('the project is not known');
    const spec = project.hasBrokenSpec() ? '' : (this.board.markOf(id) ?? '');
    const end = this.#endOf(project, [this.#stop, over, heart.life]);
    try {
      const restMs = await project.runJob({ trigger, replica, spec, notified }, end.signal);
      return end.signal.aborted ? { trigger, afterMs: 0 } : { trigger: 'timer', afterMs: restMs };
    } catch (error) {
      if (end.signal.aborted) return { trigger, afterMs: 0 };
      if (!(error instanceof StateHeldError)) throw error;
      log.info({ project: project.id, reason: error.message }, 'project postponed');
      return { trigger, afterMs: heldMs };
    } finally {
      end.dispose();
      // The replica that has the project from now on need not try again and again.
      if (over.aborted) calls.send({ of: 'projects', trigger, projects: [id] });
    }
  }

  /** Aborts with the first of `ends`; from then on the work has to end within moments. */
  #endOf({ id }: Workable, ends: readonly AbortSignal[]): { signal: AbortSignal; dispose: () => void } {
    const { clock, log } = this.#options;
    const over = new AbortController();
    const end = () => {
      const reason = ends.find(({ aborted }) => aborted)?.reason;
      log.debug({ project: id, error: reason }, 'stopping work on the project');
      this.#ending.set(id, clock.monotonic());
      over.abort(reason);
    };
    // Not AbortSignal.any: on a signal that lives for months each one would be a listener that stays.
    for (const each of ends) each.addEventListener('abort', end, { once: true });
    if (ends.some(({ aborted }) => aborted)) end();
    const dispose = () => {
      for (const each of ends) each.removeEventListener('abort', end);
      this.#ending.delete(id);
    };
    return { signal: over.signal, dispose };
  }
}
