import type { Clock } from '../../core/clock.ts';
import { StateHeldError } from '../../core/errors.ts';
import type { Random } from '../../core/random.ts';
import type { DaemonLogger, Trigger } from '../ports.ts';
import type { Turn } from '../project/turn.ts';
import type { Board } from './board.ts';
import type { Heart } from './heart.ts';
import type { PassQueue, Wanted } from './pass-queue.ts';

/** What is in hand may take so long after it was told to stop; then the queue gives it to others. Real ms. */
const graceMs = 7_000;
/** A project whose state is somebody else's at the moment is tried again after so long, anywhere. Real ms. */
const heldMs = 5_000;
/** What was told to end, and has not ended after so long, hangs. Real ms. */
const hangsMs = 60_000;
/** The longest time between two reminders. Real ms. */
const remindMs = 60_000;

/** This process as one of several that share projects, state and work. */
export interface FleetOptions {
  /** This process's name among the others. */
  readonly replica: string;
  readonly board: Board;
  readonly queue: PassQueue;
  readonly heart: Heart;
  readonly told: Turn['told'];
  /** At most so many projects at a time. */
  readonly atOnce: number;
  /** A project that nobody asks for is looked at after so long, in ms of real time. */
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly random: Random;
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
  /** Projects whose work was told to end, and since when. */
  readonly #ending = new Map<number, number>();

  constructor(options: FleetOptions) {
    this.replica = options.replica;
    this.board = options.board;
    this.#options = options;
  }

  leads(): boolean {
    return this.board.leads();
  }

  /** Somebody should look: at these projects, or at the source. Never rejects; a lost word costs an interval. */
  ask(projects: readonly number[], trigger: Trigger): void {
    this.#trying(this.#options.queue.ask(projects, { trigger, afterMs: 0 }));
  }

  hint(trigger: Trigger): void {
    this.#trying(this.#options.queue.hint(trigger));
  }

  /** How long the last pass that was taken had been due, in ms. */
  lagMs(): number {
    return this.#options.queue.lagMs();
  }

  /** Why this replica cannot be counted on. */
  notReady(): readonly string[] {
    const { clock, heart } = this.#options;
    const hanging = [...this.#ending].filter(([, since]) => clock.monotonic() - since > hangsMs);
    return [
      ...(heart.isAlive() ? [] : ['the shared database does not confirm the heartbeat of this replica']),
      ...hanging.map(([project]) => `the work on project ${project} was told to end, and goes on`),
    ];
  }

  /** Works until `stop` aborts and what is in hand has ended, or its grace is over. */
  async run({ projects, readSpecs }: FleetWork, stop: AbortSignal): Promise<void> {
    const { queue, atOnce, heart } = this.#options;
    const find = (id: number) => projects().find((each) => each.id === id);
    await queue.work({
      atOnce,
      mayTake: () => heart.isAlive(),
      onAsked: (id, trigger) => find(id)?.nudge(trigger),
      pass: async (id, trigger, lost) => {
        if (await this.board.hasMoved()) {
          if (!(await readSpecs())) throw new Error('the specs in force cannot be read');
        }
        const project = find(id);
        return project && this.#work(project, trigger, [stop, lost, heart.life]);
      },
    });
    await Promise.all([this.#remind(projects, stop), heart.run(stop)]).catch((error: unknown) => {
      if (!stop.aborted) throw error;
    });
    await queue.close(graceMs);
    await this.board.close();
    await heart.close();
  }

  async #work(project: Workable, trigger: Trigger, ends: readonly AbortSignal[]): Promise<Wanted> {
    const { replica, told, log } = this.#options;
    const end = this.#endOf(project, ends);
    try {
      const restMs = await project.turn({ trigger, replica, told }, end.signal);
      return end.signal.aborted ? { trigger, afterMs: 0 } : { trigger: 'timer', afterMs: restMs };
    } catch (error) {
      if (end.signal.aborted) return { trigger, afterMs: 0 };
      if (!(error instanceof StateHeldError)) throw error;
      log.info({ project: project.id, reason: error.message }, 'the project is tried again later');
      return { trigger, afterMs: heldMs };
    } finally {
      end.dispose();
    }
  }

  /** Aborts with the first of `ends`; from then on the work has to end within moments. */
  #endOf({ id }: Workable, ends: readonly AbortSignal[]): { signal: AbortSignal; dispose: () => void } {
    const { clock, log } = this.#options;
    const over = new AbortController();
    const end = () => {
      const reason = ends.find(({ aborted }) => aborted)?.reason;
      log.debug({ project: id, error: reason }, 'the work on the project is told to end');
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

  /**
   * A job that was lost comes back: whoever leads sees to it that every project waits for its
   * turn. Spread over the interval, so that many never come up together.
   */
  async #remind(projects: FleetWork['projects'], stop: AbortSignal): Promise<void> {
    const { queue, clock, random, intervalMs } = this.#options;
    for (;;) {
      if (this.leads()) {
        const wanted = projects().map(({ id }) => {
          return { project: id, afterMs: intervalMs * (0.5 + random.next() / 2) };
        });
        this.#trying(queue.remind(wanted));
      }
      await clock.sleep(Math.min(intervalMs, remindMs), stop);
    }
  }

  #trying(asking: Promise<void>): void {
    asking.catch((error: unknown) => this.#options.log.warn({ error }, 'the queue could not be asked'));
  }
}
