import { StateError } from '../core/errors.ts';

/** Primary result codes of SQLite that need an answer of their own. */
export const sqliteCode = {
  busy: 5,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  notADatabase: 26,
} as const;

/** The primary result code; `undefined` where the error is not SQLite's. */
export function codeOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined;
  return Number(error.errcode) & 0xff;
}

/** Turns an error of SQLite into a message: the cause, the file, and a remedy. `doing`: "be written". */
export function stateFailure(error: unknown, path: string, doing: string): StateError {
  if (error instanceof StateError) return error;
  const said = error instanceof Error ? error.message : String(error);
  return new StateError(`The state ${path} could not ${doing}: ${explain(codeOf(error), said)}`, {
    cause: error,
  });
}

function explain(code: number | undefined, said: string): string {
  switch (code) {
    case sqliteCode.full:
      return `the disk is full (${said}). Free some space; nothing was recorded.`;
    case sqliteCode.readOnly:
      return `it is read-only (${said}). Make the file and its folder writable for this user.`;
    case sqliteCode.ioError:
      return `the disk failed (${said}). Check the disk, then start again.`;
    case sqliteCode.busy:
      return `another process uses it (${said}). Stop that process: only one process can use a state.`;
    case sqliteCode.notADatabase:
      return (
        `it is not a SQLite database, or its header is damaged (${said}); it was left unchanged. ` +
        'Name another file with --state or VDCSYNC_STATE, or restore it from a backup.'
      );
    case sqliteCode.corrupt:
      return `it is damaged (${said}). Restore it from a backup, or move it away and adopt the resources that it managed.`;
    case sqliteCode.cantOpen:
      return `it cannot be opened (${said}). Check that the folder exists and that this user may use it.`;
    default:
      return `${said}.`;
  }
}
