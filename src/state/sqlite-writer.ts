import { statSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { StateError } from '../core/errors.ts';
import { headColumns } from './records.ts';
import type { Row } from './sql-driver.ts';
import { migrate } from './sqlite-file.ts';
import { codeOf, sqliteCode, stateFailure } from './sqlite-reader.ts';

/**
 * The one connection that writes. Every transaction first increments `serial` from the value that this connection
 * knows. If two writers got past the lock, the one that writes second is refused.
 *
 * SQLite before 3.51.3 can damage a WAL database when two connections checkpoint and write at the same moment. In
 * vdcsync one connection does both and readers do neither, so those versions are safe too. Node 24 contains later
 * versions.
 */
export class SqliteWriter {
  private readonly path: string;
  private readonly db: DatabaseSync;
  /** `undefined`: the database is in memory. */
  private readonly inode: bigint | undefined;
  private readonly statements = new Map<string, StatementSync>();
  /** As the owner found the state. */
  readonly head: Row;
  serial: number;
  /** Why nothing is written any more. */
  private broken: string | undefined;

  constructor(db: DatabaseSync, path: string, inode?: bigint) {
    this.db = db;
    this.path = path;
    this.inode = inode;
    this.head = db.prepare(`SELECT ${headColumns} FROM states`).get() ?? {};
    this.serial = Number(this.head.serial);
  }

  /** Opens the file, and brings an older state up to date first. */
  static open(path: string): SqliteWriter {
    let db: DatabaseSync | undefined;
    try {
      db = new DatabaseSync(path, { timeout: busyMs, enableForeignKeyConstraints: true });
      // FULL: a commit is on the disk when it returns. NORMAL would lose the last ones at a power cut.
      db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
      migrate(db, path);
      return new SqliteWriter(db, path, statSync(path, { bigint: true }).ino);
    } catch (error) {
      db?.close();
      throw stateFailure(error, path, 'be opened for writing');
    }
  }

  /** One statement inside `reading` or `transaction`. */
  all(sql: string, ...values: readonly SQLInputValue[]): readonly Row[] {
    return this.statement(sql).all(...values);
  }

  /** @throws StateError that says which file cannot be read */
  async reading<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw stateFailure(error, this.path, 'be read');
    }
  }

  /**
   * Runs `changes` as one durable change, or not at all.
   *
   * @throws StateError where it could not be made durable, where another process has
   * written since, or where the file is no longer the one that was opened.
   */
  async transaction(changes: () => Promise<void>): Promise<void> {
    if (this.broken !== undefined) throw new StateError(this.broken);
    try {
      this.checkFile();
      this.db.exec('BEGIN IMMEDIATE');
      this.moveSerial();
      await changes();
      this.db.exec('COMMIT');
      this.serial += 1;
    } catch (error) {
      this.rollBack();
      const failure = stateFailure(error, this.path, 'be written');
      const code = codeOf(error);
      // After a failed fsync the kernel may report success without the data being on the disk.
      if (code === sqliteCode.ioError || code === sqliteCode.corrupt) this.broken = failure.message;
      throw failure;
    }
  }

  /** Leaves one file, with everything in it, unless a reader is still there. */
  close(): void {
    if (!this.db.isOpen) return;
    try {
      this.db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // Committed changes are in the WAL. The next owner reads them from the WAL.
    }
    this.db.close();
  }

  private statement(sql: string): StatementSync {
    const known = this.statements.get(sql);
    if (known !== undefined) return known;
    const prepared = this.db.prepare(sql);
    this.statements.set(sql, prepared);
    return prepared;
  }

  private moveSerial(): void {
    const { changes } = this.statement('UPDATE states SET serial = serial + 1 WHERE serial = ?').run(
      this.serial,
    );
    if (changes === 1) return;
    throw new StateError(
      `Another process has changed the state ${this.path} (its serial is no longer ${this.serial}). ` +
        'Nothing was recorded. Stop the other process, then start again.',
    );
  }

  /** A file that was deleted or put back from a copy would take every write and keep none. */
  private checkFile(): void {
    if (this.inode === undefined) return;
    const now = statSync(this.path, { bigint: true, throwIfNoEntry: false });
    if (now?.ino === this.inode) return;
    throw new StateError(
      `The state ${this.path} was ${now === undefined ? 'deleted' : 'replaced'} while it was in use. Nothing was recorded. ` +
        'Stop, restore the file, then start again.',
    );
  }

  private rollBack(): void {
    try {
      if (this.db.isTransaction) this.db.exec('ROLLBACK');
    } catch (error) {
      this.broken = stateFailure(error, this.path, 'be rolled back').message;
    }
  }
}

/** How long a write waits for another connection. With the lock held there is none that writes. */
const busyMs = 2_000;
