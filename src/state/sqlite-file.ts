import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StateError } from '../core/errors.ts';
import { applicationId, checkVersion, migrate } from './migrations.ts';
import { stateFailure } from './sqlite-failure.ts';
import { SqliteReader } from './sqlite-reader.ts';

/**
 * Whether there is a state at `path`. The check leaves no trace: a refused file keeps its bytes, and no file appears
 * next to it.
 *
 * @throws StateError if there is another kind of file, or a state of a later release.
 */
export function lookAt(path: string): 'missing' | 'state' {
  const found = statOf(path);
  if (found === undefined) {
    if (!hasWal(path)) return 'missing';
    throw new StateError(
      `The state ${path} is missing, but ${path}-wal holds changes to it. Restore ${path}, or move both away.`,
    );
  }
  if (!found.isFile()) throw foreign(path, 'is not a file');
  if (found.size === 0 && !hasWal(path)) throw foreign(path, 'is empty');
  const reader = new SqliteReader(path);
  try {
    if (pragma(reader, 'application_id') !== applicationId)
      throw foreign(path, 'is the database of another program');
    checkVersion(Number(pragma(reader, 'user_version')), path);
  } finally {
    reader.close();
  }
  return 'state';
}

/**
 * A user who can write the folder could put a link at a name that SQLite opens, and this process would write into the
 * target of the link.
 *
 * @throws StateError naming the link
 */
export function refuseLinks(path: string): void {
  for (const suffix of ['-wal', '-shm', '-journal', '.lock']) {
    const found = statOf(`${path}${suffix}`, lstatSync);
    if (found === undefined || (found.isFile() && found.nlink === 1)) continue;
    throw new StateError(
      `${path}${suffix} is a link, or no file, so the state was left unchanged. Find out who can write the folder ${dirname(path)}, and remove ${path}${suffix}.`,
    );
  }
}

/** Reads the whole file without changing it. @throws StateError naming the damage. */
export function checkSound(path: string): void {
  const reader = new SqliteReader(path);
  try {
    const found = reader.all('PRAGMA quick_check(3)').map((row) => String(row.quick_check));
    const sound = found.length === 1 && found[0] === 'ok';
    if (sound && reader.all('SELECT 1 FROM states').length === 1) return;
    throw new StateError(
      `The state ${path} is damaged (${sound ? 'its header is missing' : found.join('; ')}) and was left unchanged. ` +
        'Restore it from a backup, or move it away and adopt the resources that it managed.',
    );
  } finally {
    reader.close();
  }
}

/**
 * Creates an empty state in one step: built under another name and then renamed, so that a
 * crash leaves either a whole state or none. Only the owner of the lock may call it.
 */
export function createState(path: string, createdAt: number, lineage: string): void {
  const draft = `${path}.new`;
  try {
    for (const leftOver of [draft, `${draft}-journal`, `${draft}-wal`, `${draft}-shm`])
      rmSync(leftOver, { force: true });
    closeSync(openSync(draft, 'wx', 0o600));
    const db = new DatabaseSync(draft);
    try {
      db.exec('PRAGMA synchronous = FULL');
      createTables(db, draft, createdAt, lineage);
      db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA journal_mode = WAL`);
    } finally {
      db.close();
    }
    renameSync(draft, path);
    syncFolder(dirname(path));
  } catch (error) {
    rmSync(draft, { force: true });
    throw stateFailure(error, path, 'be created');
  }
}

/** Creates an empty state in an empty database. */
export function createTables(db: DatabaseSync, path: string, createdAt: number, lineage: string): void {
  migrate(db, path);
  db.prepare('INSERT INTO states (id, lineage, serial, created_at) VALUES (1, ?, 0, ?)').run(
    lineage,
    createdAt,
  );
}

/** Creates the folder, for this user alone; one that exists keeps its permissions. */
export function createFolder(path: string): void {
  const folder = dirname(path);
  try {
    makeFolders(folder);
  } catch (error) {
    throw stateFailure(error, path, `be created, nor its folder ${folder}`);
  }
}

/** One level at a time: `recursive` never returns where a parent exists and takes no folders, such as /proc. */
function makeFolders(folder: string): void {
  if (existsSync(folder)) return;
  const parent = dirname(folder);
  if (parent !== folder) makeFolders(parent);
  mkdirSync(folder, { mode: 0o700 });
}

/** Without it a power cut may take the new name back. */
function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function statOf(path: string, stat: typeof lstatSync = statSync): Stats | undefined {
  try {
    return stat(path, { throwIfNoEntry: false });
  } catch (error) {
    throw stateFailure(error, path, 'be read');
  }
}

function pragma(reader: SqliteReader, name: string): unknown {
  return reader.all(`PRAGMA ${name}`)[0]?.[name];
}

function hasWal(path: string): boolean {
  return existsSync(`${path}-wal`);
}

function foreign(path: string, what: string): StateError {
  return new StateError(
    `${path} ${what}, so it cannot be the state; it was left unchanged. ` +
      'Name another file with --state or VDCSYNC_STATE, or move this one away.',
  );
}
