import type { Diagnostic } from '../../core/errors.ts';
import type { Source } from '../../spec/load.ts';
import type { Trigger } from '../ports.ts';

/** Where in Git a spec comes from. */
export interface Commit {
  readonly id: string;
  /** As it is configured: `main`. */
  readonly ref: string;
  /** What it means at the remote: `refs/heads/main`. */
  readonly fullRef: string;
  /** First line of its message. */
  readonly subject: string;
  /** When it was committed, wall ms. */
  readonly at: number;
}

/** One project's spec: the files that add up to it, or why they cannot be read. */
export type SpecText =
  | { readonly name: string; readonly sources: readonly Source[] }
  | { readonly name: string; readonly problem: readonly Diagnostic[] };

/** By project, the name of the one file that describes it. */
export type Holders = Readonly<Record<string, string>>;

/** All that a source holds at one moment. */
export interface Snapshot {
  readonly specs: readonly SpecText[];
  readonly commit?: Commit;
  /** Of specs that several processes share: which file describes which project, as all of them have it. */
  readonly holders?: Holders;
}

/**
 * Where specs come from. A source is read whole and changes nothing; a hint says only that
 * reading it again may be worth it.
 */
export interface SpecSource {
  /** For people; without credentials. */
  readonly name: string;
  /**
   * @param last the commit in force, where it may have been taken elsewhere
   * @throws SourceError where it cannot be reached or used; what was read before stays in force.
   */
  read(signal: AbortSignal, last?: Commit): Promise<Snapshot>;
  /** Calls `hint` whenever something may have changed, until the signal aborts. */
  watch(hint: (trigger: Trigger) => void, signal: AbortSignal): Promise<void>;
}

/** The source cannot be reached or used; `reason` says why and, where there is one, what to do. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/** A spec that cannot be read stands at its file's first character. */
export function unreadable(file: string, why: string): readonly Diagnostic[] {
  return [{ position: { file, line: 1, column: 1 }, message: `the file cannot be read: ${why}` }];
}
