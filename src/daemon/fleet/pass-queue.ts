import type { Trigger } from '../ports.ts';

/**
 * Who works on which project next, shared by all replicas of a fleet. It shares out work and
 * nothing else: that a project is never worked on twice at once is the state's own lock.
 *
 * A project waits at most once, and for the soonest moment that anybody named.
 */
export interface PassQueue {
  /** Wants a pass over the project in `afterMs` of real time at the latest. */
  ask(project: number, trigger: Trigger, afterMs: number): Promise<void>;
  /** Takes what waits for the project by now out of the queue, for whoever works on it already. */
  takeDue(project: number): Promise<Trigger | undefined>;
  /**
   * Works on what comes up, at most `atOnce` projects at a time. A pass that rejects, or whose
   * process dies, comes up again, anywhere.
   */
  work(atOnce: number, pass: (project: number, trigger: Trigger) => Promise<void>): Promise<void>;
  /** Tells whoever reads the source that it may have moved. */
  hint(trigger: Trigger): Promise<void>;
  /** Takes such hints until the function it gives is called. */
  takeHints(take: (trigger: Trigger) => void): Promise<() => Promise<void>>;
  /** Takes no more work, and waits so long for what is in hand. */
  close(graceMs: number): Promise<void>;
}
