import type { Clock } from '../core/clock.ts';
import { lateArrivalMs, type UseMemory, UseRecord } from './token-record.ts';

interface BudgetOptions {
  /** Names the budget in the memory: a hash of base URL and token with the sort of request. */
  readonly bucket: string;
  /** Requests allowed in one window. */
  readonly limit: number;
  readonly windowMs: number;
  /** Scaled to the clock of the API. */
  readonly clock: Clock;
  /** How many times faster than real time `clock` runs. */
  readonly timeScale: number;
  readonly memory: UseMemory;
  /** Called once for each wait that is long enough for the operator to see. */
  readonly onWait?: (wait: Omit<BudgetWait, 'of'>) => void;
}

/** Requests that cannot be sent for a while. */
export interface BudgetWait {
  readonly of: 'reads' | 'writes';
  /** The estimated real time until the first of them can be sent. */
  readonly realMs: number;
  readonly waiting: number;
  /** The API has said so, by a 429; else the budget is used up. */
  readonly limited: boolean;
}

/** Permission to send one request. Exactly one of its methods is called, once. */
export interface Slot {
  /** The exchange is over, with an answer. */
  answered(): void;
  /** No answer: the request may reach the API later still. */
  lost(): void;
  /** Not a byte reached the API. */
  unsent(): void;
}

/**
 * The priorities of waiting reads, the most urgent first: polls that the firewall of an exposed server waits for; then
 * reads that a write depends on; then reads that show the effect of a write; then polls, which need fewer requests the
 * later they are sent; then reads that only refresh old values.
 */
const readPriorities = ['urgent', 'operation', 'evidence', 'poll', 'refresh'] as const;
/** The precedence of a read over other reads that wait for the same budget. A poll that waits too long goes first. */
export type ReadPriority = (typeof readPriorities)[number];

/** At most this many requests wait for a slot; one more is refused, as something loops. */
const maxWaiting = 10_000;
/** A poll that has waited this long, in ms, goes first, however much is read. */
const pollPatienceMs = 30_000;
/**
 * Requests in flight at once: as many as the transport has connections. Further requests would wait
 * in the transport, where a 429 to an earlier request could not stop them.
 */
const maxInFlight = 8;
/** A wait of at least this time, in real ms, is reported. */
const reportedWaitMs = 5_000;
/** At most this share of the slots is reserved. The other requests always have the rest. */
const mostReserved = 1 / 3;
/** The longest closing, for any value in an answer or a remembered note, in real ms. */
const mostClosedMs = 3_600_000;

/**
 * One of the token's two budgets, as a sliding window.
 *
 * ```
 * free ──acquire──▶ in flight ──answered──▶ cooling ──windowMs──▶ free
 *                     │  └──────lost──────▶ cooling ──windowMs + lateArrivalMs──▶ free
 *                     └──────unsent───────▶ free
 * ```
 * The exact arrival of a request at the API is unknown. The request arrives between its start and
 * its end. So its slot cools from its *end*: two requests that share a slot then arrive
 * more than a window apart, and neither a sliding window nor a fixed minute of any phase
 * holds more than the limit at the API.
 *
 * While writes wait, a part of the slots is reserved for their reads. Otherwise polls and the reads of earlier writes
 * would take the slots that are free before a turn, and the write budget would wait for reads.
 *
 * The memory records a slot before its request is sent, and the next process
 * starts with these records. One process assumes that no other program uses its token.
 *
 * @source API §8
 * @assumption A6 replays and refusals cost budget
 * @assumption A7 the phase of the API's minute is unknown
 */
