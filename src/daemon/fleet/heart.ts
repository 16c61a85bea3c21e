import type { Clock } from '../../core/clock.ts';
import type { DaemonLogger } from '../ports.ts';

/** Between two heartbeats. Real ms. */
const beatMs = 3_000;
/**
 * How long this process counts itself among the living after a confirmed heartbeat, in real
 * ms. Others wait for longer before they end its connections: see `deadAfterSeconds`.
 */
const leaseMs = 8_000;

export interface HeartOptions {
  /** Random text, new for each process. */
  readonly id: string;
  /** Records one heartbeat in the shared database; rejects where it was not recorded. */
  readonly beat: () => Promise<void>;
  readonly close: () => Promise<void>;
  /** Real time. */
  readonly clock: Clock;
  readonly log: DaemonLogger;
}

/**
 * The lease of this replica on everything that it owns.
 *
 * ```
 * dead ──heartbeat confirmed──▶ alive ──none for `leaseMs`──▶ dead
 * ```
 * Counted from the moment before a heartbeat is sent, so that this process gives up before
 * any other one may take over, also where it was stopped or one of its clocks was.
 */
export class Heart {
  readonly id: string;
  readonly #options: HeartOptions;
  #confirmed: { readonly monotonic: number; readonly wall: number } | undefined;
  #life = new AbortController();

  constructor(options: HeartOptions) {
    this.id = options.id;
    this.#options = options;
    this.#life.abort(new Error('no heartbeat was confirmed yet'));
  }

  isAlive(): boolean {
    if (this.#confirmed === undefined) return false;
    const { clock } = this.#options;
    const { monotonic, wall } = this.#confirmed;
    return clock.monotonic() - monotonic <= leaseMs && Math.abs(clock.now() - wall) <= leaseMs;
  }

  /** Aborts when the lease ends; the next confirmed heartbeat begins another life. */
  get life(): AbortSignal {
    return this.#life.signal;
  }

  /** The first heartbeat, before anything is owned. Rejects where it is not confirmed. */
  async start(): Promise<void> {
    await this.#beat();
  }

  /** Runs until the signal aborts. */
  async run(stop: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    let failing = false;
    for (;;) {
      await clock.sleep(beatMs, stop);
      if (!this.isAlive()) this.#end();
      try {
        await this.#beat();
        if (failing) log.info({}, 'the heartbeat is confirmed again');
        failing = false;
      } catch (error) {
        if (!failing) log.warn({ error }, 'the heartbeat could not be recorded');
        failing = true;
        if (!this.isAlive()) this.#end();
      }
    }
  }

  close(): Promise<void> {
    return this.#options.close();
  }

  async #beat(): Promise<void> {
    const { clock, beat } = this.#options;
    const begun = { monotonic: clock.monotonic(), wall: clock.now() };
    await beat();
    this.#confirmed = begun;
    if (this.#life.signal.aborted && this.isAlive()) this.#life = new AbortController();
  }

  #end(): void {
    this.#life.abort(new Error('no heartbeat of this replica is confirmed any more'));
  }
}
