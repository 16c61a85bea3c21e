import { backOff } from '../../core/back-off.ts';
import type { Clock } from '../../core/clock.ts';
import type { Random } from '../../core/random.ts';
import type { DaemonLogger, Trigger } from '../ports.ts';

/** When a project wants its next turn, and why. */
export interface Wanted {
  readonly trigger: Trigger;
  /** In ms of real time, at the latest. */
  readonly afterMs: number;
  /**
   * Whether the project's spec has changed, or another replica was cut off while it worked on the project. Any trigger can
   * lead to the reading that finds the change.
   */
  readonly isUrgent?: boolean;
}

export interface ScheduleOptions {
  /**
   * The largest number of projects that are worked on at the same time. Projects that only wait do not count, and
   * edits may take a quarter more.
   */
  readonly atOnce: number;
  /** Whether this replica may begin work now. */
  readonly mayBegin: () => boolean;
  /** Whether the specs are being read: an edit may follow. */
  readonly isReading: () => boolean;
  /** Whether nothing but waiting happens in the turn in hand. */
  readonly isWaiting: (project: number) => boolean;
  /** One turn. `over` aborts when the project is worked on elsewhere from now on. A turn that rejects is made again. */
  readonly job: (project: number, trigger: Trigger, over: AbortSignal) => Promise<Wanted>;
  /** Called when a reconciliation is requested for a project that this replica already works on. */
  readonly onAsked: (project: number, trigger: Trigger) => void;
  /** Real time. */
  readonly clock: Clock;
  readonly random: Random;
  readonly log: DaemonLogger;
}

/** A turn that rejects is made again after 1, 2, 4 … s, at most 15 min. Real ms. */
const retry = { firstMs: 1_000, mostMs: 15 * 60_000 } as const;
/** While projects are due and no place is free, the places are counted again so often. Real ms. */
const placesMs = 1_000;
/** An edit or a command has precedence over other work for so long after its job has begun. Real ms. */
const urgentMs = 10_000;
/** Nothing is due for so long at least where no project is there. Real ms. */
const idleMs = 3_600_000;

/** Triggers with a lower rank come first. Triggers without a rank come last. */
const ranks: Partial<Record<Trigger, number>> = {
  ...{ file: 0, git: 0, webhook: 0, command: 0, token: 0 },
  signal: 1,
};
const lastRank = 2;
/** Of the places, so many more are kept for edits and commands: a full round takes all others for a while. */
const keptShare = 0.25;

interface Entry {
  readonly project: number;
  trigger: Trigger;
  isUrgent: boolean;
  /** Monotonic real ms. While the project is worked on: when its next turn is due, if one was requested. */
  dueAt: number;
  /** While it is worked on. */
  over: AbortController | undefined;
  /** Turns that rejected, in a row. */
  failures: number;
}

interface Due {
  readonly entry: Entry;
  readonly rank: number;
}

interface Job {
  readonly done: Promise<void>;
  /** Of the entry that it was begun for. */
  readonly rank: number;
  /** Monotonic real ms. */
  readonly since: number;
}

/**
 * When each project of this replica is worked on. The schedule is only in memory: the replica that takes over a
 * project finds the lost data again in the project's state ({@link ReconciliationMemory}).
 *
 * ```
 *          wake                 place free             done
 * waiting ─────▶ due ─────────────────────────▶ turn ──────▶ waiting, until its rest is over
 *    └───────── time ───▲                        └─rejected──▶ waiting, for seconds
 * ```
 * A project waits for the earliest of all requested moments. Edits and commands come first, then requests for all
 * projects, then projects that are due by time. Among equal triggers, the project that has been due for longer comes
 * first. While the specs are read, or the work on an edit begins, all other projects share a quarter of the places: an edit needs
 * hundreds of steps, and each step waits for the steps of the other projects.
 */
export class Schedule {
  readonly #options: ScheduleOptions;
  readonly #entries = new Map<number, Entry>();
  /** A project that came back keeps its place here until its last turn has ended. */
  readonly #jobs = new Map<number, Job>();
  #awake = new AbortController();

  constructor(options: ScheduleOptions) {
    this.#options = options;
  }

  has(project: number): boolean {
    return this.#entries.has(project);
  }

