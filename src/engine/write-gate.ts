import type { Clock } from '../core/clock.ts';
import type { ResourceKey } from '../core/keys.ts';

/**
 * One write at a time for a token: the difference between two lists is then the effect of one write. Waiting
 * writes take turns in proportion to their urgency. Among equally urgent writes, those that became ready a moment ago
 * go first, because their reads are still fresh, then the write that has waited longest.
 *
 * The turn begins when the write budget has room. A write has no turn if the firewall of an exposed server would then
 * have to wait for the budget.
 */
export interface WriteGate {
  /** Runs `work` alone. Rejects with the reason of the signal if the signal aborts before the turn. */
  run<Result>(work: () => Promise<Result>, options: WriteOptions): Promise<Result>;
  /** Whether works wait for their turn. */
  isWaited(): boolean;
  /** Called by the work that has the turn and is about to send. The next waiting works prepare their reads. */
  readyNext(): void;
  /** The time from the acceptance of a server to the earliest use of its firewall, in ms; 0 if the API allows it at once. */
  firewallAfterMs: number;
  /** The firewall will be sent, `firewallAfterMs` from now, until `settle` is called. */
  expect(firewall: ResourceKey): void;
  /** An expected firewall will not be sent before this time from now, in ms. */
  postpone(firewall: ResourceKey, ms: number): void;
  settle(firewall: ResourceKey): void;
}

interface WriteOptions {
  readonly urgency: number;
  readonly signal?: AbortSignal | undefined;
  /** Called shortly before the turn, so that `work` finds fresh reads. */
  readonly getReady?: (() => void) | undefined;
  /** The work creates a server that is exposed until its firewall is sent. */
  readonly exposes?: boolean | undefined;
}

interface Waiter extends WriteOptions {
  /** When it became ready, on the monotonic clock. */
  readonly since: number;
  readonly enter: () => void;
  isPrepared: boolean;
}

/**
 * The number of waiting works that prepare at a time. The reads of one work take about as long as one or two writes.
 */
const ahead = 4;
/** After this wait, in ms, the reads that made a write ready are too old for it, or will soon be. */
const freshForMs = 45_000;
/**
 * If firewalls wait for the ends of creations, the other writes are spread evenly, so that a slot of the write budget is
 * free soon after each end, and so that the polls of many tasks at once do not exceed the read budget. The creation of a
 * server takes the place of its firewall too. Writes that were late can be sent sooner, at most this many.
 */
const exposedIntervals = 2.1;
const mostBehind = 4;
/** The time that a firewall may wait for the write budget, in ms. */
const firewallGraceMs = 500;
/** A firewall that is this late, in ms, keeps no slot of the write budget any more. */
const mostLateMs = 60_000;

/** The write budget, as far as the order of writes depends on it. */
export interface GateBudget {
  /** The time until this number of writes can be sent, in ms. */
  roomMs(writes: number): number;
  /** The time between two writes that are spread evenly, in ms. */
  writeIntervalMs(): number;
}

const noBudget: GateBudget = { roomMs: () => 0, writeIntervalMs: () => 0 };

