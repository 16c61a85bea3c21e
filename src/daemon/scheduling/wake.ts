import { backOff, type Clock, type Random } from '../../core/clock.ts';
import type { Trigger } from '../../core/fleet.ts';
import { isHopeless, isInFlight } from '../../view/condition.ts';
import type { ProjectSession } from '../ports.ts';
import type { Found, ProjectHistory } from '../project/history.ts';

/**
 * Collects triggers. Any number of triggers during a reconciliation cause one more reconciliation: level-triggered,
 * not edge-triggered.
 */
export class Wake {
  readonly #triggers = new Set<Trigger>();
  #awake: AbortController | undefined;

  nudge(trigger: Trigger): void {
    this.#triggers.add(trigger);
    this.#awake?.abort();
  }

  /** Whether a trigger has come since the last `take`. */
  pending(): boolean {
    return this.#triggers.size > 0;
  }

  /** Returns the collected triggers, and clears them. */
  take(): readonly Trigger[] {
    const taken = [...this.#triggers];
    this.#triggers.clear();
    return taken;
  }

  /** Resolves at the next trigger, at once if a trigger is pending, or after `ms`. Rejects with the signal's reason. */
  async sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.pending()) return;
    const { own, release } = abortedWith(signal);
    this.#awake = own;
    await clock.sleep(ms, own.signal).catch(() => undefined);
    release();
    signal.throwIfAborted();
  }
}

/**
 * A controller that aborts with the signal, until `release`. Not `AbortSignal.any`: the signal lives for months, and each
 * call would leave a listener on it.
 */
export function abortedWith(signal: AbortSignal) {
  const own = new AbortController();
  const abort = () => own.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  return { own, release: () => signal.removeEventListener('abort', abort) };
}

/** After a failed reconciliation: 5, 10, 20, … s, at most 15 min. */
const retry = { firstMs: 5_000, mostMs: 15 * 60_000 } as const;
/** Time until the next reconciliation if a write is still in flight after the last one. On the project's clock. */
const inFlightMs = 30_000;
/** How often a refused token is compared with the current token in its file, in ms of real time. */
const tokenWatchMs = 2_000;

export interface Rest {
  readonly found: Pick<Found, 'plan' | 'condition' | 'failures'>;
  readonly intervalMs: number;
  /** Times at which other reasons require a reconciliation. Those in the past, and `NaN`, do not count. */
  readonly moments: readonly number[];
  readonly now: number;
}

/**
 * How long to wait for the next reconciliation if no trigger comes first. The time is jittered, so that many projects
 * do not reconcile at the same moment.
 */
export function restMs({ found, intervalMs, moments, now }: Rest, random: Random): number {
  const { plan, failures, condition } = found;
  const openings = (plan?.blocked ?? []).flatMap(({ starts_at: at }) =>
    at === undefined ? [] : Date.parse(at),
  );
  const untilMs = [...moments, ...openings].filter((at) => at > now).map((at) => at - now);
  // The firewall of a server waits for the end of this write.
  if (plan !== undefined && isInFlight(plan)) untilMs.push(inFlightMs);
  if (failures === 0) return Math.min(intervalMs * (0.9 + random.next() / 5), ...untilMs);
  const jitter = random.next();
  const leastMs = isHopeless(condition) ? intervalMs * (1 + jitter / 10) : 0;
  return Math.max(leastMs, backOff(retry, failures - 1, jitter));
}

/** Sleeps for `ms`, or until a trigger comes or `stop` aborts. After a refusal of the token, a new token is a trigger too. */
export async function rest(
  ms: number,
  { clock, profile, tokenMark }: Pick<ProjectSession, 'clock' | 'profile' | 'tokenMark'>,
  { wake, history }: { readonly wake: Wake; readonly history: Pick<ProjectHistory, 'found'> },
  stop: AbortSignal,
): Promise<void> {
  const mark = tokenMark();
  const endAt = clock.monotonic() + ms;
  const hopeless = isHopeless(history.found.condition);
  while (!wake.pending() && !stop.aborted) {
    const left = endAt - clock.monotonic();
    if (left <= 0) return wake.nudge(history.found.failures > 0 ? 'back-off' : 'timer');
    const most = hopeless ? tokenWatchMs * profile.timeScale : left;
    await wake.sleep(clock, Math.min(left, most), stop).catch(() => undefined);
    if (hopeless && tokenMark() !== mark) wake.nudge('token');
  }
}
