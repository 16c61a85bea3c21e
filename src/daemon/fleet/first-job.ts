import type { Random } from '../../core/random.ts';
import { endingOf } from '../project/condition.ts';
import type { Assignment } from './assignment.ts';
import type { Wanted } from './schedule.ts';

export interface FirstJobOptions {
  /** Of the spec in force. */
  readonly digest: string | undefined;
  /** A project without a trigger is reconciled after this time, in ms of real time. */
  readonly intervalMs: number;
  /** Wall ms of real time. */
  readonly now: number;
  readonly random: Random;
}

/**
 * When a project is due that was just assigned to this replica. A project that was waiting for its next reconciliation,
 * with the spec in force, keeps its waiting time. All other projects are due now, and those that a replica was cut off from
 * in the middle of its work come first.
 *
 * If the waiting time of a converged project is already over, for example after a restart of all replicas, the project
 * gets a random moment within the interval, so that not all projects are due at once. A project that has not converged
 * was waiting for something, such as the end of a back-off. It is due now.
 */
export function firstJob(
  before: Assignment | undefined,
  { digest = '', intervalMs, now, random }: FirstJobOptions,
): Wanted {
  const memory = before?.memory;
  // A write may be in flight, and a new server without its firewall.
  if (before?.isTaken === true) return { trigger: 'start', afterMs: 0, isUrgent: true };
  if (memory?.history.settledDigest !== digest) return { trigger: 'start', afterMs: 0 };
  const leftMs = memory.dueAt - now;
  if (leftMs > 0) return { trigger: 'timer', afterMs: Math.min(leftMs, intervalMs) };
  const isAtRest = endingOf(memory.history.condition) === 'rest';
  return isAtRest
    ? { trigger: 'timer', afterMs: random.next() * intervalMs }
    : { trigger: 'start', afterMs: 0 };
}
