import type { Running } from './controller.ts';

/** Is called for each situation of a story, and has no effect on the story. */
export interface Observer {
  count(subject: string, by?: number): void;
  /** A process is about to die at the boundary. */
  crashes(running: Running, boundary: string): void;
}

/** Records nothing. */
export const noObserver: Observer = { count: () => {}, crashes: () => {} };

/** The events of a story, one line each, in order. The same story gives the same lines. */
export interface Trace {
  add(who: string, line: string): void;
}
