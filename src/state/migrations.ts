import type { DatabaseSync } from 'node:sqlite';
import { StateError } from '../core/errors.ts';

/** "vdcs" in ASCII: distinguishes the files of vdcsync from SQLite databases of other programs. */
export const applicationId = 0x76646373;

/** One step of the schema. Published steps are never edited: a correction is a further step. */
export interface Migration {
  /** The `user_version` after it; one more than the one before. */
  readonly version: number;
  readonly sql: string;
}

/**
 * Each object of the project has one row in `claims`, so that it has one holder: a row with a key is a binding, a row
 * without a key is another claim. Values that queries search for are in columns generated from the JSON of the row, so
 * that the two cannot disagree. Times are REAL: a scaled clock gives fractions of milliseconds.
 *
 * Journal and intents are kept for a long time after their end: `history` shows them, and they count how often a
 * resource was created.
 */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    sql: `
      CREATE TABLE meta (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        lineage TEXT NOT NULL,
        serial INTEGER NOT NULL,
        created_at REAL NOT NULL,
        project_id INTEGER,
        service TEXT
      ) STRICT;
      CREATE TABLE claims (
        object TEXT PRIMARY KEY,
        key TEXT UNIQUE,
        body TEXT NOT NULL CHECK (json_valid(body))
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE incarnations (
        key TEXT PRIMARY KEY,
        gone INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE intents (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        body TEXT NOT NULL CHECK (json_valid(body)),
        key TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.key') VIRTUAL,
        verb TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.verb') VIRTUAL,
        incarnation TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.incarnation') VIRTUAL,
        attempt INTEGER NOT NULL GENERATED ALWAYS AS (body ->> '$.attempt') VIRTUAL,
        phase TEXT NOT NULL GENERATED ALWAYS AS (body ->> '$.phase') VIRTUAL,
        outcome TEXT GENERATED ALWAYS AS (body ->> '$.outcome') VIRTUAL
      ) STRICT;
      CREATE UNIQUE INDEX one_open_intent ON intents (key) WHERE phase <> 'closed';
      CREATE INDEX attempts ON intents (key, verb, incarnation, attempt);
      CREATE INDEX ended ON intents (outcome, seq);
      CREATE TABLE journal (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        at REAL NOT NULL,
        key TEXT NOT NULL,
        event TEXT NOT NULL,
        intent_id TEXT REFERENCES intents (id),
        data TEXT NOT NULL CHECK (json_valid(data))
      ) STRICT;
      CREATE INDEX journal_of_key ON journal (key, seq);
      CREATE TABLE uses (
        seq INTEGER PRIMARY KEY,
        bucket TEXT NOT NULL,
        at REAL NOT NULL
      ) STRICT;
      CREATE INDEX uses_of_bucket ON uses (bucket, at);
      CREATE TABLE notes (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL CHECK (json_valid(value))
      ) STRICT, WITHOUT ROWID;
    `,
  },
];

/** The schema version that this version of the program writes. */
export const currentVersion = migrations.length;

/**
 * Brings a database from the version it has to the last of `steps`, each step in a
 * transaction of its own, so that a crash leaves a whole version.
 *
 * @throws StateError where the database is newer than the steps; it is not touched.
 */
export function migrate(db: DatabaseSync, path: string, steps: readonly Migration[] = migrations): void {
  const version = versionOf(db);
  checkVersion(version, path, steps.length);
  for (const step of steps.slice(version)) {
    db.exec('BEGIN IMMEDIATE');
    try {
      db.exec(step.sql);
      db.exec(`PRAGMA user_version = ${step.version}`);
      db.exec('COMMIT');
    } catch (cause) {
      if (db.isTransaction) db.exec('ROLLBACK');
      throw new StateError(
        `The state ${path} could not be brought to version ${step.version} and was left unchanged: ${String(cause)}`,
        { cause },
      );
    }
  }
}

/** @throws StateError where `version` comes from a later release. */
export function checkVersion(version: number, path: string, known = currentVersion): void {
  if (version <= known) return;
  throw new StateError(
    `The state ${path} has version ${version}; this vdcsync knows versions up to ${known}. ` +
      'It was not touched. Use the vdcsync that wrote it, or a later one.',
  );
}

function versionOf(db: DatabaseSync): number {
  return Number(db.prepare('PRAGMA user_version').get()?.user_version);
}