/** @param budget left out: the gate only runs one work at a time, without regard to the request limits */
export function createWriteGate(
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
  budget: GateBudget = noBudget,
): WriteGate {
  const waiting: Waiter[] = [];
  const turns = new FairQueue();
  /** When each expected firewall can be sent, on the monotonic clock. */
  const expected = new Map<ResourceKey, number>();
  let busy = false;
  /** While firewalls wait for the end of creations: when the next other write can be sent, on the monotonic clock. */
  let nextAt = Number.NEGATIVE_INFINITY;
  let alarm: AbortController | undefined;

  /** Gives the turn to the next work. Called after every change. */
  function pump(): void {
    alarm?.abort('set again');
    alarm = undefined;
    if (busy || waiting.length === 0) return;
    const now = clock.monotonic();
    const [room, late, lateIfExposed] = [
      budget.roomMs(1),
      lateMs(now, []),
      lateMs(now, [now + gate.firewallAfterMs]),
    ];
    const tooEarly = gate.firewallAfterMs === 0 ? 0 : nextAt - now;
    const lateOf = ({ urgency, exposes }: Waiter) => {
      if (urgency === Number.POSITIVE_INFINITY) return 0;
      if (exposes === true) return Math.max(lateIfExposed, tooEarly);
      return expected.size === 0 ? 0 : Math.max(late, tooEarly);
    };
    const fitting = room > 0 ? [] : waiting.filter((waiter) => lateOf(waiter) === 0);
    const next = takeNext(fitting, turns, now);
    if (next === undefined) {
      wait(Math.max(1, room, Math.min(...waiting.map(lateOf))));
      return;
    }
    waiting.splice(waiting.indexOf(next), 1);
    busy = true;
    spread(next, now);
    next.enter();
  }

  /** A few slow turns do not delay the turns after them. */
  function spread({ urgency, exposes }: Waiter, now: number): void {
    if (urgency === Number.POSITIVE_INFINITY) return;
    const intervalMs = budget.writeIntervalMs();
    nextAt =
      Math.max(nextAt, now - mostBehind * intervalMs) +
      (exposes === true ? exposedIntervals : 1) * intervalMs;
  }

  function wait(ms: number): void {
    const mine = new AbortController();
    alarm = mine;
    clock.sleep(ms, mine.signal).then(
      () => {
        if (alarm === mine) pump();
      },
      () => undefined,
    );
  }

  /** How much too long an expected firewall would wait for the budget if one more write were sent now, in ms. */
  function lateMs(now: number, further: readonly number[]): number {
    const due = [...expected.values(), ...further]
      .filter((at) => at + mostLateMs > now)
      .sort((a, b) => a - b);
    const late = due.map((at, index) => budget.roomMs(index + 2) - Math.max(0, at - now) - firewallGraceMs);
    return Math.max(0, ...late);
  }

  async function enter(options: WriteOptions): Promise<void> {
    const { signal } = options;
    signal?.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const abort = () => {
        waiting.splice(waiting.indexOf(waiter), 1);
        pump();
        reject(signal?.reason);
      };
      const waiter: Waiter = {
        ...options,
        since: clock.monotonic(),
        isPrepared: false,
        enter: () => {
          signal?.removeEventListener('abort', abort);
          resolve();
        },
      };
      waiting.push(waiter);
      signal?.addEventListener('abort', abort, { once: true });
      pump();
    });
  }

  const gate: WriteGate = {
    firewallAfterMs: 0,
    async run(work, options) {
      await enter(options);
      try {
        return await work();
      } finally {
        busy = false;
        pump();
      }
    },
    isWaited: () => waiting.length > 0,
    readyNext() {
      for (const waiter of nextOf(waiting, turns, clock.monotonic())) {
        if (!waiter.isPrepared) waiter.getReady?.();
        waiter.isPrepared = true;
      }
    },
    postpone(firewall, ms) {
      if (!expected.has(firewall)) return;
      expected.set(firewall, clock.monotonic() + ms);
      pump();
    },
    expect: (firewall) => void expected.set(firewall, clock.monotonic() + gate.firewallAfterMs),
    settle(firewall) {
      if (expected.delete(firewall)) pump();
    },
  };
  return gate;
}

/** Takes the waiter with the next turn out of the waiting ones. */
function takeNext(waiting: Waiter[], turns: FairQueue, now: number): Waiter | undefined {
  const urgency = turns.next(waiting.map((waiter) => waiter.urgency));
  const isNext = (waiter: Waiter) => waiter.urgency === urgency;
  const fresh = waiting.findIndex((waiter) => isNext(waiter) && now - waiter.since < freshForMs);
  const at = fresh === -1 ? waiting.findIndex(isNext) : fresh;
  return at === -1 ? undefined : waiting.splice(at, 1)[0];
}

/** The waiters that have the next turns, if no other waiter comes. */
function nextOf(waiting: readonly Waiter[], turns: FairQueue, now: number): Waiter[] {
  const left = [...waiting];
  const further = turns.copy();
  return Array.from({ length: ahead }, () => takeNext(left, further, now) ?? []).flat();
}

/**
 * Divides turns in proportion to the urgencies (fair queueing): each turn of an urgency takes the time 1 / urgency, and
 * the turn that would end first is next. A turn of infinite urgency takes no time, so it is always next. An urgency that
 * did not wait for a while gains nothing by it.
 */
class FairQueue {
  #now = 0;
  #ends: Map<number, number>;

  constructor(now = 0, ends: ReadonlyMap<number, number> = new Map()) {
    this.#now = now;
    this.#ends = new Map(ends);
  }

  /** Takes the next turn, and returns its urgency. */
  next(urgencies: readonly number[]): number | undefined {
    let best: { readonly urgency: number; readonly end: number } | undefined;
    for (const urgency of new Set(urgencies)) {
      const end = this.#start(urgency) + 1 / urgency;
      const isSooner = best === undefined || end < best.end || (end === best.end && urgency > best.urgency);
      if (isSooner) best = { urgency, end };
    }
    if (best === undefined) return undefined;
    this.#now = this.#start(best.urgency);
    this.#ends.set(best.urgency, best.end);
    return best.urgency;
  }

  copy(): FairQueue {
    return new FairQueue(this.#now, this.#ends);
  }

  #start(urgency: number): number {
    return Math.max(this.#now, this.#ends.get(urgency) ?? 0);
  }
}
