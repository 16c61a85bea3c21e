import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { StateStore } from '../core/state.ts';
import { Turns } from '../core/turns.ts';
import { acquireOwnerLock, type OwnerLockOptions } from './owner-lock.ts';
import { refuseReadOnly } from './refusals.ts';
import type { SqlDriver, SqlValue } from './sql-driver.ts';
import { SqlStore } from './sql-store.ts';
import { checkSound, createFolder, createState, createTables, lookAt, refuseLinks } from './sqlite-file.ts';
import { SqliteReader } from './sqlite-reader.ts';
import { SqliteWriter } from './sqlite-writer.ts';

export interface OpenSqliteOptions extends OwnerLockOptions {
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
  if (lookAt(path) === 'missing') {
    return memoryState({ createdAt: options.now, lineage: options.lineage, mode: 'read' });
  }
  checkSound(path);
  return new SqlStore(new SqliteDriver({ connection: new SqliteReader(path) }));
}

async function openForWriting(path: string, options: OpenSqliteOptions): Promise<StateStore> {
  // Refuse a foreign file before any file is created next to it.
  lookAt(path);
  createFolder(path);
  refuseLinks(path);
  const lock = await acquireOwnerLock(path, options);
  try {
    // Check again: another owner may have created the state, or a later release may have migrated it.
    if (lookAt(path) === 'missing') createState(path, options.now, options.lineage);
    checkSound(path);
    const writer = SqliteWriter.open(path);
    return new SqlStore(
      new SqliteDriver({ connection: writer, owner: writer, onClose: () => lock.release() }),
    );
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Two names of one file must find one lock. */
function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : resolve(path);
}

/** The id of the one state in a file. */
const stateId = 1;

export interface SqliteDriverDeps {
  readonly connection: SqliteReader | SqliteWriter;
  /** Left out: every change is rejected. */
  readonly owner?: SqliteWriter;
  /** Runs after the connection is closed. */
  readonly onClose?: () => void;
}

/** The state in a SQLite database. Which file, who may write it and when: `openSqliteState`. */
export class SqliteDriver implements SqlDriver {
  readonly owner?: SqliteWriter;
  readonly #deps: SqliteDriverDeps;
  readonly #turns = new Turns();

  constructor(deps: SqliteDriverDeps) {
    if (deps.owner !== undefined) this.owner = deps.owner;
    this.#deps = deps;
  }

  isOpen(): boolean {
    return true;
  }

  reading<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.take(() => this.#deps.connection.reading(work));
  }

  writing(changes: () => Promise<void>): Promise<void> {
    const { owner } = this;
    if (owner === undefined) refuseReadOnly();
    return this.#turns.take(() => owner.transaction(changes));
  }

  writeNote(name: string, value: string): Promise<void> {
    const sql = 'INSERT OR REPLACE INTO notes (state_id, name, value) VALUES ($1, $2, $3)';
    return this.writing(async () => void (await this.run(sql, name, value)));
  }

  async run(sql: string, ...values: readonly SqlValue[]) {
    return this.#deps.connection.all(inSqlite(sql), stateId, ...values);
  }

  async close(): Promise<void> {
    await this.#turns.end();
    try {
      this.#deps.connection.close();
    } finally {
      this.#deps.onClose?.();
    }
  }
}

/** A file has no schemas, and its parameters have other names. */
function inSqlite(sql: string): string {
  return sql.replaceAll('vdcsync.', '').replace(/\$(\d)/g, '?$1');
}

export interface MemoryStateOptions {
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
  const writer = new SqliteWriter(db, inMemory);
  return new SqlStore(new SqliteDriver({ connection: writer, ...(mode === 'write' && { owner: writer }) }));
}

const inMemory = ':memory:';