export class Budget {
  readonly bucket: string;
  readonly limit: number;
  readonly #options: BudgetOptions;
  readonly #coolMs: number;
  /** An exchange that lasts longer is recorded again at its end: 2 s, or 100 ms of real time. */
  readonly #promptMs: number;
  /** In order of arrival. */
  readonly #waiting = new Set<Waiter>();
  readonly #record: UseRecord;
  #cooling: CoolingSlot[] = [];
  #inFlight = 0;
  /** The deferrable requests among them. */
  #deferrableInFlight = 0;
  /** Slots that deferrable requests leave free, until this time on the monotonic clock. */
  #reserved = { slots: 0, until: 0 };
  /** Requests that are about to wait. */
  #arriving = 0;
  #closedUntil = 0;
  #loading: Promise<void> | undefined;
  #alarm: AbortController | undefined;
  #closing = new AbortController();
  /** The end of the last reported wait, on the monotonic clock. */
  #reportedUntil = Number.NEGATIVE_INFINITY;

  constructor(options: BudgetOptions) {
    this.bucket = options.bucket;
    this.limit = options.limit;
    this.#options = options;
    const { windowMs, timeScale } = options;
    // The API's clock may drift against ours and count in whole real milliseconds.
    this.#coolMs = windowMs + Math.max(windowMs / 1000, 2 * timeScale);
    this.#promptMs = Math.max(2_000, 100 * timeScale);
    const inBlocks = options.memory.isShared === true && options.bucket.endsWith(':reads');
    this.#record = new UseRecord({ ...options, rememberMs: this.#rememberMs(), inBlocks });
  }

  /**
   * Waits for a slot: by priority, then in order of arrival. `refresh` yields to everything.
   * Rejects with the signal's reason, or the memory's error, and holds no slot then.
   */
  async acquire(priority: ReadPriority, signal?: AbortSignal): Promise<Slot> {
    const { clock } = this.#options;
    for (;;) {
      const slot = await this.#take(priority, signal);
      try {
        await this.#record.add(clock.now());
      } catch (error) {
        slot.unsent();
        throw error;
      }
      // Another request's 429 may have arrived while the use was written.
      if (!this.isClosed()) return slot;
      slot.unsent();
    }
  }

  /** Waits until a slot is free, and takes none. */
  async room(signal?: AbortSignal): Promise<void> {
    (await this.#take('operation', signal)).unsent();
  }

  /** Nothing is sent for this long, in ms of `clock`; survives the process. Never rejects. */
  async close(ms: number): Promise<void> {
    const { clock, timeScale } = this.#options;
    const span = Math.min(ms, mostClosedMs * timeScale);
    this.#closedUntil = Math.max(this.#closedUntil, clock.monotonic() + span);
    this.#report(this.#closedUntil, clock.monotonic());
    this.#pump();
    this.#closing.abort(new Error('the API limits requests'));
    this.#closing = new AbortController();
    // This process waits even without the note. The next write reports a store that fails.
    await this.#record.close(span).catch(() => {});
  }

  /** For the next window, deferrable requests leave this number of slots to the others. */
  reserve(slots: number): void {
    const { windowMs, clock } = this.#options;
    const isLess = slots < this.#reserved.slots;
    this.#reserved = {
      slots: Math.min(slots, Math.floor(this.limit * mostReserved)),
      until: clock.monotonic() + windowMs,
    };
    if (isLess) this.#pump();
  }

