import { DatabaseSync } from 'node:sqlite';
import type { StateStore } from '../core/state.ts';
import { Turns } from '../core/turns.ts';
import { refuseReadOnly } from './refusals.ts';
import type { SqlDriver, SqlValue } from './sql-driver.ts';
import { SqlStore } from './sql-store.ts';
import { createTables } from './sqlite-file.ts';
import type { SqliteReader } from './sqlite-reader.ts';
import { SqliteWriter } from './sqlite-writer.ts';

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
