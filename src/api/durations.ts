import type { WriteName } from '../core/ports.ts';
import type { UseMemory } from './token-record.ts';
import { guessedDurationMs } from './write-requests.ts';

/** The observation from one ended task. */
export interface Lesson {
  /** Polls that came before its end. */
  readonly misses: number;
  /** From acceptance to the poll that found it ended, in ms. */
  readonly endedBy: number;
  /**
   * The latest poll that found it running, in ms from acceptance; 0 if the first one found it ended. Only of tasks that
   * are polled from their earliest end on.
   */
  readonly ranAt?: number | undefined;
  /** The number of tasks of the sort that still ran. */
  readonly running?: number;
}

export interface Durations {
  /** The estimated duration of tasks of this sort. */
  usual(sort: WriteName): Promise<Estimate>;
  learn(sort: WriteName, lesson: Lesson): Promise<void>;
  /** The longest that one has taken, in ms. */
  longest(sort: WriteName): Promise<number>;
}

export interface Estimate {
  /** The time in which about 4 of 5 tasks of the sort have ended. */
  readonly ms: number;
  /** Tasks learnt from. */
  readonly count: number;
  /** Some task took longer than it was thought to, so the estimate is bounded from below. */
  readonly bounded: boolean;
  /** The longest that one has taken. */
  readonly longestMs: number;
  /** The time in which about one of six tasks of the sort has ended. */
  readonly earliestMs: number;
  /** Tasks that this time is learnt from. */
  readonly earlyCount: number;
}

/** The share of tasks that should have ended at their first poll. */
const share = 0.8;
/** Bounds of an estimate, in ms. */
const bounds = { leastMs: 250, mostMs: 3_600_000 };
/** How far one task moves the estimate, in powers of e: much at first, little once it is settled. */
const stride = { first: 2, settled: 0.25 };

/** The share of tasks that their first urgent poll finds ended, and how far one task moves that time. */
const early = { share: 0.16, first: 0.6, settled: 0.05, guessed: 0.65 };
const fewTasks = 3;

/** While every first poll was late enough, nothing is known but that tasks take less. */
const searchFactor = 0.5;

/**
 * Tracks a quantile by its own hits and misses: a first poll that finds the task ended moves the
 * estimate down a little, one that comes too early moves it up 4 times as far, so that it
 * rests where 4 of 5 are hits. How long a task really took is never known, only between
 * which polls it ended, so averages of measured times would drift upwards.
 */
export function createDurations(memory: UseMemory): Durations {
  const estimates = new Map<WriteName, Estimate>();

  async function load(sort: WriteName): Promise<Estimate> {
    const known = estimates.get(sort);
    if (known !== undefined) return known;
    // A note that cannot be read costs some polls, and nothing else.
    const noted = readEstimate(await memory.note(noteName(sort)).catch(() => undefined));
    const estimate = estimates.get(sort) ?? noted ?? fresh(guessedDurationMs(sort));
    estimates.set(sort, estimate);
    return estimate;
  }

  return {
    usual: load,
    longest: async (sort) => (await load(sort)).longestMs,
    learn: async (sort, lesson) => {
      const next = moved(await load(sort), lesson);
      estimates.set(sort, next);
      await memory.putNote(noteName(sort), { ...next }).catch(() => {});
    },
  };
}

function fresh(ms: number): Estimate {
  return { ms, count: 0, bounded: false, longestMs: 0, earliestMs: ms * early.guessed, earlyCount: 0 };
}

function moved(before: Estimate, lesson: Lesson): Estimate {
  const { ms, count, bounded, longestMs } = before;
  const { misses, endedBy } = lesson;
  const width = Math.max(stride.settled, stride.first / (count + 1));
  const after = (next: number) => {
    const usualMs = Math.round(clamped(next));
    return {
      ms: usualMs,
      count: count + 1,
      bounded: bounded || misses > 0,
      longestMs: Math.max(longestMs, endedBy),
      ...earliest(before, lesson, usualMs),
    };
  };
  // Each further miss cost a request too, but shows less. The estimate grows at most to the poll that found the end.
  if (misses > 0)
    return after(Math.min(ms * Math.exp(share * width * Math.sqrt(misses)), Math.max(ms, endedBy)));
  return after(ms * (bounded ? Math.exp((share - 1) * width) : searchFactor));
}

/** The same as above for the quantile of early ends. Before any task shows it, it is a share of the usual time. */
function earliest(
  { earliestMs, earlyCount }: Estimate,
  { ranAt, endedBy, running = 0 }: Lesson,
  usualMs: number,
): Pick<Estimate, 'earliestMs' | 'earlyCount'> {
  const guessedMs = usualMs * early.guessed;
  if (ranAt === undefined) return { earliestMs: earlyCount === 0 ? guessedMs : earliestMs, earlyCount };
  const width = Math.max(early.settled, early.first / (earlyCount + 1));
  const isEarly = ranAt === 0 || endedBy <= earliestMs;
  const move = isEarly ? early.share - 1 : early.share;
  // The first of many to end is an early one.
  const first = running >= fewTasks ? ranAt : Math.min(ranAt, guessedMs);
  const next = earlyCount === 0 && ranAt > 0 ? first : earliestMs * Math.exp(move * width);
  return { earliestMs: Math.round(Math.min(clamped(next), usualMs)), earlyCount: earlyCount + 1 };
}

function clamped(ms: number): number {
  return Math.min(bounds.mostMs, Math.max(bounds.leastMs, ms));
}

function readEstimate(note: unknown): Estimate | undefined {
  if (note === null || typeof note !== 'object' || !('ms' in note) || !('count' in note)) return undefined;
  const { ms, count } = note;
  const bounded = 'bounded' in note && note.bounded === true;
  if (typeof ms !== 'number' || typeof count !== 'number' || !(ms > 0) || !(count >= 0)) return undefined;
  const number = (name: string) => {
    const value: unknown = Reflect.get(note, name);
    return typeof value === 'number' && value > 0 ? value : undefined;
  };
  const known = fresh(clamped(ms));
  return {
    ...known,
    count,
    bounded,
    longestMs: number('longestMs') ?? 0,
    earliestMs: Math.min(number('earliestMs') ?? known.earliestMs, known.ms),
    earlyCount: number('earlyCount') ?? 0,
  };
}

function noteName(sort: WriteName): string {
  return `task-duration:${sort}`;
}
