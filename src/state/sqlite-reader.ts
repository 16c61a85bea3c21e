import { statSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Row } from './sql-driver.ts';
import { stateFailure } from './sqlite-failure.ts';

/**
 * Reads a database that another process may be writing, and leaves no trace of the reading.
 *
 * A reader of a WAL database normally creates the files `-wal` and `-shm` and, being unable to write, leaves them
 * there. So a database without a WAL, closed cleanly, is opened as an immutable file, which creates nothing and takes
 * no lock. After every query the reader checks that the immutable file did not change, and repeats the query if it
 * did.
 *
 * With a WAL, a writer is at work or was killed, and the two files exist anyway. Then every query has a connection of
 * its own: an idle connection would keep the writer from deleting the two files at its end.
 */
export class SqliteReader {
  private readonly path: string;
  private frozen: { readonly db: DatabaseSync; readonly signature: string } | undefined;

  constructor(path: string) {
    this.path = path;
  }

  all(sql: string, ...values: readonly SQLInputValue[]): readonly Row[] {
    for (let tries = 1; ; tries += 1) {
      try {
        const signature = signatureOf(this.path);
        if (signature === undefined) return this.askLive(sql, values);
        const rows = this.askFrozen(signature, sql, values);
        if (signatureOf(this.path) === signature) return rows;
        if (tries === mostTries) throw new Error('it changes faster than it can be read');
      } catch (error) {
        // A writer that started or ended in between makes a query fail for no fault of the file.
        const moved = this.frozen !== undefined && signatureOf(this.path) !== this.frozen.signature;
        if (!moved || tries === mostTries) throw stateFailure(error, this.path, 'be read');
      }
    }
  }

  /** Each statement is read by itself. */
  reading<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  close(): void {
    this.frozen?.db.close();
    this.frozen = undefined;
  }

  private askLive(sql: string, values: readonly SQLInputValue[]): readonly Row[] {
    this.close();
    const db = new DatabaseSync(this.path, { readOnly: true, timeout: busyMs });
    try {
      return db.prepare(sql).all(...values);
    } finally {
      db.close();
    }
  }

  private askFrozen(signature: string, sql: string, values: readonly SQLInputValue[]): readonly Row[] {
    if (this.frozen?.signature !== signature) {
      this.close();
      const url = pathToFileURL(this.path);
      url.searchParams.set('immutable', '1');
      this.frozen = { db: new DatabaseSync(url, { readOnly: true }), signature };
    }
    return this.frozen.db.prepare(sql).all(...values);
  }
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
