import type { StateStore } from '../core/state.ts';
import { memoryState } from './memory.ts';
import type { OwnerLockOptions } from './owner-lock.ts';
import { PostgresConnection } from './postgres-connection.ts';
import { migratePostgres, schemaVersion } from './postgres-migrations.ts';
import { acquireOwnership, releaseOwnership } from './postgres-owner.ts';
import type { Replica } from './postgres-replica.ts';
import { PostgresStore } from './postgres-store.ts';
import { parsePostgresUrl } from './postgres-url.ts';
import { PostgresWriter } from './postgres-writer.ts';

export interface OpenPostgresOptions extends OwnerLockOptions {
  /** `read` never creates nor changes anything, takes no lock, and works beside a writer. */
  readonly mode: 'write' | 'read';
  /** Wall time in ms: when a new state was born, and since when it is owned. */
  readonly now: number;
  /** Of a state that does not exist yet: random text. */
  readonly lineage: string;
  /** Which state, where the URL does not say `?state=NAME`. Default: `default`. */
  readonly name?: string;
  /** The process's heartbeat; an owner whose heartbeat is missed is ended by whoever comes next. Left out: it promises none. */
  readonly replica?: Replica;
}

/**
 * Opens a state in a PostgreSQL database (12 or later, UTF8).
 *
 * One database holds any number of states, one for each project, all in the schema
 * `vdcsync`: `postgres://HOST/DATABASE?state=shop` names the state `shop`; without it, it
 * is `default`. A state is tied to a project by its first claim, as a file is. The user may
 * create the schema, or somebody makes an empty one that it owns.
 *
 * User, password and host may also stand in `PGUSER`, `PGPASSWORD` and `PGHOST`. A server on
 * another machine needs `sslmode=verify-full` (with `sslrootcert` where the authority is
 * private) or `allow_insecure=true` in the URL.
 *
 * For writing: creates what is missing, and is the only owner until `close` or until the
 * connection is lost. A lost connection is not made anew: every later call rejects.
 *
 * For reading: what does not exist is an empty state, and the database is left as it is.
 *
 * @throws StateError where the server cannot be reached or used, where the schema is
 * foreign or of a later release, or has another owner after `waitMs`.
 */
export async function openPostgresState(url: string, options: OpenPostgresOptions): Promise<StateStore> {
  const location = parsePostgresUrl(url, options.name);
  const connection = await PostgresConnection.open(location, options.mode);
  try {
    return await connection.failingAs('be opened', () =>
      options.mode === 'read'
        ? openForReading(connection, location.state, options)
        : openForWriting(connection, location.state, options),
    );
  } catch (error) {
    await connection.close();
    throw error;
  }
}

async function openForReading(
  connection: PostgresConnection,
  name: string,
  { now, lineage }: OpenPostgresOptions,
): Promise<StateStore> {
  const stateId =
    (await schemaVersion(connection)) === 'missing' ? undefined : await findState(connection, name);
  if (stateId !== undefined) return new PostgresStore({ connection, stateId });
  await connection.close();
  return memoryState({ createdAt: now, lineage, mode: 'read' });
}

async function openForWriting(
  connection: PostgresConnection,
  name: string,
  options: OpenPostgresOptions,
): Promise<StateStore> {
  await migratePostgres(connection);
  const stateId = await findOrCreateState(connection, name, options);
  await acquireOwnership(connection, stateId, options);
  const writer = await PostgresWriter.open(connection, stateId);
  return new PostgresStore({
    connection,
    stateId,
    writer,
    ...(options.replica === undefined ? {} : { isAlive: () => options.replica?.isAlive() !== false }),
    onClose: () => releaseOwnership(connection, stateId),
  });
}

async function findState(connection: PostgresConnection, name: string): Promise<number | undefined> {
  const [row] = await connection.query('SELECT id FROM vdcsync.states WHERE name = $1', name);
  return row && Number(row.id);
}

/** The name is unique, so of two that create it at once one finds the other's. */
async function findOrCreateState(
  connection: PostgresConnection,
  name: string,
  { now, lineage }: OpenPostgresOptions,
): Promise<number> {
  const known = await findState(connection, name);
  if (known !== undefined) return known;
  const [created] = await connection.query(
    `INSERT INTO vdcsync.states (name, lineage, created_at) VALUES ($1, $2, $3)
     ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id`,
    name,
    lineage,
    now,
  );
  return Number(created?.id);
}
