import { LaterReleaseError, StateError } from '../core/errors.ts';
import type { PostgresConnection } from './postgres-connection.ts';

/**
 * `states.epoch` counts the owners that a state has had: every write checks that no other one has come since. Each object
 * of a project has one row in `claims`, so that it has one holder: a row with a key is a binding, a row without a key is
 * another claim. `specs` are those that a fleet has published, each with the serial of its last change; one that is gone
 * has no body. `waiting_specs` wait while a change is rolled out in waves; one without a body waits for a newer spec.
 *
 * Bodies are JSON as text: `jsonb` would refuse some valid JSON (`\u0000`) and reorder
 * the rest. Values that queries search for are in separate columns, compared byte by byte (`"C"`), as in SQLite. Times are doubles: a scaled clock gives fractions of milliseconds.
 *
 * One step for each version of the schema. Published steps are never edited: a correction is a further step.
 */
const postgresMigrations: readonly string[] = [
  `
    CREATE TABLE vdcsync.schema_version (
      one integer PRIMARY KEY DEFAULT 1 CHECK (one = 1),
      version integer NOT NULL
    );
    INSERT INTO vdcsync.schema_version (version) VALUES (0);
    CREATE TABLE vdcsync.states (
      id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name text COLLATE "C" NOT NULL UNIQUE,
      lineage text NOT NULL,
      serial bigint NOT NULL DEFAULT 0,
      created_at double precision NOT NULL,
      project_id bigint,
      service text,
      epoch bigint NOT NULL DEFAULT 0
    );
    CREATE TABLE vdcsync.owners (
      state_id integer PRIMARY KEY REFERENCES vdcsync.states (id),
      pid integer NOT NULL,
      host text NOT NULL,
      since double precision NOT NULL,
      backend integer,
      replica text COLLATE "C"
    );
    CREATE TABLE vdcsync.claims (
      state_id integer NOT NULL REFERENCES vdcsync.states (id),
      object text COLLATE "C" NOT NULL,
      key text COLLATE "C",
      body text NOT NULL,
      PRIMARY KEY (state_id, object),
      UNIQUE (state_id, key)
    );
    CREATE TABLE vdcsync.incarnations (
      state_id integer NOT NULL REFERENCES vdcsync.states (id),
      key text COLLATE "C" NOT NULL,
      gone integer NOT NULL,
      PRIMARY KEY (state_id, key)
    );
    CREATE TABLE vdcsync.intents (
      seq bigint GENERATED ALWAYS AS IDENTITY,
      state_id integer NOT NULL REFERENCES vdcsync.states (id),
      id text COLLATE "C" NOT NULL,
      key text COLLATE "C" NOT NULL,
      verb text COLLATE "C" NOT NULL,
      incarnation text COLLATE "C" NOT NULL,
      attempt integer NOT NULL,
      phase text COLLATE "C" NOT NULL,
      outcome text COLLATE "C",
      body text NOT NULL,
      PRIMARY KEY (state_id, id)
    );
    CREATE UNIQUE INDEX one_open_intent ON vdcsync.intents (state_id, key) WHERE phase <> 'closed';
    CREATE INDEX intents_in_order ON vdcsync.intents (state_id, seq);
    CREATE INDEX attempts ON vdcsync.intents (state_id, key, verb, incarnation, attempt);
    CREATE INDEX ended ON vdcsync.intents (state_id, outcome, seq);
    CREATE TABLE vdcsync.journal (
      state_id integer NOT NULL,
      seq bigint GENERATED ALWAYS AS IDENTITY,
      at double precision NOT NULL,
      key text COLLATE "C" NOT NULL,
      event text NOT NULL,
      intent_id text COLLATE "C",
      data text NOT NULL,
      PRIMARY KEY (state_id, seq),
      FOREIGN KEY (state_id, intent_id) REFERENCES vdcsync.intents (state_id, id)
    );
    CREATE INDEX journal_of_key ON vdcsync.journal (state_id, key, seq);
    CREATE TABLE vdcsync.notes (
      state_id integer NOT NULL REFERENCES vdcsync.states (id),
      name text COLLATE "C" NOT NULL,
      value text NOT NULL,
      PRIMARY KEY (state_id, name)
    );
    CREATE TABLE vdcsync.specs (
      state_id integer NOT NULL REFERENCES vdcsync.states (id),
      name text COLLATE "C" NOT NULL,
      version bigint NOT NULL,
      project bigint,
      body text,
      PRIMARY KEY (state_id, name)
    );
    CREATE INDEX specs_in_order ON vdcsync.specs (state_id, version);
    CREATE INDEX specs_of_project ON vdcsync.specs (state_id, project);
    CREATE TABLE vdcsync.waiting_specs (
      state_id integer NOT NULL REFERENCES vdcsync.states (id),
      project bigint NOT NULL,
      rollout text COLLATE "C" NOT NULL,
      body text,
      PRIMARY KEY (state_id, project)
    );
  `,
];

