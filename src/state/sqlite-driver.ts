import { existsSync, realpathSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { StateError } from '../core/errors.ts';
import type { StateStore } from '../core/state.ts';
import { SerialQueue } from '../core/work.ts';
import { acquireOwnerLock, type OwnerLockOptions } from './owner-lock.ts';
import { headColumns } from './records.ts';
import type { Row, SqlDriver, SqlOwner, SqlValue } from './sql-driver.ts';
import { SqlStore } from './sql-store.ts';
import {
  checkSound,
  checkStateFile,
  codeOf,
  createFolder,
  createState,
  createTables,
  migrate,
  refuseLinks,
  sqliteCode,
  stateFailure,
} from './sqlite-file.ts';

interface OpenSqliteOptions extends OwnerLockOptions {
  /** `read` never creates nor changes anything, and works while another process writes. */
  readonly mode: 'write' | 'read';
  /** Wall time in ms: when a new state was born, and since when it is owned. */
  readonly now: number;
  /** Of a state that does not exist yet: random text. */
  readonly lineage: string;
}

/**
 * Opens the state in the SQLite file at `path`.
 *
 * For writing: creates folder and file if they are missing, and is the only owner until `close`. The same folder holds
 * `.lock` (empty, stays), `.owner` (while owned), `-wal` and `-shm` (while open). The file must be on a local disk:
 * file locks and the WAL's shared memory do not work over most network file systems.
 *
 * For reading: a missing file is an empty state, and the disk stays unchanged.
 *
 * @throws StateError if the file is foreign, damaged, of a later release, cannot be used, or has another owner after
 * `waitMs`.
 */
export async function openSqliteState(path: string, options: OpenSqliteOptions): Promise<StateStore> {
  const file = realPath(path);
  return options.mode === 'read' ? openForReading(file, options) : openForWriting(file, options);
}

function openForReading(path: string, options: OpenSqliteOptions): StateStore {
  const reader = new SqliteReader(path);
  if (checkStateFile(reader) === 'missing') {
    return memoryState({ createdAt: options.now, lineage: options.lineage, mode: 'read' });
  }
  checkSound(reader);
  return new SqlStore(reader);
}

async function openForWriting(path: string, options: OpenSqliteOptions): Promise<StateStore> {
  const reader = new SqliteReader(path);
  // Refuse a foreign file before any file is created next to it.
  checkStateFile(reader);
  createFolder(path);
  refuseLinks(path);
  const lock = await acquireOwnerLock(path, options);
  try {
    // Check again: another owner may have created the state, or a later release may have migrated it.
    if (checkStateFile(reader) === 'missing') createState(path, options.now, options.lineage);
    else checkSound(reader);
    return new SqlStore(SqliteWriter.open(path, () => lock.release()));
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Two names of one file must find one lock. */
function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : resolve(path);
}

interface MemoryStateOptions {
  /** Wall time in ms. */
  readonly createdAt: number;
  readonly lineage: string;
  /** `read`: the empty state of a dry run, which rejects every change. Default: `write`. */
  readonly mode?: 'read' | 'write';
}

/** A state that ends with the process: for tests, the simulation and dry runs without a state. */
export function memoryState({ createdAt, lineage, mode = 'write' }: MemoryStateOptions): StateStore {
  const db = new DatabaseSync(inMemory, { enableForeignKeyConstraints: true });
  createTables(db, inMemory, createdAt, lineage);
  return new SqlStore(new SqliteWriter(db, { path: inMemory, mode }));
}

const inMemory = ':memory:';

interface WriterOptions {
  readonly path: string;
  /** `read`: every change is rejected. */
  readonly mode?: 'read' | 'write';
  /** Of a file. */
  readonly inode?: bigint;
  /** Runs after the connection is closed. */
  readonly onClose?: (() => void) | undefined;
}

/**
 * The one connection that writes. Every transaction first increments `serial` from the value that this connection
 * knows. If two writers got past the lock, the one that writes second is refused.
 *
 * SQLite before 3.51.3 can damage a WAL database when two connections checkpoint and write at the same moment. In
 * vdcsync one connection does both and readers do neither, so those versions are safe too. Node 24 contains later
 * versions.
 */
export class SqliteWriter implements SqlDriver, SqlOwner {
  readonly #db: DatabaseSync;
  readonly #options: WriterOptions;
  readonly #turns = new SerialQueue();
  readonly #statements = new Map<string, StatementSync>();
  readonly owner: SqlOwner | undefined;
  readonly head: Row;
  serial: number;
  /** Why nothing is written any more. */
  #broken: string | undefined;

  constructor(db: DatabaseSync, options: WriterOptions) {
    this.#db = db;
    this.#options = options;
    this.owner = options.mode === 'read' ? undefined : this;
    this.head = db.prepare(`SELECT ${headColumns} FROM states`).get() ?? {};
    this.serial = Number(this.head.serial);
  }

  /** Opens the file, and brings an older state up to date first. */
  static open(path: string, onClose?: () => void): SqliteWriter {
    let db: DatabaseSync | undefined;
    try {
      db = new DatabaseSync(path, { timeout: busyMs, enableForeignKeyConstraints: true });
      // FULL: a commit is on the disk when it returns. NORMAL would lose the last ones at a power cut.
      db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
      migrate(db, path);
      return new SqliteWriter(db, { path, inode: statSync(path, { bigint: true }).ino, onClose });
    } catch (error) {
      db?.close();
      throw stateFailure(error, path, 'be opened for writing');
    }
  }

  reading<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.take(async () => {
      try {
        return await work();
      } catch (error) {
        throw stateFailure(error, this.#options.path, 'be read');
      }
    });
  }

  /** It also rejects where the file is no longer the one that was opened. */
  writing(changes: () => Promise<void>): Promise<void> {
    return this.#turns.take(() => this.#transaction(changes));
  }

  writeNote(name: string, value: string): Promise<void> {
    const sql = 'INSERT OR REPLACE INTO notes (state_id, name, value) VALUES ($1, $2, $3)';
    return this.writing(async () => void (await this.run(sql, name, value)));
  }

  async run(sql: string, ...values: readonly SqlValue[]): Promise<readonly Row[]> {
    return this.#statement(inSqlite(sql)).all(stateId, ...values);
  }

  /** Leaves one file, with everything in it, unless a reader is still there. */
  async close(): Promise<void> {
    await this.#turns.end();
    try {
      this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // Committed changes are in the WAL. The next owner reads them from the WAL.
    }
    try {
      this.#db.close();
    } finally {
      this.#options.onClose?.();
    }
  }

  async #transaction(changes: () => Promise<void>): Promise<void> {
    if (this.#broken !== undefined) throw new StateError(this.#broken);
    const { path } = this.#options;
    try {
      this.#checkFile();
      this.#db.exec('BEGIN IMMEDIATE');
      this.#moveSerial();
      await changes();
      this.#db.exec('COMMIT');
      this.serial += 1;
    } catch (error) {
      this.#rollBack();
      const failure = stateFailure(error, path, 'be written');
      const code = codeOf(error);
      // After a failed fsync the kernel may report success without the data being on the disk.
      if (code === sqliteCode.ioError || code === sqliteCode.corrupt) this.#broken = failure.message;
      throw failure;
    }
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const prepared = this.#db.prepare(sql);
    this.#statements.set(sql, prepared);
    return prepared;
  }

  #moveSerial(): void {
    const { changes } = this.#statement('UPDATE states SET serial = serial + 1 WHERE serial = ?').run(
      this.serial,
    );
    if (changes === 1) return;
    throw new StateError(
      `Another process has changed the state ${this.#options.path} (its serial is no longer ${this.serial}). ` +
        'Nothing was recorded. Stop the other process, then start again.',
    );
  }

  /** A file that was deleted or put back from a copy would take every write and keep none. */
  #checkFile(): void {
    const { path, inode } = this.#options;
    if (inode === undefined) return;
    const now = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (now?.ino === inode) return;
    throw new StateError(
      `The state ${path} was ${now === undefined ? 'deleted' : 'replaced'} while it was in use. Nothing was recorded. ` +
        'Stop, restore the file, then start again.',
    );
  }

  #rollBack(): void {
    try {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
    } catch (error) {
      this.#broken = stateFailure(error, this.#options.path, 'be rolled back').message;
    }
  }
}

