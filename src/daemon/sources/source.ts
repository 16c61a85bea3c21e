import { hash } from 'node:crypto';
import type { Diagnostic } from '../../core/errors.ts';
import type { Trigger } from '../../core/fleet.ts';
import type { Source } from '../../spec/load.ts';
import type { Commit } from '../../view/facts.ts';

/** One project's spec: its files, or the reason why they cannot be read. */
export type SpecText =
  | { readonly name: string; readonly sources: readonly Source[] }
  | { readonly name: string; readonly problem: readonly Diagnostic[] };

/** The name of the one file that describes a project, by project. */
export type Holders = Readonly<Record<string, string>>;

/** The project of each file that describes one. */
export function projectsByFile(holders: Holders = {}): ReadonlyMap<string, number> {
  return new Map(Object.entries(holders).map(([project, name]) => [name, Number(project)]));
}

/** A problem of a file as a whole. */
export function fileProblem(file: string, message: string): readonly Diagnostic[] {
  return [{ position: { file, line: 1, column: 1 }, message }];
}

/** A deleted file is no request to delete resources. */
export function vanished(file: string): readonly Diagnostic[] {
  return fileProblem(
    file,
    'the file no longer exists. Its last content stays in force, and no resource is deleted',
  );
}

const marks = new WeakMap<SpecText, string>();

/** Equal for equal texts. */
export function markOf(spec: SpecText): string {
  const known = marks.get(spec);
  if (known !== undefined) return known;
  const mark = hash('sha256', JSON.stringify(spec)).slice(0, 24);
  marks.set(spec, mark);
  return mark;
}

/** The whole content of a source at one moment. */
export interface Snapshot {
  readonly specs: readonly SpecText[];
  readonly commit?: Commit;
  /** For specs that several processes share: the file that describes each project, equal for all processes. */
  readonly holders?: Holders;
}

/**
 * The place of the specs. Reading a source always reads all specs and changes nothing. A hint only says that another
 * reading may be useful.
 */
export interface SpecSource {
  /** The name for messages, without credentials. */
  readonly name: string;
  /**
   * @param last the commit in force, where it may have been taken elsewhere
   * @throws SourceError where it cannot be reached or used; the last content stays in force.
   */
  read(signal: AbortSignal, last?: Commit): Promise<Snapshot>;
  /** Calls `hint` whenever something may have changed, until the signal aborts. */
  watch(hint: (trigger: Trigger) => void, signal: AbortSignal): Promise<void>;
}

/** The source cannot be reached or used. The message gives the reason and, if possible, a remedy. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/** The spec of one project from its files, each read or not. */
export function specOf(name: string, files: readonly (Source | readonly Diagnostic[])[]): SpecText {
  const problem = files.flatMap((each) => ('text' in each ? [] : each));
  if (problem.length > 0) return { name, problem };
  return { name, sources: files.flatMap((each) => ('text' in each ? [each] : [])) };
}

/** Adds the same overlays to each spec of a folder. */
export function withOverlays(
  specs: readonly SpecText[],
  overlays: readonly (Source | readonly Diagnostic[])[],
): readonly SpecText[] {
  if (overlays.length === 0) return specs;
  return specs.map((spec) => ('problem' in spec ? spec : specOf(spec.name, [...spec.sources, ...overlays])));
}
