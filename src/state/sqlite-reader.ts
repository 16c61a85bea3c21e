import { statSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { messageOf, StateError } from '../core/errors.ts';
import type { Row, SqlDriver, SqlValue } from './sql-driver.ts';

/**
 * Reads a database that another process may be writing, and leaves no trace of the reading.
 *
 * A reader of a WAL database normally creates the files `-wal` and `-shm` and, being unable to write, leaves them
 * there. So a database without a WAL, closed cleanly, is opened as an immutable file, which creates nothing and takes
 * no lock. After every query the reader checks that the immutable file did not change, and repeats the query if it
 * did.
 *
 * With a WAL, a writer is at work or was killed, and the two files exist anyway. Every query has a connection of its
 * own: an idle connection would keep the writer from deleting the two files at its end.
 */
export class SqliteReader implements SqlDriver {
  readonly owner = undefined;
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  all(sql: string, ...values: readonly SQLInputValue[]): readonly Row[] {
    for (let tries = 1; ; tries += 1) {
      let hasMoved = () => false;
      try {
        const signature = signatureOf(this.#path);
        if (signature !== undefined) hasMoved = () => signatureOf(this.#path) !== signature;
        const rows = this.#ask(signature !== undefined, sql, values);
        if (!hasMoved()) return rows;
        if (tries === mostTries) throw new Error('it changes faster than it can be read');
      } catch (error) {
        // A writer that started or ended in between makes a query fail for no fault of the file.
        if (!hasMoved() || tries === mostTries) throw stateFailure(error, this.#path, 'be read');
      }
    }
  }

  /** Each statement is read by itself. */
  reading<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  async run(sql: string, ...values: readonly SqlValue[]): Promise<readonly Row[]> {
    return this.all(inSqlite(sql), stateId, ...values);
  }

  async close(): Promise<void> {}

  #ask(isImmutable: boolean, sql: string, values: readonly SQLInputValue[]): readonly Row[] {
    const url = pathToFileURL(this.#path);
    if (isImmutable) url.searchParams.set('immutable', '1');
    const db = new DatabaseSync(url, { readOnly: true, timeout: busyMs });
    try {
      return db.prepare(sql).all(...values);
    } finally {
      db.close();
    }
  }
}

/** The id of the one state in a file. */
export const stateId = 1;

/** A file has no schemas, and its parameters have other names. */
export function inSqlite(sql: string): string {
  return sql.replaceAll('vdcsync.', '').replace(/\$(\d)/g, '?$1');
}

/** A query meets a starting writer once, and an ending writer possibly once more. More failures have another cause. */
const mostTries = 5;

/** How long a reader waits for a writer that is just starting or ending. */
const busyMs = 2_000;

/** Changes whenever the file's content may have; `undefined` while a WAL holds part of the content. */
function signatureOf(path: string): string | undefined {
  const wal = `${path}-wal`;
  if ((statSync(wal, { throwIfNoEntry: false })?.size ?? 0) > 0) return undefined;
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? 'missing' : `${found.ino} ${found.size} ${found.mtimeNs}`;
}

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
  return new StateError(`The state ${path} could not ${doing}: ${explain(codeOf(error), messageOf(error))}`, {
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
