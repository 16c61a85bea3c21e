import type { Position } from './desired.ts';
import type { Remedy } from './remedy.ts';

/** One thing wrong with the spec. */
export interface Diagnostic {
  readonly position: Position;
  readonly message: string;
  /** The line of the spec, and a mark under the column. It may hold any text of the spec, so only a terminal shows it. */
  readonly excerpt?: string;
}

/** The spec cannot be used. Carries its first errors at once. */
export class SpecError extends Error {
  override readonly name = 'SpecError';
  readonly diagnostics: readonly Diagnostic[];
  /** Whose it says that it is, where that much can be read. */
  readonly projectId: number | undefined;
  /** Of all errors, those that are not carried included. */
  readonly count: number;
  /** The warnings about entries that could be read. */
  readonly cautions: readonly Diagnostic[];

  constructor(
    diagnostics: readonly Diagnostic[],
    projectId?: number,
    { count = diagnostics.length, cautions = [] }: Partial<Pick<SpecError, 'count' | 'cautions'>> = {},
  ) {
    super(diagnostics.map(formatDiagnostic).join('\n'));
    this.diagnostics = diagnostics;
    this.projectId = projectId;
    this.count = count;
    this.cautions = cautions;
  }
}

/** `file:line:col: message` */
export function formatDiagnostic({ position, message }: Diagnostic): string {
  return `${position.file}:${position.line}:${position.column}: ${message}`;
}

/**
 * The meaning of a problem. `no_project`: `GET /project` does not exist at the base URL. `undocumented`: the answer
 * is not one that the API's document describes.
 */
export type ProblemMeaning = 'refusal' | 'no_project' | 'undocumented';

/** A refusal by the API, identified by `code`, then by status. @source API §7 */
export class ApiProblem extends Error {
  override readonly name = 'ApiProblem';
  readonly status: number;
  /** Stable and machine-readable; `null` where the answer has none. */
  readonly code: string | null;
  readonly requestId: string | null;
  readonly meaning: ProblemMeaning;

  constructor(
    status: number,
    code: string | null,
    requestId: string | null,
    message: string,
    meaning: ProblemMeaning = 'refusal',
  ) {
    super(message);
    this.meaning = meaning;
    this.status = status;
    this.code = code;
    this.requestId = requestId;
  }
}

/** A problem that the operator can solve, with its remedies. */
class Remediable extends Error {
  readonly remedies: readonly Remedy[];

  constructor(
    message: string,
    { remedies = [], ...options }: ErrorOptions & { readonly remedies?: readonly Remedy[] } = {},
  ) {
    super(message, options);
    this.remedies = remedies;
  }
}

/** The state cannot be read, is foreign, damaged or newer, or could not be made durable. */
export class StateError extends Remediable {
  override readonly name = 'StateError';
}

/** Another process owns the state: nothing is wrong with it, and it may be free in a moment. */
export class StateInUseError extends StateError {}

/** A later release has updated the tables of the state. A process of this release gives way to it. */
export class LaterReleaseError extends StateInUseError {}

/** A saved plan no longer fits the world or the spec. */
export class PlanStaleError extends Remediable {
  override readonly name = 'PlanStaleError';
}

/** Settings that cannot be used: token, URL, profile. `misuse` where the call itself is wrong. */
export class ConfigError extends Remediable {
  override readonly name = 'ConfigError';
  readonly misuse: boolean;

  constructor(message: string, misuse = false, remedies: readonly Remedy[] = []) {
    super(message, { remedies });
    this.misuse = misuse;
  }
}

/** The operator declares a creation absent whose key holds the answer to it. */
export class NotAbsentError extends ConfigError {
  constructor(message: string, remedies: readonly Remedy[]) {
    super(message, false, remedies);
  }
}

/** A command of the operator about a write that may still take effect. */
export class TooSoonError extends ConfigError {
  /** Until then, in ms. */
  readonly restMs: number;

  constructor(message: string, restMs: number) {
    super(message);
    this.restMs = restMs;
  }
}

/** The message of an error, or of any other thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const fileReasons: Readonly<Record<string, string>> = {
  ENOENT: 'the file does not exist',
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
};

/** Why the system could not read or write a file, in words. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return fileReasons[code] ?? messageOf(error);
}

/** The remedies of an error, if they are known. */
export function remediesOf(error: unknown): readonly Remedy[] {
  return error instanceof Remediable ? error.remedies : [];
}

/** The token belongs to another project than the spec, or its project is unknown. Nothing may be written. */
export class FenceError extends Error {
  override readonly name = 'FenceError';
}
