import type { Clock } from '../core/clock.ts';
import type { StateStore } from '../core/state.ts';

/**
 * Who waits for a read, the most urgent first: what writes are decided on, then polls, which
 * find more ended the later they come, then what is only looked at for its age.
 */
export const readPriorities = ['operation', 'poll', 'refresh'] as const;
export type ReadPriority = (typeof readPriorities)[number];

/** What outlives the process: which requests were sent lately, and small learnt facts. */
export type UseMemory = Pick<StateStore, 'recordUse' | 'recentUse' | 'note' | 'putNote'>;

/**
 * The same memory for a dry run: it is read, so that the limits hold, and never written. So
 * the next process does not know of a dry run's reads, and learns of them by a 429, which costs
 * no more than the few requests that are under way at once. A file of use elsewhere on the
 * machine would know more, but a dry run that writes none is what people are promised.
 */
export function readOnlyMemory(memory: UseMemory): UseMemory {
  return {
    recordUse: async () => {},
    recentUse: (bucket, since) => memory.recentUse(bucket, since),
    note: (name) => memory.note(name),
    putNote: async () => {},
  };
}

export interface BudgetOptions {
  /** Names the budget in the memory: a hash of base URL and token with the sort of request. */
  readonly bucket: string;
  /** Requests allowed in one window. */
  readonly limit: number;
  readonly windowMs: number;
  /** Already scaled where the API's clock runs faster. */
  readonly clock: Clock;
  /** How many times faster than real time `clock` runs. */
  readonly timeScale: number;
  readonly memory: UseMemory;
  /** Told once of each wait that a person would notice. */
  readonly onWait?: (wait: Omit<BudgetWait, 'of'>) => void;
}

