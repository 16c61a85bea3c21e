import { existsSync, statSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Queries, Row } from './queries.ts';
import { stateFailure } from './sqlite-failure.ts';

/**
 * Reads a database that another process may be writing, and leaves no trace of it.
 *
 * A reader of a WAL database normally creates `-wal` and `-shm` beside it and, being
 * unable to write, leaves them there. So a database without a WAL, closed cleanly, is
 * opened as an immutable file, which creates nothing and takes no lock; that such a file
 * did stay as it was is checked after every query, which is asked again where it did not.
 * With a WAL, a writer is at work or was killed: the two files are there anyway.
 */
export class SqliteReader implements Queries {
  private readonly path: string;
  private db: DatabaseSync;
  /** What the file looked like when it was opened as immutable; else `undefined`. */
  private seen: string | undefined;

  constructor(path: string) {
    this.path = path;
    [this.db, this.seen] = open(path);
  }

  all(sql: string, ...values: readonly SQLInputValue[]): readonly Row[] {
    for (let tries = 0; ; tries += 1) {
      const rows = this.tryAll(sql, values);
      const moved = this.seen !== undefined && this.seen !== signature(this.path);
      if (!moved || tries === mostTries) {
        if (rows instanceof Error) throw stateFailure(rows, this.path, 'be read');
        return rows;
      }
      this.close();
      [this.db, this.seen] = open(this.path);
    }
  }

  close(): void {
    if (this.db.isOpen) this.db.close();
  }

  private tryAll(sql: string, values: readonly SQLInputValue[]): readonly Row[] | Error {
    try {
      return this.db.prepare(sql).all(...values);
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }
}

/** A writer that starts is met once, one that ends perhaps again; more often it is something else. */
const mostTries = 5;

/** How long a reader waits for a writer that is just starting or ending. */
const busyMs = 2_000;

function open(path: string): [DatabaseSync, string | undefined] {
  try {
    const seen = signature(path);
    if (seen === undefined) return [new DatabaseSync(path, { readOnly: true, timeout: busyMs }), undefined];
    const url = pathToFileURL(path);
    url.searchParams.set('immutable', '1');
    return [new DatabaseSync(url, { readOnly: true }), seen];
  } catch (error) {
    throw stateFailure(error, path, 'be opened');
  }
}

/** Changes whenever the file's content may have; `undefined` while a WAL holds part of the content. */
function signature(path: string): string | undefined {
  const wal = `${path}-wal`;
  if (existsSync(wal) && statSync(wal).size > 0) return undefined;
  const { ino, size, mtimeNs } = statSync(path, { bigint: true });
  return `${ino} ${size} ${mtimeNs}`;
}