  projects(): readonly number[] {
    return [...this.#entries.keys()];
  }

  /** A project is this replica's from now on. */
  add(project: number, wanted: Wanted): void {
    if (this.has(project)) return;
    const { trigger, isUrgent = false } = wanted;
    const dueAt = this.#at(wanted);
    this.#entries.set(project, { project, trigger, isUrgent, dueAt, over: undefined, failures: 0 });
    this.#awake.abort();
  }

  /** This replica no longer works on the project. The current turn of the project must end within moments. */
  drop(project: number): void {
    const entry = this.#entries.get(project);
    this.#entries.delete(project);
    entry?.over?.abort(new Error('another replica works on the project from now on'));
  }

  /** Requests a turn for each of these projects that belongs to this replica. */
  wake(projects: Iterable<number>, wanted: Wanted): void {
    const { onAsked } = this.#options;
    for (const project of projects) {
      const entry = this.#entries.get(project);
      if (entry === undefined) continue;
      this.#want(entry, wanted);
      if (entry.over !== undefined && wanted.afterMs <= 0) onAsked(project, wanted.trigger);
    }
    this.#awake.abort();
  }

  /** How long the project that is due and waits longest for a place has waited, in ms; 0 where none does. */
  lagMs(): number {
    const now = this.#options.clock.monotonic();
    let lagMs = 0;
    for (const entry of this.#entries.values())
      if (this.#isDue(entry, now)) lagMs = Math.max(lagMs, now - entry.dueAt);
    return lagMs;
  }

  /** Projects that are due and wait for a place. */
  waiting(): number {
    const now = this.#options.clock.monotonic();
    let count = 0;
    for (const entry of this.#entries.values()) if (this.#isDue(entry, now)) count += 1;
    return count;
  }

  /** Begins turns until the signal aborts. Resolves when the last turn has ended. */
  async run(stop: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const wake = () => this.#awake.abort();
    stop.addEventListener('abort', wake, { once: true });
    while (!stop.aborted) {
      this.#awake = new AbortController();
      const restMs = this.#begin();
      await clock.sleep(restMs, this.#awake.signal).catch(() => undefined);
    }
    await Promise.all([...this.#jobs.values()].map(({ done }) => done));
  }

  /** Begins the due jobs while places are free. Returns the time until the next check, in ms. */
  #begin(): number {
    const { clock, atOnce, mayBegin, isWaiting } = this.#options;
    const busy = [...this.#jobs].filter(([project]) => !isWaiting(project));
    const kept = Math.ceil(atOnce * keptShare);
    const places = mayBegin() ? atOnce + kept - busy.length : 0;
    const now = clock.monotonic();
    const { first, others, restMs } = this.#next(now, places);
    const isUrgent =
      first.some(({ rank }) => rank === 0) ||
      busy.some(([, { rank, since }]) => rank === 0 && now - since < urgentMs);
    const most = isUrgent || this.#options.isReading() ? kept : atOnce;
    let count = busy.length;
    for (const { entry, rank } of first) {
      if (rank !== 0 && count >= most) return placesMs;
      this.#start(entry, rank);
      count += 1;
    }
    return others > 0 ? placesMs : restMs;
  }

  /**
   * The first `most` of the projects that wait for a place, in the order in which they are worked on; how many others
   * wait; and the time until another project is due, in ms. Each project is visited once: a full round of thousands of
   * projects asks for it thousands of times.
   */
  #next(now: number, most: number): { readonly first: readonly Due[]; others: number; restMs: number } {
    const first: Due[] = [];
    let [others, restMs] = [0, idleMs];
    for (const entry of this.#entries.values()) {
      if (!this.#isDue(entry, now)) {
        if (!this.#jobs.has(entry.project)) restMs = Math.min(restMs, entry.dueAt - now);
        continue;
      }
      const due = { entry, rank: rankOf(entry) };
      const last = first.at(-1);
      if (first.length >= most && (last === undefined || inOrder(last, due) <= 0)) others += 1;
      else {
        first.splice(first.findLastIndex((each) => inOrder(each, due) <= 0) + 1, 0, due);
        if (first.length > most) others += 1;
        first.length = Math.min(first.length, most);
      }
    }
    return { first, others, restMs };
  }

  #isDue({ project, dueAt }: Entry, now: number): boolean {
    return dueAt <= now && !this.#jobs.has(project);
  }

  #start(entry: Entry, rank: number): void {
    const over = new AbortController();
    const { trigger, isUrgent } = entry;
    Object.assign(entry, { over, trigger: 'timer', isUrgent: false, dueAt: Number.POSITIVE_INFINITY });
    const done = this.#job(entry, { trigger, isUrgent }, over.signal).finally(() => {
      entry.over = undefined;
      this.#jobs.delete(entry.project);
      this.#awake.abort();
    });
    this.#jobs.set(entry.project, { done, rank, since: this.#options.clock.monotonic() });
  }

  async #job(
    entry: Entry,
    { trigger, isUrgent }: Pick<Entry, 'trigger' | 'isUrgent'>,
    over: AbortSignal,
  ): Promise<void> {
    const { job, random, log } = this.#options;
    try {
      const wanted = await job(entry.project, trigger, over);
      // A job that could not begin, because another process owns the state, wants the same again.
      this.#settle(entry, { ...wanted, isUrgent: isUrgent && wanted.trigger === trigger });
      entry.failures = 0;
    } catch (error) {
      const afterMs = backOff(retry, entry.failures, random.next());
      entry.failures += 1;
      this.#settle(entry, { trigger, isUrgent, afterMs });
      log.debug(
        { project: entry.project, error, attempt: entry.failures },
        'reconciliation failed, retrying',
      );
    }
  }

  /** A request that arrived during a turn is done with that turn, unless the turn itself reports otherwise. */
  #settle(entry: Entry, wanted: Wanted): void {
    const { trigger, afterMs, isUrgent = false } = wanted;
    if (afterMs > 0) Object.assign(entry, { trigger, isUrgent, dueAt: this.#at(wanted) });
    else this.#want(entry, wanted);
  }

  #want(entry: Entry, wanted: Wanted): void {
    if (rankOf(wanted) <= rankOf(entry)) entry.trigger = wanted.trigger;
    entry.isUrgent ||= wanted.isUrgent === true;
    entry.dueAt = Math.min(entry.dueAt, this.#at(wanted));
  }

  #at({ afterMs }: Wanted): number {
    return this.#options.clock.monotonic() + Math.max(0, afterMs);
  }
}

function rankOf({ trigger, isUrgent }: Pick<Wanted, 'trigger' | 'isUrgent'>): number {
  return isUrgent === true ? 0 : (ranks[trigger] ?? lastRank);
}

function inOrder(a: Due, b: Due): number {
  return a.rank - b.rank || a.entry.dueAt - b.entry.dueAt;
}
