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
import { messageOf, StateError } from '../core/errors.ts';
import type { Row } from './sql-driver.ts';

/** A file of a state that may be read. The reading leaves no trace. */
interface ReadableFile {
  readonly path: string;
  all(sql: string): readonly Row[];
}

/**
 * Whether there is a state at the path. The check leaves no trace: a refused file keeps its bytes, and no file appears
 * next to it.
 *
 * @throws StateError if there is another kind of file, or a state of a later release.
 */
export function checkStateFile(file: ReadableFile): 'missing' | 'state' {
  const { path } = file;
  const found = statOf(path);
  if (found === undefined) {
    if (!hasWal(path)) return 'missing';
    throw new StateError(
      `The state ${path} is missing, but ${path}-wal holds changes to it. Restore ${path}, or move both away.`,
    );
  }
  if (!found.isFile()) throw foreign(path, 'is not a file');
  if (found.size === 0 && !hasWal(path)) throw foreign(path, 'is empty');
  if (pragma(file, 'application_id') !== applicationId)
    throw foreign(path, 'is the database of another program');
  checkVersion(Number(pragma(file, 'user_version')), path);
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
export function checkSound(file: ReadableFile): void {
  const found = file.all('PRAGMA quick_check(3)').map((row) => String(row.quick_check));
  const sound = found.length === 1 && found[0] === 'ok';
  if (sound && file.all('SELECT 1 FROM states').length === 1) return;
  throw new StateError(
    `The state ${file.path} is damaged (${sound ? 'its header is missing' : found.join('; ')}) and was left unchanged. ` +
      'Restore it from a backup, or move it away and adopt the resources that it managed.',
  );
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

function pragma(file: ReadableFile, name: string): unknown {
  return file.all(`PRAGMA ${name}`)[0]?.[name];
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

/** "vdcs" in ASCII: distinguishes the files of vdcsync from SQLite databases of other programs. */
const applicationId = 0x76646373;

/**
 * The tables and columns of a state in PostgreSQL, so that both have the same statements. A file has one state. Each
 * object of the project has one row in `claims`, so that it has one holder: a row with a key is a binding, a row without
 * a key is another claim. Times are REAL: a scaled clock gives fractions of milliseconds.
 *
 * Journal and intents are kept for a long time after their end: `history` shows them, and they count how often a
 * resource was created.
 *
 * One step for each version of the schema. Published steps are never edited: a correction is a further step.
 */
export const migrations: readonly string[] = [
  `
    CREATE TABLE states (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      lineage TEXT NOT NULL,
      serial INTEGER NOT NULL,
      created_at REAL NOT NULL,
      project_id INTEGER,
      service TEXT
    ) STRICT;
    CREATE TABLE claims (
      state_id INTEGER NOT NULL REFERENCES states (id),
      object TEXT NOT NULL,
      key TEXT,
      body TEXT NOT NULL CHECK (json_valid(body)),
      PRIMARY KEY (state_id, object),
      UNIQUE (state_id, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE incarnations (
      state_id INTEGER NOT NULL REFERENCES states (id),
      key TEXT NOT NULL,
      gone INTEGER NOT NULL,
      PRIMARY KEY (state_id, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE intents (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      state_id INTEGER NOT NULL REFERENCES states (id),
      id TEXT NOT NULL,
      key TEXT NOT NULL,
      verb TEXT NOT NULL,
      incarnation TEXT NOT NULL,
      attempt INTEGER NOT NULL,
      phase TEXT NOT NULL,
      outcome TEXT,
      body TEXT NOT NULL CHECK (json_valid(body)),
      UNIQUE (state_id, id)
    ) STRICT;
    CREATE UNIQUE INDEX one_open_intent ON intents (state_id, key) WHERE phase <> 'closed';
    CREATE INDEX attempts ON intents (state_id, key, verb, incarnation, attempt);
    CREATE INDEX ended ON intents (state_id, outcome, seq);
    CREATE TABLE journal (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      state_id INTEGER NOT NULL,
      at REAL NOT NULL,
      key TEXT NOT NULL,
      event TEXT NOT NULL,
      intent_id TEXT,
      data TEXT NOT NULL CHECK (json_valid(data)),
      FOREIGN KEY (state_id, intent_id) REFERENCES intents (state_id, id)
    ) STRICT;
    CREATE INDEX journal_of_key ON journal (state_id, key, seq);
    CREATE TABLE notes (
      state_id INTEGER NOT NULL REFERENCES states (id),
      name TEXT NOT NULL,
      value TEXT NOT NULL CHECK (json_valid(value)),
      PRIMARY KEY (state_id, name)
    ) STRICT, WITHOUT ROWID;
  `,
];

/** The schema version that this version of the program writes. */
const currentVersion = migrations.length;

/**
 * Brings a database from the version it has to the last of `steps`, each step in a
 * transaction of its own, so that a crash leaves a whole version.
 *
 * @throws StateError where the database is newer than the steps; it is not touched.
 */
export function migrate(db: DatabaseSync, path: string, steps: readonly string[] = migrations): void {
  const version = Number(db.prepare('PRAGMA user_version').get()?.user_version);
  checkVersion(version, path, steps.length);
  for (const [done, step] of steps.slice(version).entries()) {
    const next = version + done + 1;
    db.exec('BEGIN IMMEDIATE');
    try {
      db.exec(step);
      db.exec(`PRAGMA user_version = ${next}`);
      db.exec('COMMIT');
    } catch (cause) {
      if (db.isTransaction) db.exec('ROLLBACK');
      throw new StateError(
        `The state ${path} could not be brought to version ${next} and was left unchanged: ${String(cause)}`,
        { cause },
      );
    }
  }
}

/** @throws StateError where `version` comes from a later release. */
function checkVersion(version: number, path: string, known = currentVersion): void {
  if (version <= known) return;
  throw new StateError(
    `The state ${path} has version ${version}; this vdcsync knows versions up to ${known}. ` +
      'It was not touched. Use the vdcsync that wrote it, or a later one.',
  );
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
