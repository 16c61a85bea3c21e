import { z } from 'zod';
import type { Clock } from '../core/clock.ts';
import { ConfigError } from '../core/errors.ts';
import type { TaskEnd, TaskWait, TaskWatch, WriteName } from '../core/ports.ts';
import type { ApiProfile } from '../core/profile.ts';
import type { Task } from '../core/resources.ts';
import { isFailedRead } from '../core/transport.ts';
import type { ApiLogger } from './call.ts';
import type { Reads } from './reads.ts';
import type { UseMemory } from './token-record.ts';
import { guessedDurationMs } from './writes.ts';

interface TasksOptions {
  readonly reads: Reads;
  /** For tasks that an urgent write waits for. */
  readonly urgentReads: Reads;
  readonly clock: Clock;
  readonly memory: UseMemory;
  readonly limits: ApiProfile['limits'];
  readonly logger: ApiLogger;
}

/** A task that the API does not know yet is asked for again, this long after its acceptance. */
const lostAfterMs = 60_000;
/** Bounds of the wait between two polls of one task, in ms. */
const pollStep = { shortestMs: 500, longestMs: 60_000, growth: 2 } as const;
/** While no task of a sort was polled too early, at most this number of them is polled. The others wait for them. */
const mostScouts = 2;
/** The others wait at most this many times the guessed duration. */
const patience = 6;
/** The first wait after the first poll, as a share of the usual time: short if the usual time is well known. */
const firstStepShare = { known: 0.25, guessed: 0.6 } as const;

/**
 * The polls of a task that an urgent write waits for: the first one when few tasks of the sort have ended, then one each
 * few seconds. If many of these tasks run, their polls together take at most the read budget.
 */
const urgent = { stepMs: 4_000, stepShare: 0.08 } as const;

/**
 * Waits for tasks with as few polls as their sort allows.
 *
 * ```
 * accepted ──usual time──▶ poll ──not terminal──▶ longer and longer steps ──▶ poll …
 *    poll: terminal ▶ succeeded | failed        (and never polled again)
 *    poll: 404, 60 s after acceptance ▶ lost    poll fails: it counts for nothing
 *    deadline passed, and polled since ▶ stuck
 * ```
 * The usual time is the one in which about 4 of 5 tasks of the sort have ended; it
 * is learnt, and kept across processes. `wait` rejects when its signal aborts it, and when a poll
 * could not be recorded in the state: a budget that forgets requests must not send any.
 *
 * @source API §4 rule 5
 * @assumption A10 a 404 is no outcome
 */
