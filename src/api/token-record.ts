import type { Clock } from '../core/clock.ts';
import { given, member } from '../core/json.ts';
import type { WriteName, WriteResult } from '../core/ports.ts';
import type { StateStore } from '../core/state.ts';

/** The part of the store that keeps recent requests and small learnt facts for the next process. */
export interface UseMemory extends Pick<StateStore, 'note' | 'putNote'> {
  /** Other processes share its database, so each of its statements counts. */
  readonly isShared?: boolean;
}

/**
 * The same memory for a dry run. A dry run reads the memory, so that the limits hold, and never writes it. So
 * the next process does not know the reads of a dry run. A 429 reports them to it, and that costs
 * no more than the few requests that are in flight at once. A record elsewhere on the
 * machine would avoid the 429, but vdcsync promises that a dry run writes nothing.
 */
export function readOnlyMemory(memory: UseMemory): UseMemory {
  return {
    note: (name) => memory.note(name),
    putNote: async () => {},
  };
}

/** A lost request is taken to arrive no later than this after it was given up. */
export const lateArrivalMs = 30_000;
/** The requests that one record of a shared state covers, because that database would otherwise get a statement for each. */
const blockSize = 8;
/** How long the requests of a block may be sent, in ms. */
const blockMs = 3_000;

interface Block {
  left: number;
  readonly from: number;
  readonly to: number;
  readonly recorded: Promise<void>;
}

interface UseRecordOptions {
  readonly bucket: string;
  readonly clock: Clock;
  readonly memory: UseMemory;
  /** How long a request counts, in ms. */
  readonly rememberMs: number;
  /**
   * Records requests in blocks: before the first one is sent, and as if all of them were sent at the end of the block. So
   * the next process counts too many requests, and never too few.
   */
  readonly inBlocks: boolean;
}

/**
 * The notes from which the next process knows the requests that still count, by their wall times, and how long the API
 * has closed the budget. A request leaves the note by the monotonic clock, so a wall clock that jumps forgets nothing.
 */
export class UseRecord {
  readonly #options: UseRecordOptions;
  #uses: { readonly at: number; readonly until: number }[] = [];
  #block: Block | undefined;
  /** The record that is about to be made. */
  #next: Promise<void> | undefined;

  constructor(options: UseRecordOptions) {
    this.#options = options;
  }

  /** The wall times that the process before has recorded, and the rest of its closing, in ms. */
  async load(mostClosedMs: number): Promise<{ readonly uses: readonly number[]; readonly closedMs: number }> {
    const { bucket, clock, memory } = this.#options;
    const now = clock.now();
    const note = await memory.note(usedNote(bucket));
    const uses = Array.isArray(note) ? note.filter((at) => typeof at === 'number') : [];
    this.#uses = uses.map((at) => this.#use(at));
    const closed = await memory.note(closedNote(bucket));
    const [at, until] = [member(closed, 'at'), member(closed, 'until')];
    if (typeof at !== 'number' || typeof until !== 'number') return { uses, closedMs: 0 };
    // A clock set back since does not make the wait longer than it was.
    return { uses, closedMs: Math.min(until - Math.max(now, at), mostClosedMs) };
  }

  /** Resolves when a closing of this length is durable. */
  close(ms: number): Promise<void> {
    const { bucket, clock, memory } = this.#options;
    const at = clock.now();
    return memory.putNote(closedNote(bucket), { at, until: at + ms });
  }

  /** Resolves when the request is durable. `at`: wall ms. */
  add(at: number): Promise<void> {
    let block = this.#block;
    if (block === undefined || block.left === 0 || at < block.from || at > block.to) block = this.#begin(at);
    block.left -= 1;
    return block.recorded;
  }

  #begin(at: number): Block {
    const { clock, inBlocks } = this.#options;
    const [left, to] = inBlocks ? [blockSize, at + blockMs] : [1, at];
    const now = clock.monotonic();
    this.#uses = this.#uses.filter(({ until }) => until > now);
    for (let each = 0; each < left; each += 1) this.#uses.push(this.#use(to));
    const recorded = this.#put();
    const block = { left, from: at, to, recorded };
    this.#block = block;
    recorded.catch(() => {
      if (this.#block === block) this.#block = undefined;
    });
    return block;
  }

  /** Requests that begin at the same moment have one record. */
  #put(): Promise<void> {
    const { bucket, memory } = this.#options;
    this.#next ??= Promise.resolve().then(() => {
      this.#next = undefined;
      return memory.putNote(
        usedNote(bucket),
        this.#uses.map(({ at }) => at),
      );
    });
    return this.#next;
  }

  #use(at: number) {
    const { clock, rememberMs } = this.#options;
    // A time far in the future was recorded before the clock was set back.
    const aheadMs = Math.min(Math.max(0, at - clock.now()), lateArrivalMs);
    return { at, until: clock.monotonic() + aheadMs + rememberMs };
  }
}

function closedNote(bucket: string): string {
  return `closed:${bucket}`;
}

function usedNote(bucket: string): string {
  return `used:${bucket}`;
}

/** The level of one token, as far as the API's answers to writes have shown it. */
export interface TokenLevel {
  /** The first write of a process that it has let through. */
  readonly passed?: ShownBy;
  /** The last that it has refused for want of level or permission. */
  readonly refused?: ShownBy & { readonly code: string | null };
}

/** `at` is wall time in ms. */
interface ShownBy {
  readonly at: number;
  readonly write: WriteName;
}

/**
 * No read shows a token's level. So vdcsync stores the evidence from writes, under the same name as
 * the token's budget: a hash, from which no token can be derived.
 *
 * @source API §5 rules 4, 5, 6
 */
export function createTokenLevels(memory: UseMemory, clock: Clock) {
  const shown = new Set<string>();

  return {
    /** @param token the name of the token of the write. A failure is ignored, because only a hint is lost. */
    learn(token: string, write: WriteName, result: WriteResult): void {
      // The API decided about a replayed answer when it first answered the key, possibly for another token.
      if (result.type !== 'answer' || result.replayed) return;
      const passed = result.status >= 200 && result.status < 300;
      const code = result.code ?? null;
      if (!passed && result.status !== 403) return;
      const name = noteName(token, passed ? 'passed' : 'refused');
      const once = passed ? name : `${name} ${write} ${code}`;
      if (shown.has(once)) return;
      shown.add(once);
      const at = clock.now();
      void memory.putNote(name, passed ? { at, write } : { at, write, code }).catch(() => {});
    },
    async known(this: void, token: string): Promise<TokenLevel> {
      const [seen, refused] = await Promise.all([
        memory.note(noteName(token, 'passed')),
        memory.note(noteName(token, 'refused')),
      ]);
      return given({ passed: seen, refused }) as unknown as TokenLevel;
    },
  };
}

function noteName(token: string, what: 'passed' | 'refused'): string {
  return `token:${token}:${what}`;
}
