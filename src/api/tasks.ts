import type { Clock } from '../core/clock.ts';
import { ConfigError } from '../core/errors.ts';
import type { TaskEnd, TaskWait, TaskWatch } from '../core/ports.ts';
import type { ApiProfile } from '../core/profile.ts';
import type { Task } from '../core/resources.ts';
import { isFailedRead } from '../core/transport.ts';
import { createDurations, type Estimate } from './durations.ts';
import type { ApiLogger } from './logging.ts';
import type { Reads } from './reads.ts';
import type { UseMemory } from './token-record.ts';

export interface TasksOptions {
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
        const telling = misses > 0 || askedAt <= ms * 1.1 + pollStep.shortestMs;
        const isPrompt = isUrgent && askedAt <= estimate.earliestMs * 1.1 + pollStep.shortestMs;
        if (end.end === 'succeeded' && telling)
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
  {
    askedAt,
    step,
    misses,
    usualMs,
    isScouted,
  }: {
    readonly askedAt: number;
    readonly step: number;
    readonly misses: number;
    readonly usualMs: number;
    readonly isScouted: boolean;
  },
): number | undefined {
  if (!bounded) return isScouted && askedAt < usualMs * patience ? askedAt + step : undefined;
  return misses === 0 && ms > askedAt + pollStep.shortestMs ? ms : undefined;
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
