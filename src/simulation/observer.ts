/** Counts the situations of a story, and has no effect on the story. */
export interface Observer {
  count(subject: string, by?: number): void;
}

/** The events of a story, one line each, in order. The same story gives the same lines. */
export interface Trace {
  add(who: string, line: string): void;
}