export function createTaskWatch(options: TasksOptions): TaskWatch {
  const { clock, logger, limits } = options;
  const readsFor = (task: TaskWait) => (task.isUrgent?.() === true ? options.urgentReads : options.reads);
  const durations = createDurations(options.memory);
  const scouts = new Map<TaskWait['sort'], Set<TaskWait>>();
  const waiting = new Set<TaskWait>();
  /** The urgent tasks that were seen to run. */
  const polled = new Set<TaskWait>();
  const urgentGapMs = limits.windowMs / limits.reads;

  async function wait(task: TaskWait, signal?: AbortSignal): Promise<TaskEnd> {
    const before = scouts.get(task.sort) ?? new Set();
    scouts.set(task.sort, before);
    if (before.size < mostScouts) before.add(task);
    waiting.add(task);
    try {
      return await waitAs(task, before, signal);
    } finally {
      before.delete(task);
      polled.delete(task);
      waiting.delete(task);
    }
  }

  async function waitAs(
    task: TaskWait,
    scouting: ReadonlySet<TaskWait>,
    signal?: AbortSignal,
  ): Promise<TaskEnd> {
    const { ms: usualMs, bounded, earliestMs } = await durations.usual(task.sort);
    // A clock that was set back must not make the wait longer than the deadline.
    const before = Math.max(0, clock.now() - task.acceptedAt);
    const startedAt = clock.monotonic();
    const elapsed = () => before + clock.monotonic() - startedAt;
    let step = Math.max(pollStep.shortestMs, usualMs * firstStepShare[bounded ? 'known' : 'guessed']);
    let next = task.isUrgent?.() === true ? earliestMs : usualMs;
    let misses = 0;
    let ranAt: number | undefined;
    for (;;) {
      const pauseMs = Math.max(0, Math.min(next, task.deadlineMs) - elapsed());
      if (task.isUrgent?.() === true) task.onNextPoll?.(pauseMs);
      await clock.sleep(pauseMs, signal);
      const askedAt = elapsed();
      const isUrgent = task.isUrgent?.() === true;
      const estimate = await durations.usual(task.sort);
      const later =
        isUrgent && estimate.bounded
          ? laterThan(askedAt, ranAt === undefined ? estimate.earliestMs : 0)
          : laterPoll(estimate, {
              ...{ askedAt, step, misses, usualMs },
              isScouted: !scouting.has(task) && scouting.size > 0,
            });
      if (later !== undefined && askedAt < task.deadlineMs) {
        next = later;
        continue;
      }
      const seen = await poll(task, signal);
      const end = endOf(seen, askedAt);
      if (end !== undefined) {
        // A first poll after the estimate does not show how long the task took. Causes are a restart, the budget, or
        // other tasks that have lowered the estimate since.
        const { ms } = await durations.usual(task.sort);
        const isInformative = misses > 0 || askedAt <= ms * 1.1 + pollStep.shortestMs;
        const isPrompt = isUrgent && askedAt <= estimate.earliestMs * 1.1 + pollStep.shortestMs;
        if (end.end === 'succeeded' && isInformative)
          await durations.learn(task.sort, {
            misses,
            endedBy: askedAt,
            ranAt: ranAt ?? (isPrompt ? 0 : undefined),
            running: [...waiting].filter(({ sort }) => sort === task.sort).length - 1,
          });
        return end;
      }
      if (askedAt >= task.deadlineMs) return { end: 'stuck' };
      if (typeof seen === 'object' && (!isUrgent || askedAt >= usualMs)) misses += 1;
      if (isUrgent) {
        if (seen !== 'unread') ranAt = askedAt;
        polled.add(task);
        next = elapsed() + Math.max(urgent.stepMs, askedAt * urgent.stepShare, polled.size * urgentGapMs);
        continue;
      }
      next = elapsed() + step;
      step = Math.min(pollStep.longestMs, step * pollStep.growth);
    }
  }

  async function poll(task: TaskWait, signal?: AbortSignal): Promise<Task | 'absent' | 'unread'> {
    try {
      return (await readsFor(task).findTask(task.id, signal)) ?? 'absent';
    } catch (error) {
      signal?.throwIfAborted();
      // A token that cannot be used now may be in place at the next poll.
      if (!isFailedRead(error) && !(error instanceof ConfigError)) throw error;
      logger.warn({ taskId: task.id, error }, 'a task could not be read: asking again');
      return 'unread';
    }
  }

  return {
    wait,
    longest: (sort) => durations.longest(sort),
    usual: async (sort) => (await durations.usual(sort)).ms,
    earliest: async (sort) => (await durations.usual(sort)).earliestMs,
  };
}

/** When a poll is better made, in ms from acceptance: the end of other tasks may have shown that it is too early. */
function laterPoll(
  { ms, bounded }: Estimate,
  poll: Readonly<Record<'askedAt' | 'step' | 'misses' | 'usualMs', number>> & { readonly isScouted: boolean },
): number | undefined {
  const { askedAt } = poll;
  if (!bounded) return poll.isScouted && askedAt < poll.usualMs * patience ? askedAt + poll.step : undefined;
  return poll.misses === 0 && ms > askedAt + pollStep.shortestMs ? ms : undefined;
}

function laterThan(askedAt: number, at: number): number | undefined {
  return askedAt + pollStep.shortestMs < at ? at : undefined;
}

function endOf(seen: Task | 'absent' | 'unread', elapsedMs: number): TaskEnd | undefined {
  if (seen === 'unread') return undefined;
  if (seen === 'absent') return elapsedMs >= lostAfterMs ? { end: 'lost' } : undefined;
  if (!seen.is_terminal) return undefined;
  return seen.status === 'failed' ? { end: 'failed', detail: seen.detail } : { end: 'succeeded' };
}

/** The observation from one ended task. */
interface Lesson {
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

interface Durations {
  /** The estimated duration of tasks of this sort. */
  usual(sort: WriteName): Promise<Estimate>;
  learn(sort: WriteName, lesson: Lesson): Promise<void>;
  /** The longest that one has taken, in ms. */
  longest(sort: WriteName): Promise<number>;
}

interface Estimate {
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
function createDurations(memory: UseMemory): Durations {
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

/** Only the first two are in the note of every release. */
const noteSchema = z.object({
  ms: z.number().positive(),
  count: z.number().min(0),
  bounded: z.boolean().catch(false),
  longestMs: z.number().positive().catch(0),
  earliestMs: z.number().positive().optional().catch(undefined),
  earlyCount: z.number().positive().catch(0),
});

function readEstimate(note: unknown): Estimate | undefined {
  const { data } = noteSchema.safeParse(note);
  if (data === undefined) return undefined;
  const { ms, earliestMs } = fresh(clamped(data.ms));
  return { ...data, ms, earliestMs: Math.min(data.earliestMs ?? earliestMs, ms) };
}

function noteName(sort: WriteName): string {
  return `task-duration:${sort}`;
}
