import type { Clock } from '../../core/clock.ts';
import type { DaemonLogger, Trigger } from '../ports.ts';
import type { Turn } from '../project/turn.ts';
import type { Board } from './board.ts';
import type { PassQueue } from './pass-queue.ts';

/** Between two looks, during a pass, whether somebody wants another. Real ms. */
const lookMs = 2_000;
/** What is in hand may take so long after it was told to stop; then the queue gives it to others. Real ms. */
const graceMs = 7_000;

/** This process as one of several that share projects, state and work. */
export interface FleetOptions {
  /** This process's name among the others. */
  readonly replica: string;
  readonly board: Board;
  readonly queue: PassQueue;
  readonly told: Turn['told'];
  /** At most so many projects at a time. */
  readonly atOnce: number;
  /** A project that nobody asks for is looked at after so long, in ms of real time. */
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly log: DaemonLogger;
}

/** What the fleet needs of a project that it works on. */
interface Workable {
  readonly id: number;
  nudge(trigger: Trigger): void;
  turn(turn: Turn, stop: AbortSignal): Promise<number>;
}

export interface FleetWork {
  readonly projects: () => readonly Workable[];
  /** Reads the specs in force; gives whether it could. */
  readonly readSpecs: () => Promise<boolean>;
}

/**
 * Shares passes out. A project's next pass waits in the queue; whichever replica has a place
 * free takes it, with the specs in force and with what earlier passes left in the state.
 *
 * ```
 * waiting ──free place, anywhere──▶ worked on ──done──▶ waiting, until its rest is over
 *    ▲                                  └─rejected, killed──▶ waiting, for seconds
 *    └─ change of its spec, webhook, SIGHUP: at once
 * ```
 */
export class Fleet {
  readonly replica: string;
  readonly board: Board;
  readonly #options: FleetOptions;

  constructor(options: FleetOptions) {
    this.replica = options.replica;
    this.board = options.board;
    this.#options = options;
  }

  leads(): boolean {
    return this.board.leads();
  }

  /** Somebody should look: at one project, or at the source. Never rejects; a lost word costs an interval. */
  ask(project: number, trigger: Trigger): void {
    this.#trying(this.#options.queue.ask(project, trigger, 0));
  }

  hint(trigger: Trigger): void {
    this.#trying(this.#options.queue.hint(trigger));
  }

  /** Works until `stop` aborts and what is in hand has ended, or its grace is over. */
  async run({ projects, readSpecs }: FleetWork, stop: AbortSignal): Promise<void> {
    const { queue, atOnce } = this.#options;
    await queue.work(atOnce, async (id, trigger) => {
      if (await this.board.hasMoved()) {
        if (!(await readSpecs())) throw new Error('the specs in force cannot be read');
      }
      const project = projects().find((each) => each.id === id);
      if (project !== undefined) await this.#work(project, trigger, stop);
    });
    await this.#remind(projects, stop).catch((error: unknown) => {
      if (!stop.aborted) throw error;
    });
    await queue.close(graceMs);
    await this.board.close();
  }

  async #work(project: Workable, trigger: Trigger, stop: AbortSignal): Promise<void> {
    const { queue, replica, told } = this.#options;
    const over = new AbortController();
    const looking = this.#passOn(project, over.signal);
    try {
      const restMs = await project.turn({ trigger, replica, told }, stop);
      // Rejected, the pass goes to another replica at once.
      stop.throwIfAborted();
      await queue.ask(project.id, 'timer', restMs);
    } finally {
      over.abort();
      await looking;
    }
  }

  /** Who asks while a pass is going on asks this pass. */
  async #passOn(project: Workable, over: AbortSignal): Promise<void> {
    const { queue, clock, log } = this.#options;
    while (!over.aborted) {
      await clock.sleep(lookMs, over).catch(() => undefined);
      if (over.aborted) return;
      try {
        const trigger = await queue.takeDue(project.id);
        if (trigger !== undefined) project.nudge(trigger);
      } catch (error) {
        log.debug({ project: project.id, error }, 'the queue could not be asked');
      }
    }
  }

  /** A job that was lost comes back: whoever leads sees to it that every project waits for its turn. */
  async #remind(projects: FleetWork['projects'], stop: AbortSignal): Promise<void> {
    const { queue, clock, intervalMs } = this.#options;
    for (;;) {
      if (this.leads()) {
        for (const { id } of projects()) this.#trying(queue.ask(id, 'timer', intervalMs));
      }
      await clock.sleep(Math.min(intervalMs, 60_000), stop);
    }
  }

  #trying(asking: Promise<void>): void {
    asking.catch((error: unknown) => this.#options.log.warn({ error }, 'the queue could not be asked'));
  }
}
