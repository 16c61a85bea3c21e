import { hostname } from 'node:os';
import { pid } from 'node:process';
import { StateInUseError } from '../core/errors.ts';
import type { StateStore } from '../core/state.ts';
import { inUseText, type LockHolder, type OwnerLockOptions, waitFor } from './owner-lock.ts';
import { PostgresConnection } from './postgres-connection.ts';
import { PostgresDriver } from './postgres-driver.ts';
import { knownVersion, lockClass, postgresVersion, schemaVersion } from './postgres-migrations.ts';
import { PostgresSessions, type Replica } from './postgres-sessions.ts';
import { type PostgresLocation, parsePostgresUrl } from './postgres-url.ts';
import { headColumns } from './records.ts';
import type { Row } from './sql-driver.ts';
import { SqlStore } from './sql-store.ts';
import { memoryState } from './sqlite-driver.ts';

/** The options of a state in PostgreSQL. Only `write` waits for another owner. */
export interface OpenPostgresOptions extends OwnerLockOptions {
  /** `read` never creates nor changes anything, takes no lock, and works while another process writes. */
  readonly mode: 'write' | 'read';
  /** Wall time in ms: when a new state was born, and since when it is owned. */
  readonly now: number;
  /** Of a state that does not exist yet: random text. */
  readonly lineage: string;
  /**
   * The process as one of a fleet, with the job of the project in hand. It ends the connection of another replica that
   * still owns the state.
   */
  readonly replica?: Replica;
}

/**
 * Opens a state in a PostgreSQL database (12 or later, UTF8).
 *
 * One database holds any number of states, one for each project, all in the schema `vdcsync`:
 * `postgres://HOST/DATABASE?state=shop` names the state `shop`; without a name the state is `default`. The first claim
 * ties a state to a project, as with a file. The user needs the right to create the schema, or an administrator
 * creates an empty schema that the user owns.
 *
 * User, password and host may also come from `PGUSER`, `PGPASSWORD` and `PGHOST`. A server on another machine needs
 * `sslmode=verify-full` (with `sslrootcert` if the authority is private) or `allow_insecure=true` in the URL.
 *
 * For writing: creates missing tables and rows, and is the only owner until `close` or until the connection is lost. A
 * lost connection is not opened again: every later call rejects.
 *
 * For reading: a missing state is an empty state, and the database stays unchanged.
 *
 * @throws StateError if the server cannot be reached or used, if the schema is foreign or of a later release, or if
 * the state has another owner after `waitMs`.
 */
export async function openPostgresState(url: string, options: OpenPostgresOptions): Promise<StateStore> {
  const { now, lineage } = options;
  const driver = await openPostgresDriver(url, options);
  return driver === undefined ? memoryState({ createdAt: now, lineage, mode: 'read' }) : new SqlStore(driver);
}

/** The same; `undefined` where there is nothing to be read. */
export async function openPostgresDriver(
  url: string,
  options: OpenPostgresOptions,
): Promise<PostgresDriver | undefined> {
  const location = parsePostgresUrl(url);
  return options.mode === 'read' ? openForReading(location) : openForWriting(location, options);
}

async function openForReading(location: PostgresLocation): Promise<PostgresDriver | undefined> {
  const connection = await PostgresConnection.open(location, 'read');
  const close = () => connection.close();
  try {
    const stateId = await connection.failingAs('be opened', async () =>
      (await schemaVersion(connection)) === 'missing'
        ? undefined
        : await findState(connection, location.state),
    );
    if (stateId !== undefined) return new PostgresDriver({ connection, stateId, close });
    await close();
    return undefined;
  } catch (error) {
    await close();
    throw error;
  }
}

/** Nothing here has the connection for long: other states may be owned on it. */
async function openForWriting(
  location: PostgresLocation,
  options: OpenPostgresOptions,
): Promise<PostgresDriver> {
  const { replica } = options;
  const { state: name, label } = location;
  const sessions = replica?.sessions ?? new PostgresSessions(location);
  if (!sessions.own(name)) throw new StateInUseError(inUseText(label, undefined));
  let taken: PostgresConnection | undefined;
  const giveBack = async () => {
    sessions.release(name);
    if (taken !== undefined) sessions.giveBack(taken);
    if (replica?.sessions === undefined) await sessions.close();
  };
  try {
    const connection = await sessions.take();
    taken = connection;
    const head = await acquireOwnership(connection, location, options);
    const stateId = Number(head.id);
    return new PostgresDriver({
      ...{ connection, stateId, head },
      ...(replica === undefined ? {} : { isAlive: () => replica.isAlive() }),
      close: async () => {
        await connection
          .exclusive(() => releaseOwnership(connection, stateId))
          // The lock is gone with the connection, or goes with it now.
          .catch(() => connection.close());
        await giveBack();
      },
    });
  } catch (error) {
    await giveBack();
    throw error;
  }
}

