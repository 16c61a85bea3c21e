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
 * The tables and columns of a state in PostgreSQL, so that both have the same statements. A file has one state. Each
 * object of the project has one row in `claims`, so that it has one holder: a row with a key is a binding, a row without
 * a key is another claim. Times are REAL: a scaled clock gives fractions of milliseconds.
 *
 * Journal and intents are kept for a long time after their end: `history` shows them, and they count how often a
 * resource was created.
 */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    sql: `
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