/**
 * How long a write waits for another connection (with the lock held, there is none that writes), and a reader for a writer
 * that is just starting or ending.
 */
const busyMs = 2_000;

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
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  all(sql: string, ...values: readonly SQLInputValue[]): readonly Row[] {
    for (let tries = 1; ; tries += 1) {
      let hasMoved = () => false;
      try {
        const signature = signatureOf(this.path);
        if (signature !== undefined) hasMoved = () => signatureOf(this.path) !== signature;
        const rows = this.#ask(signature !== undefined, sql, values);
        if (!hasMoved()) return rows;
        if (tries === mostTries) throw new Error('it changes faster than it can be read');
      } catch (error) {
        // A writer that started or ended in between makes a query fail for no fault of the file.
        if (!hasMoved() || tries === mostTries) throw stateFailure(error, this.path, 'be read');
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
    const url = pathToFileURL(this.path);
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
const stateId = 1;

/** A file has no schemas, and its parameters have other names. */
function inSqlite(sql: string): string {
  return sql.replaceAll('vdcsync.', '').replace(/\$(\d)/g, '?$1');
}

/** A query meets a starting writer once, and an ending writer possibly once more. More failures have another cause. */
const mostTries = 5;

/** Changes whenever the file's content may have; `undefined` while a WAL holds part of the content. */
function signatureOf(path: string): string | undefined {
  const wal = `${path}-wal`;
  if ((statSync(wal, { throwIfNoEntry: false })?.size ?? 0) > 0) return undefined;
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? 'missing' : `${found.ino} ${found.size} ${found.mtimeNs}`;
}
