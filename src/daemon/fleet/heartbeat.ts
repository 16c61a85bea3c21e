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
  /**
   * Records one heartbeat in the shared database, and gives the ids of all replicas that are alive, the longest there
   * first; rejects where it was not recorded.
   */
  readonly beat: () => Promise<readonly string[]>;
  /** Says that this process ends. */
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
  #replicas: readonly string[] = [];
  #soon = new AbortController();
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

  /** All replicas that were alive at the last confirmed heartbeat, this one too: the longest there first. */
  get replicas(): readonly string[] {
    return this.#replicas;
  }

  /** Another replica came or went: the next heartbeat is due now. */
  beatSoon(): void {
    this.#soon.abort();
  }

  /** The first heartbeat, before anything is owned. Rejects where it is not confirmed. */
  async start(): Promise<void> {
    await this.#beat();
  }

  /** Runs until the signal aborts; `onBeat` is called after each heartbeat that was confirmed. */
  async run(stop: AbortSignal, onBeat: () => void = () => {}): Promise<void> {
    const { clock, log } = this.#options;
    let failing = false;
    const wake = () => this.#soon.abort();
    stop.addEventListener('abort', wake, { once: true });
    for (;;) {
      await clock.sleep(beatMs, this.#soon.signal).catch(() => undefined);
      stop.throwIfAborted();
      this.#soon = new AbortController();
      if (!this.isAlive()) this.#end();
      try {
        await this.#beat();
        if (failing) log.info({}, 'heartbeat confirmed again');
        failing = false;
        onBeat();
      } catch (error) {
        if (!failing) log.warn({ error }, 'heartbeat failed');
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
    this.#replicas = await beat();
    this.#confirmed = begun;
    if (this.#life.signal.aborted && this.isAlive()) this.#life = new AbortController();
  }

  #end(): void {
    this.#life.abort(new Error('the heartbeat of this replica is no longer confirmed'));
  }
}