  /** Aborts when the API closes the budget. A waiting request can then use another token. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** The estimated wait of one more request, in ms. The budget must be loaded. */
  expectedWaitMs(priority: ReadPriority): number {
    const now = this.#options.clock.monotonic();
    const cooling = this.#cooling.filter(({ freeAt }) => freeAt > now);
    const ahead = this.#waiting.size + this.#arriving;
    const free = this.limit - this.#inFlight - cooling.length;
    const deferrable = cooling.filter((slot) => slot.isDeferrable);
    const reserved = isDeferrable(priority)
      ? waitMs(deferrable, ahead - this.#freeForDeferrable(now), now)
      : 0;
    // Where connections are the limit, another token's are as good.
    const isBusy = this.#inFlight + ahead >= maxInFlight;
    return Math.max(waitMs(cooling, ahead - free, now), reserved, Number(isBusy), this.#closedUntil - now);
  }

  /** The time until each slot is free, in ms of `clock`. The slot of a request in flight cools from now on. */
  slotsInMs(): readonly number[] {
    const now = this.#options.clock.monotonic();
    const closedMs = Math.max(0, this.#closedUntil - now);
    const cooling = this.#cooling.map(({ freeAt }) => Math.max(0, freeAt - now));
    const inFlight = Array.from({ length: this.#inFlight }, () => this.#coolMs);
    const free = Math.max(0, this.limit - cooling.length - inFlight.length);
    return [...cooling, ...inFlight, ...Array.from({ length: free }, () => 0)].map((ms) =>
      Math.max(ms, closedMs),
    );
  }

  isClosed(): boolean {
    return this.#options.clock.monotonic() < this.#closedUntil;
  }

  /** Reads once how much was sent before this process. */
  load(): Promise<void> {
    this.#loading ??= this.#load().catch((error: unknown) => {
      // The next request loads again. Until the recent requests are known, no request may be sent.
      this.#loading = undefined;
      throw error;
    });
    return this.#loading;
  }

  async #take(priority: ReadPriority, signal?: AbortSignal): Promise<Slot> {
    this.#arriving += 1;
    try {
      await this.load();
    } finally {
      this.#arriving -= 1;
    }
    signal?.throwIfAborted();
    await this.#wait(priority, signal);
    return this.#newSlot(isDeferrable(priority));
  }

  /** Resolves once the request is granted; rejects with the signal's reason. */
  #wait(priority: ReadPriority, signal?: AbortSignal): Promise<void> {
    if (this.#waiting.size >= maxWaiting)
      throw new Error(`more than ${maxWaiting} requests wait for the budget`);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const abort = () => {
      this.#waiting.delete(waiter);
      this.#pump();
      reject(signal?.reason);
    };
    const grant = () => {
      signal?.removeEventListener('abort', abort);
      resolve();
    };
    const waiter: Waiter = { priority, since: this.#options.clock.monotonic(), grant };
    signal?.addEventListener('abort', abort, { once: true });
    this.#waiting.add(waiter);
    this.#pump();
    return promise;
  }

  async #load(): Promise<void> {
    const { clock, timeScale } = this.#options;
    const now = clock.now();
    const { uses, closedMs } = await this.#record.load(mostClosedMs * timeScale);
    for (const at of uses) {
      // A lost request is recorded ahead; anything further in the future means that the clock was set back.
      const age = Math.max(-lateArrivalMs, now - at);
      const freeAt = clock.monotonic() - age + this.#rememberMs();
      this.#cooling.push({ freeAt, isDeferrable: false });
    }
    this.#closedUntil = Math.max(this.#closedUntil, clock.monotonic() + closedMs);
  }

  /** How long a request counts after its record, in ms of `clock`. */
  #rememberMs(): number {
    return this.#coolMs + this.#promptMs;
  }

  #newSlot(ofDeferrable: boolean): Slot {
    const startedAt = this.#options.clock.monotonic();
    return {
      answered: () => this.#end(startedAt, 0, ofDeferrable),
      lost: () => this.#end(startedAt, lateArrivalMs, ofDeferrable),
      unsent: () => {
        this.#inFlight -= 1;
        if (ofDeferrable) this.#deferrableInFlight -= 1;
        this.#pump();
      },
    };
  }

