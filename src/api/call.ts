import type { ReadPriority } from './budget.ts';

/** One request before it has a token, an address and a slot. */
export interface Call {
  readonly method: string;
  /** Below the base URL, starting with a slash. */
  readonly path: string;
  readonly bucket: 'reads' | 'writes';
  readonly priority: ReadPriority;
  /** The exact text; none: no body and no content type. @assumption A21 */
  readonly body?: string;
  readonly idempotencyKey?: string;
  /** Which write it is: a token may be refused one, and do the others. */
  readonly sort?: string;
  /** The API must refuse it: its answer shows the content of its key. */
  readonly isProbe?: boolean;
  /** Names the only tokens that it may go out under. */
  readonly token?: string;
  readonly signal?: AbortSignal | undefined;
  /** Asked right before it is sent, and by the transport once more with a connection in hand. */
  readonly mayGo?: (() => boolean) | undefined;
}

/** The logger that the client needs. Messages are constant; the fields hold the values. */
export interface ApiLogger {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** A logger that logs nothing. */
export const silent: ApiLogger = { debug: () => {}, warn: () => {} };
