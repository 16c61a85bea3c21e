/** The events, one line each, in order. The same story gives the same lines. */
export interface Trace {
  add(who: string, line: string): void;
  /** Oldest first; of long runs only the latest are kept. */
  readonly lines: readonly string[];
  /** Lines ever added. */
  readonly length: number;
}

/** Kept of one scenario; the digest in `length` and the end of the story matter most. */
const mostLines = 50_000;

export function createTrace(elapsedMs: () => number): Trace {
  const lines: string[] = [];
  let length = 0;
  return {
    lines,
    get length() {
      return length;
    },
    add(who, line) {
      length += 1;
      lines.push(`${(elapsedMs() / 1000).toFixed(1).padStart(9)}s ${who.padEnd(4)} ${line}`);
      if (lines.length > mostLines) lines.shift();
    },
  };
}
