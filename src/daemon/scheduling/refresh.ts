import type { Ip } from '../../core/resources.ts';
import type { KeptAnswer, ReadCache } from '../../engine/observe.ts';
import type { ProjectSession } from '../ports.ts';

/** The part of the read budget that the refresh may take. The rest is for operations and task polls. */
const share = 1 / 3;
/** A server that changed lately is likely to change again: its answers age this many times faster … */
const haste = 3;
/** … for so long after the change, in ms. */
const hasteMs = 3_600_000;
/** The wait after a read that failed, in intervals between two reads. */
const restIntervals = 10;

export interface RefreshOptions {
  readonly session: ProjectSession;
  readonly cache: ReadCache;
  /** No answer younger than this is asked for again, in ms. */
  readonly intervalMs: number;
  /** Whether the API is known to be out of reach: then only reconciliations find out when it is back. */
  readonly isPaused: () => boolean;
  /** Whether the project's spec or state still knows the server, by its live id. */
  readonly isWanted: (server: string) => boolean;
  /** An answer differs from the last one. */
  readonly onChange: (server: string) => void;
  readonly onFailure: (error: unknown) => void;
}

/**
 * Reads the inside of servers again, one answer after the other, evenly spread over time: the oldest answer first,
 * recently changed servers sooner. So a reconciliation costs a few lists for any number of servers, and an edit of the
 * spec does not wait for a burst of reads.
 *
 * With `n` servers of `r` reads each, every answer is refreshed once in max(interval, n · r · pace), where pace =
 * window / (reads · share).
 */
export class Refresh {
  readonly #options: RefreshOptions;
  readonly #changedAt = new Map<string, number>();
  #addresses: ReadonlyMap<string, string> | undefined;

  constructor(options: RefreshOptions) {
    this.#options = options;
  }

  /** Between two reads, in ms of the session's clock. */
  get readIntervalMs(): number {
    const { windowMs, reads } = this.#options.session.profile.limits;
    return windowMs / Math.max(1, reads * share);
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options.session;
    for (;;) {
      const next = this.#options.isPaused() ? undefined : this.#next();
      await clock.sleep(next === undefined ? this.#idleMs() : this.readIntervalMs, signal);
      if (next === undefined) continue;
      const failed = await this.#refresh(next);
      if (failed) await clock.sleep(this.readIntervalMs * restIntervals, signal);
    }
  }

  /** Takes in a list that every reconciliation reads: a server that gained or lost an address was changed. */
  compare(ips: readonly Ip[]): void {
    const addresses = addressesByServer(ips);
    const before = this.#addresses;
    this.#addresses = addresses;
    if (before === undefined) return;
    for (const server of new Set([...before.keys(), ...addresses.keys()])) {
      if (before.get(server) !== addresses.get(server)) this.#mark(server);
    }
  }

  /** Age of the oldest answer in ms; 0 where there is none. */
  oldestMs(): number {
    const [oldest] = this.#options.cache.aboutServers();
    return oldest === undefined ? 0 : this.#options.session.clock.now() - oldest.startedAt;
  }

  #next(): KeptAnswer | undefined {
    const { cache, intervalMs, isWanted } = this.#options;
    const kept = cache.aboutServers().filter(({ server }) => {
      if (isWanted(server)) return true;
      cache.forgetServer(server);
      this.#changedAt.delete(server);
      return false;
    });
    let chosen: KeptAnswer | undefined;
    for (const each of kept) {
      if (chosen === undefined || this.#age(each) > this.#age(chosen)) chosen = each;
    }
    return chosen !== undefined && this.#age(chosen) >= intervalMs ? chosen : undefined;
  }

  #age({ server, startedAt }: KeptAnswer): number {
    const now = this.#options.session.clock.now();
    const recent = now - (this.#changedAt.get(server) ?? Number.NEGATIVE_INFINITY) < hasteMs;
    return (now - startedAt) * (recent ? haste : 1);
  }

  #idleMs(): number {
    return Math.max(this.readIntervalMs, this.#options.intervalMs / 10);
  }

  async #refresh({ name, server }: KeptAnswer): Promise<boolean> {
    const { cache, session, onChange, onFailure } = this.#options;
    try {
      if (await cache.refresh(name, session.reads('refresh'))) {
        this.#mark(server);
        onChange(server);
      }
      return false;
    } catch (error) {
      onFailure(error);
      return true;
    }
  }

  #mark(server: string): void {
    this.#changedAt.set(server, this.#options.session.clock.now());
  }
}

function addressesByServer(ips: readonly Ip[]): ReadonlyMap<string, string> {
  const addresses = new Map<string, string>();
  for (const { server_id, id } of ips) {
    if (server_id !== null)
      addresses.set(String(server_id), `${addresses.get(String(server_id)) ?? ''} ${id}`);
  }
  return addresses;
}