  /** `lateMs`: how much later it may still arrive. */
  #end(startedAt: number, lateMs: number, ofDeferrable: boolean): void {
    const { clock } = this.#options;
    const now = clock.monotonic();
    this.#inFlight -= 1;
    if (ofDeferrable) this.#deferrableInFlight -= 1;
    this.#cooling.push({ freeAt: now + lateMs + this.#coolMs, isDeferrable: ofDeferrable });
    this.#pump();
    // The record of the start is too early for a slow or late exchange. A second record counts twice, which is safe.
    const slow = now - startedAt > this.#promptMs;
    if (slow || lateMs > 0) this.#record.add(clock.now() + lateMs).catch(() => {});
  }

  /** Hands out the free slots and sets an alarm for the next one. Every change of state ends here. */
  #pump(): void {
    // Without a reason, each call would create an error with its stack.
    this.#alarm?.abort('set again');
    this.#alarm = undefined;
    const now = this.#options.clock.monotonic();
    this.#cooling = this.#cooling.filter(({ freeAt }) => freeAt > now);
    if (now >= this.#closedUntil) this.#grant(now);
    if (this.#waiting.size === 0) return;
    // The end of a request in flight serves the line too. Without one, only time does.
    const wakeAt =
      now < this.#closedUntil ? this.#closedUntil : Math.min(...this.#cooling.map(({ freeAt }) => freeAt));
    if (!Number.isFinite(wakeAt)) return;
    this.#setAlarm(wakeAt - now);
    if (this.#inFlight < maxInFlight) this.#report(wakeAt, now);
  }

  #grant(now: number): void {
    while (this.#inFlight < maxInFlight && this.#inFlight + this.#cooling.length < this.#options.limit) {
      const next = this.#next(now);
      if (next === undefined) return;
      this.#waiting.delete(next);
      this.#inFlight += 1;
      if (isDeferrable(next.priority)) this.#deferrableInFlight += 1;
      next.grant();
    }
  }

  /** The request with the next turn: by priority, then in order of arrival. */
  #next(now: number): Waiter | undefined {
    const onlyUrgent = this.#freeForDeferrable(now) <= 0;
    let next: Waiter | undefined;
    let best = Number.POSITIVE_INFINITY;
    for (const waiter of this.#waiting) {
      const { priority, since } = waiter;
      if (onlyUrgent && isDeferrable(priority)) continue;
      const isLate = priority === 'poll' && now - since >= pollPatienceMs;
      const rank = isLate ? -1 : readPriorities.indexOf(priority);
      if (rank < best) [next, best] = [waiter, rank];
    }
    return next;
  }

  /** The number of slots that deferrable requests may still take, if so many are free. */
  #freeForDeferrable(now: number): number {
    const { slots, until } = this.#reserved;
    const cooling = this.#cooling.filter((slot) => slot.isDeferrable && slot.freeAt > now).length;
    return this.limit - (now < until ? slots : 0) - this.#deferrableInFlight - cooling;
  }

  #setAlarm(ms: number): void {
    const mine = new AbortController();
    this.#alarm = mine;
    this.#options.clock.sleep(ms, mine.signal).then(
      () => {
        if (this.#alarm === mine) this.#pump();
      },
      () => {},
    );
  }

  #report(until: number, now: number): void {
    const { timeScale, onWait } = this.#options;
    const realMs = (until - now) / timeScale;
    // Several requests that were refused together cause one report.
    if (realMs < reportedWaitMs || until < this.#reportedUntil + reportedWaitMs * timeScale) return;
    this.#reportedUntil = until;
    onWait?.({ realMs, waiting: this.#waiting.size, limited: now < this.#closedUntil });
  }
}

/** A request that waits for a slot. */
interface Waiter {
  readonly priority: ReadPriority;
  /** On the monotonic clock. */
  readonly since: number;
  grant(): void;
}

/** Whether the request leaves the reserved slots of the budget to the reads of waiting writes. */
function isDeferrable(priority: ReadPriority): boolean {
  return priority !== 'operation' && priority !== 'urgent';
}

interface CoolingSlot {
  /** On the monotonic clock. */
  readonly freeAt: number;
  /** Its request was deferrable. */
  readonly isDeferrable: boolean;
}

/** The time until as many slots are free again as the requests ahead need, and one more. */
function waitMs(cooling: readonly CoolingSlot[], ahead: number, now: number): number {
  if (ahead < 0) return 0;
  const times = cooling.map(({ freeAt }) => freeAt).sort((a, b) => a - b);
  return (times[Math.min(ahead, times.length - 1)] ?? now) - now;
}