/** Requests that cannot be sent for a while. */
export interface BudgetWait {
  readonly of: 'reads' | 'writes';
  /** Real time until the first of them can, as far as it is known. */
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
 * Requests under way at once: as many as the transport has connections. More would wait
 * there, where a 429 to the first of them could not hold back the others any more.
 */
const maxInFlight = 8;
/** A wait that is as long as this, in real ms, is told of. */
const toldWaitMs = 5_000;
/** At most this many requests wait for a slot; one more is refused, as something loops. */
const maxWaiting = 10_000;
/** A poll that has waited this long, in ms, goes first, however much is read. */
const pollPatienceMs = 30_000;
/** A lost request is taken to arrive no later than this after it was given up. */
export const lateArrivalMs = 30_000;
/** The longest closing that a remembered note can cause, whatever it says. */
const maxCloseMs = 3_600_000;

/**
 * One of the token's two budgets, as a sliding window.
 *
 * ```
 * free ──acquire──▶ in flight ──answered──▶ cooling ──windowMs──▶ free
 *                     │  └──────lost──────▶ cooling ──windowMs + lateArrivalMs──▶ free
 *                     └──────unsent───────▶ free
 * ```
 * When a request arrived at the API is not known, only that it was between its start and
 * its end. So its slot cools from its *end*: two requests that share a slot then arrive
 * more than a window apart, and neither a sliding window nor a fixed minute of any phase
 * holds more than the limit at the API.
 *
 * A slot is recorded in the memory before its request is sent, and the next process
 * starts with what was sent before it. One process counts on being alone with its token.
 *
 * @source API §8
 * @assumption A6 replays and refusals cost budget
 * @assumption A7 the phase of the API's minute is unknown
 */
export interface Budget {
  readonly bucket: string;
  /**
   * Waits for a slot: by priority, then in order of arrival. `refresh` yields to everything.
   * Rejects with the signal's reason, or the memory's error, and holds no slot then.
   */
  acquire(priority: ReadPriority, signal?: AbortSignal): Promise<Slot>;
  /** Waits until a slot is free, and takes none. */
  room(signal?: AbortSignal): Promise<void>;
  /** Nothing is sent for this long, in ms of `clock`; survives the process. Never rejects. */
  close(ms: number): Promise<void>;
  isClosed(): boolean;
}

interface Waiter {
  /** On the monotonic clock. */
  readonly since: number;
  grant(): void;
}

export function createBudget(options: BudgetOptions): Budget {
  const { bucket, limit, clock, memory } = options;
  const timing = budgetTiming(options);
  const waiting: Record<ReadPriority, Waiter[]> = { operation: [], poll: [], refresh: [] };
  const inLine = () => readPriorities.map((each) => waiting[each]).filter(({ length }) => length > 0);
  /** When each cooling slot is free again, on the monotonic clock. */
  let cooling: number[] = [];
  let inFlight = 0;
  let closedUntil = 0;
  let loading: Promise<void> | undefined;
  let alarm: AbortController | undefined;
  /** The end of the last wait that was told of, on the monotonic clock. */
  let toldUntil = Number.NEGATIVE_INFINITY;

  async function load(): Promise<void> {
    const now = clock.now();
    const uses = await memory.recentUse(bucket, now - timing.rememberMs);
    const closed = await memory.note(closedNote(bucket));
    for (const at of uses) {
      // A lost request is recorded ahead; anything further in the future means that the clock was set back.
      const age = Math.max(-lateArrivalMs, now - at);
      cooling.push(clock.monotonic() - age + timing.rememberMs);
    }
    closedUntil = Math.max(closedUntil, clock.monotonic() + leftOfNote(closed, now));
  }

  async function acquire(priority: ReadPriority, signal?: AbortSignal): Promise<Slot> {
    for (;;) {
      const slot = await take(priority, signal);
      try {
        await memory.recordUse(bucket, clock.now());
      } catch (error) {
        slot.unsent();
        throw error;
      }
      // Another request's 429 may have arrived while the use was written.
      if (clock.monotonic() >= closedUntil) return slot;
      slot.unsent();
    }
  }

  async function room(signal?: AbortSignal): Promise<void> {
    (await take('operation', signal)).unsent();
  }

  async function take(priority: ReadPriority, signal?: AbortSignal): Promise<Slot> {
    loading ??= load().catch((error: unknown) => {
      // The next request tries again; without knowing what was sent, nothing may be.
      loading = undefined;
      throw error;
    });
    await loading;
    signal?.throwIfAborted();
    if (inLine().reduce((sum, { length }) => sum + length, 0) >= maxWaiting) {
      throw new Error(`more than ${maxWaiting} requests wait for the budget`);
    }
    const queue = waiting[priority];
    await new Promise<void>((resolve, reject) => {
      const abort = () => {
        queue.splice(queue.indexOf(waiter), 1);
        pump();
        reject(signal?.reason);
      };
      const waiter: Waiter = {
        since: clock.monotonic(),
        grant: () => {
          signal?.removeEventListener('abort', abort);
          resolve();
        },
      };
      signal?.addEventListener('abort', abort, { once: true });
      queue.push(waiter);
      pump();
    });
    return newSlot();
  }

  /** Hands out what is free and sets the alarm for what is not. Every change of state ends here. */
  function pump(): void {
    alarm?.abort();
    alarm = undefined;
    const now = clock.monotonic();
    cooling = cooling.filter((freeAt) => freeAt > now);
    if (now >= closedUntil) {
      while (inFlight < maxInFlight && inFlight + cooling.length < limit) {
        const next = latePoll(now) ?? inLine()[0]?.shift();
        if (next === undefined) return;
        inFlight += 1;
        next.grant();
      }
    }
    if (inLine().length === 0) return;
    // The end of a request calls back; only where none is under way is there nothing but time to wait for.
    const wakeAt = now < closedUntil ? closedUntil : Math.min(...cooling);
    if (!Number.isFinite(wakeAt)) return;
    setAlarm(wakeAt - now);
    if (inFlight < maxInFlight) tell(wakeAt, now);
  }

  function tell(until: number, now: number): void {
    const realMs = (until - now) / options.timeScale;
    // Requests that were refused together do not tell one after the other.
    if (realMs < toldWaitMs || until < toldUntil + toldWaitMs * options.timeScale) return;
    toldUntil = until;
    const waiting = inLine().reduce((sum, { length }) => sum + length, 0);
    options.onWait?.({ realMs, waiting, limited: now < closedUntil });
  }

  function latePoll(now: number): Waiter | undefined {
    const [first] = waiting.poll;
    return first !== undefined && now - first.since >= pollPatienceMs ? waiting.poll.shift() : undefined;
  }

  function setAlarm(ms: number): void {
    const mine = new AbortController();
    alarm = mine;
    clock.sleep(ms, mine.signal).then(
      () => {
        if (alarm === mine) pump();
      },
      () => {},
    );
  }

  function newSlot(): Slot {
    const startedAt = clock.monotonic();
    const end = (lateMs: number) => {
      const now = clock.monotonic();
      inFlight -= 1;
      cooling.push(now + lateMs + timing.coolMs);
      pump();
      // The record made at the start says too little of such an exchange. Counting it twice is safe.
      const slow = now - startedAt > timing.promptMs;
      if (slow || lateMs > 0) memory.recordUse(bucket, clock.now() + lateMs).catch(() => {});
    };
    return {
      answered: () => end(0),
      lost: () => end(lateArrivalMs),
      unsent: () => {
        inFlight -= 1;
        pump();
      },
    };
  }

  async function close(ms: number): Promise<void> {
    const span = Math.min(ms, maxCloseMs * options.timeScale);
    closedUntil = Math.max(closedUntil, clock.monotonic() + span);
    tell(closedUntil, clock.monotonic());
    pump();
    const now = clock.now();
    // The process keeps to it without the note too; a store that fails shows itself at the next write.
    await memory.putNote(closedNote(bucket), { at: now, until: now + span }).catch(() => {});
  }

  function leftOfNote(note: unknown, now: number): number {
    if (note === null || typeof note !== 'object' || !('at' in note) || !('until' in note)) return 0;
    const { at, until } = note;
    if (typeof at !== 'number' || typeof until !== 'number') return 0;
    // A clock set back since does not make the wait longer than it was.
    return Math.min(until - Math.max(now, at), maxCloseMs * options.timeScale);
  }

  return { bucket, acquire, room, close, isClosed: () => clock.monotonic() < closedUntil };
}

function closedNote(bucket: string): string {
  return `closed:${bucket}`;
}

function budgetTiming({ windowMs, timeScale }: BudgetOptions) {
  // The API's clock may drift against ours and count in whole real milliseconds.
  const coolMs = windowMs + Math.max(windowMs / 1000, 2 * timeScale);
  /** An exchange that lasts longer is recorded again at its end: 2 s, or 100 ms of real time. */
  const promptMs = Math.max(2_000, 100 * timeScale);
  return { coolMs, promptMs, rememberMs: coolMs + promptMs };
}