async function findState(connection: PostgresConnection, name: string): Promise<number | undefined> {
  const sql =
    'SELECT id, (SELECT version FROM vdcsync.schema_version) AS version FROM vdcsync.states WHERE name = $1';
  const [row] = await connection.query(sql, name);
  // A later release may have updated the tables since this connection was opened.
  if (row !== undefined) knownVersion(row.version, connection);
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

/**
 * Makes this connection the one owner of a state, until `releaseOwnership` or the end of the connection. Returns the
 * state's row with the epoch of the new owner: from this moment on the database refuses every write of an earlier
 * owner, also if the earlier owner still believes in its lock.
 *
 * The lock belongs to the server's end of the connection, and ends with the connection for any reason. When the
 * owner's machine vanishes, the server detects it after about half a minute, and from then on the old owner cannot
 * write. No process takes the lock of an owner that is no replica. A replica opens a state only with the job of the
 * project, which the queue gives to one replica at a time. So where another replica still has the lock after `waitMs`,
 * that one has lost the job, and this function ends its connection: a stopped process would otherwise keep the lock without end.
 *
 * @throws StateInUseError naming the holder, if the lock is still taken after `waitMs`.
 */
async function acquireOwnership(
  connection: PostgresConnection,
  { state: name, label }: PostgresLocation,
  options: OpenPostgresOptions,
): Promise<Row> {
  const { replica } = options;
  const alone = <T>(work: () => Promise<T>) =>
    connection.exclusive(() => connection.failingAs('be opened', work));
  const take = () => tryLock(connection, name, options);
  const taken = await alone(take);
  if (taken !== undefined) return taken;
  const stateId = await alone(() => findOrCreateState(connection, name, options));
  const holder = () => alone(() => readHolder(connection, stateId));
  return waitFor(label, options, holder, (isLast) =>
    alone(async () => {
      const taken = await take();
      const ends = taken === undefined && isLast && replica !== undefined;
      return ends && (await endReplica(connection, stateId, replica)) ? take() : taken;
    }),
  );
}

/**
 * The row of the state, or `undefined` if there is no state of this name, another connection has its lock, or the tables have
 * another version. One statement finds the state, takes the lock and records the owner: a process that is stopped between two
 * statements would have a lock that no other process may end. The update waits for a write of the previous owner that
 * is being committed, so the serial is the last one.
 */
async function tryLock(
  connection: PostgresConnection,
  name: string,
  { now, replica }: { readonly now: number; readonly replica?: Replica },
): Promise<Row | undefined> {
  const [taken] = await connection.query(
    `WITH state AS MATERIALIZED (SELECT id FROM vdcsync.states
       WHERE name = $2 AND EXISTS (SELECT 1 FROM vdcsync.schema_version WHERE version = $7::integer)),
     lock AS MATERIALIZED (SELECT id, pg_try_advisory_lock($1::integer, id) AS taken FROM state),
     owner AS (
     INSERT INTO vdcsync.owners (state_id, pid, host, since, backend, replica)
     SELECT id, $3::integer, $4, $5::double precision, pg_backend_pid(), $6 FROM lock WHERE taken
     ON CONFLICT (state_id) DO UPDATE SET pid = excluded.pid, host = excluded.host, since = excluded.since,
       backend = excluded.backend, replica = excluded.replica
     RETURNING state_id)
     UPDATE vdcsync.states SET epoch = epoch + 1 FROM owner WHERE id = state_id RETURNING id, epoch, ${headColumns}`,
    ...[lockClass, name, pid, hostname(), now, replica?.id ?? null, postgresVersion],
  );
  return taken;
}

/** Ends the connection of another replica that owns the state, and waits a moment for its lock. Returns whether it ended one. */
async function endReplica(
  connection: PostgresConnection,
  stateId: number,
  { id }: Replica,
): Promise<boolean> {
  const ended = await connection.query(
    `SELECT pg_terminate_backend(l.pid), pg_sleep(0.1)
     FROM pg_locks l JOIN vdcsync.owners o ON o.state_id = $2::integer AND o.backend = l.pid AND o.replica <> $3
     WHERE l.locktype = 'advisory' AND l.granted
       AND l.classid = $1::bigint::oid AND l.objid = $2::bigint::oid
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    ...[lockClass, stateId, id],
  );
  return ended.length > 0;
}

/** Releases the lock explicitly, because the server may take a moment to detect the end of a connection. */
async function releaseOwnership(connection: PostgresConnection, stateId: number): Promise<void> {
  await connection.query(
    `WITH gone AS (DELETE FROM vdcsync.owners WHERE state_id = $2::integer)
     SELECT pg_advisory_unlock($1::integer, $2::integer)`,
    ...[lockClass, stateId],
  );
}

async function readHolder(connection: PostgresConnection, stateId: number): Promise<LockHolder | undefined> {
  const [row] = await connection.query(
    'SELECT pid, host, since FROM vdcsync.owners WHERE state_id = $1',
    stateId,
  );
  return row && { pid: Number(row.pid), host: String(row.host), since: Number(row.since) };
}
