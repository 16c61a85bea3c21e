import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import type { StateStore } from '../core/state.ts';
import { acquireOwnerLock, type OwnerLockOptions } from './owner-lock.ts';
import { SqlStore } from './sql-store.ts';
import { memoryState, SqliteDriver } from './sqlite-driver.ts';
import { checkSound, createFolder, createState, lookAt, refuseLinks } from './sqlite-file.ts';
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
