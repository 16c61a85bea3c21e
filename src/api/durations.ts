import type { WriteName } from '../core/ports.ts';
import type { UseMemory } from './budget.ts';

/** What one ended task teaches. */
export interface Lesson {
  /** Its first poll came before its end. */
  readonly missed: boolean;
  /** From acceptance to the poll that found it ended, in ms. */
  readonly endedBy: number;
}

export interface Durations {
  /** The time in which about four of five tasks of the sort have ended, in ms. */
  usual(sort: WriteName): Promise<number>;
  learn(sort: WriteName, lesson: Lesson): Promise<void>;
}

interface Estimate {
  readonly ms: number;
  /** Tasks learnt from. */
  readonly count: number;
}

/** The share of tasks that should have ended at their first poll. */
const share = 0.8;
/** Bounds of an estimate, in ms. */
const bounds = { leastMs: 250, mostMs: 3_600_000 };
/** How far one task moves the estimate, in powers of e: much at first, little once it is settled. */
const stride = { first: 2, settled: 0.25 };

/** Before anything is learnt: short of what is likely, as the first task then corrects it upwards. */
const guessMs: Readonly<Partial<Record<WriteName, number>>> = {
  create_server: 20_000,
  delete_server: 10_000,
  add_iso: 15_000,
};
const otherGuessMs = 4_000;

/**
 * Tracks a quantile by its own hits and misses: a first poll that finds the task ended moves the
 * estimate down a little, one that comes too early moves it up four times as far, so that it
 * rests where four of five are hits. How long a task really took is never known, only between
 * which polls it ended, so averages of measured times would drift upwards.
 */
export function createDurations(memory: UseMemory): Durations {
  const estimates = new Map<WriteName, Estimate>();

  async function load(sort: WriteName): Promise<Estimate> {
    const known = estimates.get(sort);
    if (known !== undefined) return known;
    // A note that cannot be read costs some polls, and nothing else.
    const noted = readEstimate(await memory.note(noteName(sort)).catch(() => undefined));
    const estimate = estimates.get(sort) ?? noted ?? { ms: guessMs[sort] ?? otherGuessMs, count: 0 };
    estimates.set(sort, estimate);
    return estimate;
  }

  return {
    usual: async (sort) => (await load(sort)).ms,
    learn: async (sort, lesson) => {
      const next = moved(await load(sort), lesson);
      estimates.set(sort, next);
      await memory.putNote(noteName(sort), { ms: next.ms, count: next.count }).catch(() => {});
    },
  };
}

function moved({ ms, count }: Estimate, { missed, endedBy }: Lesson): Estimate {
  const width = Math.max(stride.settled, stride.first / (count + 1));
  // A miss says by when the task had ended; there is no reason to go beyond that.
  const next = missed
    ? Math.min(ms * Math.exp(share * width), Math.max(ms, endedBy))
    : ms * Math.exp((share - 1) * width);
  return { ms: Math.round(clamped(next)), count: count + 1 };
}

function clamped(ms: number): number {
  return Math.min(bounds.mostMs, Math.max(bounds.leastMs, ms));
}

function readEstimate(note: unknown): Estimate | undefined {
  if (note === null || typeof note !== 'object' || !('ms' in note) || !('count' in note)) return undefined;
  const { ms, count } = note;
  if (typeof ms !== 'number' || typeof count !== 'number' || !(ms > 0) || !(count >= 0)) return undefined;
  return { ms: clamped(ms), count };
}

function noteName(sort: WriteName): string {
  return `task-duration:${sort}`;
}
