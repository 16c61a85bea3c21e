import { StateHeldError } from '../core/errors.ts';
import type { StateStore } from '../core/state.ts';
import { heldBy, type OwnerLockOptions } from './owner-lock.ts';
import { PostgresConnection } from './postgres-connection.ts';
import { PostgresDriver } from './postgres-driver.ts';
import { knownVersion, schemaVersion } from './postgres-migrations.ts';
import { acquireOwnership, releaseOwnership, tryLock } from './postgres-owner.ts';
import { PostgresSessions, type Replica } from './postgres-sessions.ts';
import { type PostgresLocation, parsePostgresUrl } from './postgres-url.ts';
import { PostgresWriter } from './postgres-writer.ts';
import { SqlStore } from './sql-store.ts';
import { memoryState } from './sqlite-driver.ts';

export interface OpenPostgresOptions extends OwnerLockOptions {
  /** `read` never creates nor changes anything, takes no lock, and works while another process writes. */
  readonly mode: 'write' | 'read';
  /** Wall time in ms: when a new state was born, and since when it is owned. */
  readonly now: number;
  /** Of a state that does not exist yet: random text. */
  readonly lineage: string;
  /** Which state, where the URL does not say `?state=NAME`. Default: `default`. */
  readonly name?: string;
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
  const location = parsePostgresUrl(url, options.name);
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

async function openForWriting(
  location: PostgresLocation,
  options: OpenPostgresOptions,
): Promise<PostgresDriver> {
  const sessions = options.replica?.sessions ?? new PostgresSessions(location);
  const end = async () => (options.replica?.sessions === undefined ? sessions.close() : undefined);
  let connection: PostgresConnection | undefined;
  try {
    connection = await sessions.take();
    return await own(connection, sessions, location, options, end);
  } catch (error) {
    if (connection !== undefined) sessions.giveBack(connection);
    await end();
    throw error;
  }
}

/** Nothing here has the connection for long: other states may be owned on it. */
async function own(
  connection: PostgresConnection,
  sessions: PostgresSessions,
  location: PostgresLocation,
  options: OpenPostgresOptions,
  end: () => Promise<void>,
): Promise<PostgresDriver> {
  const alone = <T>(work: () => Promise<T>) =>
    connection.exclusive(() => connection.failingAs('be opened', work));
  const { state: name, label } = location;
  if (!sessions.own(name)) throw new StateHeldError(heldBy(label, undefined));
  try {
    const take = () => tryLock(connection, name, options);
    const acquire = async () => {
      const id = await alone(() => findOrCreateState(connection, name, options));
      return acquireOwnership(connection, id, { ...options, alone, take, label });
    };
    const head = (await alone(take)) ?? (await acquire());
    const stateId = Number(head.id);
    const owner = new PostgresWriter(connection, stateId, head);
    return new PostgresDriver({
      ...{ connection, stateId, owner },
      ...(options.replica === undefined ? {} : { isAlive: () => options.replica?.isAlive() !== false }),
      close: async () => {
        await connection
          .exclusive(() => releaseOwnership(connection, stateId))
          // The lock is gone with the connection, or goes with it now.
          .catch(() => connection.close());
        sessions.release(name);
        sessions.giveBack(connection);
        await end();
      },
    });
  } catch (error) {
    sessions.release(name);
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