/** The schema version that this version of the program writes. */
export const postgresVersion = postgresMigrations.length;

/** "vdcs" in ASCII: the first half of our advisory locks. The second is a state's id; 0 is the schema. */
export const lockClass = 0x76646373;

/**
 * The schema version of the database. Reads without changing anything, and needs no right on the schema.
 *
 * @throws StateError if a schema `vdcsync` belongs to another user or program, or to a later release.
 */
export async function schemaVersion(connection: PostgresConnection): Promise<number | 'missing'> {
  const [found] = await connection.query(
    `SELECT count(c.oid) AS relations, count(c.oid) FILTER (WHERE c.relname = 'schema_version') AS ours
     FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid
     WHERE n.nspname = 'vdcsync'`,
  );
  await refuseOtherOwner(connection);
  if (found === undefined || Number(found.relations) === 0) return 'missing';
  if (Number(found.ours) === 0) {
    throw new StateError(
      `The database of ${connection.label} has a schema vdcsync of another program; it was left unchanged. Name another database.`,
    );
  }
  const [row] = await connection.query('SELECT version FROM vdcsync.schema_version');
  return knownVersion(row?.version, connection);
}

/** @throws LaterReleaseError if this version of the program is older. */
export function knownVersion(found: unknown, { label }: Pick<PostgresConnection, 'label'>): number {
  const version = Number(found);
  if (version <= postgresVersion) return version;
  throw new LaterReleaseError(
    `The state ${label} has version ${version}; this vdcsync knows versions up to ${postgresVersion}. ` +
      'It was not touched. Use the vdcsync that wrote it, or a later one.',
  );
}

/**
 * Brings the schema to the last step, all in one transaction under a lock. So two processes that start at once
 * migrate one after the other, and a failure changes nothing. Owners of other states in the database that know only
 * the version before are fenced off by the new version: see `PostgresDriver`.
 *
 * @throws StateError if a step fails; the database is then unchanged.
 */
export async function migratePostgres(connection: PostgresConnection): Promise<void> {
  if ((await schemaVersion(connection)) === postgresVersion) return;
  await connection.transaction('be brought up to date', async () => {
    await connection.query('SELECT pg_advisory_xact_lock($1, 0)', lockClass);
    const version = await schemaVersion(connection);
    if (version === 'missing') {
      // CREATE SCHEMA IF NOT EXISTS asks for the right to create it even where it exists.
      const there = await connection.query("SELECT 1 FROM pg_namespace WHERE nspname = 'vdcsync'");
      if (there.length === 0) await connection.query('CREATE SCHEMA vdcsync');
    }
    for (const step of postgresMigrations.slice(version === 'missing' ? 0 : version))
      await connection.script(step);
    await connection.query('UPDATE vdcsync.schema_version SET version = $1', postgresVersion);
  });
}

/**
 * Functions in the tables of another user would run with the rights of vdcsync. A role that this user is a member of, a
 * superuser and the owner of the database have these rights anyway.
 */
async function refuseOtherOwner(connection: PostgresConnection): Promise<void> {
  const [other] = await connection.query(
    `SELECT r.rolname AS owner, o.name FROM (
       SELECT nspowner AS owner, 'the schema ' || nspname AS name FROM pg_namespace WHERE nspname IN ('vdcsync', 'vdcsync_jobs')
       UNION ALL
       SELECT relowner, nspname || '.' || relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
       WHERE nspname IN ('vdcsync', 'vdcsync_jobs') AND relkind IN ('r', 'p', 'v', 'm', 'f')
     ) o JOIN pg_roles r ON r.oid = o.owner
     WHERE NOT pg_has_role(o.owner, 'MEMBER') AND NOT r.rolsuper
       AND o.owner NOT IN (SELECT datdba FROM pg_database WHERE datname = current_database())
     LIMIT 1`,
  );
  if (other === undefined) return;
  throw new StateError(
    `In the database of ${connection.label}, ${other.name} belongs to ${other.owner}, whose functions would run with the rights of vdcsync. ` +
      'It was left unchanged. Name another database, or give the schema and its tables to the user of vdcsync.',
  );
}
