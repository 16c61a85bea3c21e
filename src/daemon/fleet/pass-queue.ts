import type { Trigger } from '../ports.ts';

/** When a project wants its next pass, and why. */
export interface Wanted {
  readonly trigger: Trigger;
  /** In ms of real time, at the latest. */
  readonly afterMs: number;
}

/** What the queue has to say of the work it hands out. */
export interface PassWork {
  /** At most so many projects at a time. */
  readonly atOnce: number;
  /** Whether this replica may take work now. */
  readonly mayTake: () => boolean;
  /**
   * Makes one pass; gives when the project wants the next one. One that rejects comes up again
   * soon. `lost` aborts when the queue has given the project to another replica.
   */
  readonly pass: (project: number, trigger: Trigger, lost: AbortSignal) => Promise<Wanted | undefined>;
  /** Somebody wants another pass over a project that is worked on here. */
  readonly onAsked: (project: number, trigger: Trigger) => void;
}

/**
 * Who works on which project next, shared by all replicas of a fleet. It shares out work and
 * nothing else: that a project is never worked on twice at once is the state's own lock.
 *
 * A project waits at most once, and for the soonest moment that anybody named. What people
 * did (an edit, a webhook, a command) goes before what only time asks for.
 */
export interface PassQueue {
  /** Wants a pass over each of these projects. Two statements, however many they are. */
  ask(projects: readonly number[], wanted: Wanted): Promise<void>;
  /** Wants a pass over each of these projects that does not wait for one, in one statement. */
  remind(projects: readonly { readonly project: number; readonly afterMs: number }[]): Promise<void>;
  /** Works on what comes up. A pass that rejects, or whose process dies, comes up again, anywhere. */
  work(work: PassWork): Promise<void>;
  /** How long the last pass that was taken had been due, in ms. */
  lagMs(): number;
  /** Tells whoever reads the source that it may have moved. */
  hint(trigger: Trigger): Promise<void>;
  /** Takes such hints until the function it gives is called. */
  takeHints(take: (trigger: Trigger) => void): Promise<() => Promise<void>>;
  /** Takes no more work, and waits so long for what is in hand. */
  close(graceMs: number): Promise<void>;
}
