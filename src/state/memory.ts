import { DatabaseSync } from 'node:sqlite';
import type { StateStore } from '../core/state.ts';
import { SqlStore } from './sql-store.ts';
import { SqliteDriver } from './sqlite-driver.ts';
import { createTables } from './sqlite-file.ts';
import { SqliteWriter } from './sqlite-writer.ts';

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
