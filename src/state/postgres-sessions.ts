import { StateError } from '../core/errors.ts';
import { SerialQueue } from '../core/work.ts';
import { PostgresConnection } from './postgres-connection.ts';
import { lockClass, migratePostgres } from './postgres-migrations.ts';
import type { PostgresLocation } from './postgres-url.ts';

/** A process of a fleet, as the owner of states. */
export interface Replica {
  /** Random text, new for each process. */
  readonly id: string;
  /**
   * Whether its jobs were confirmed lately. An owner writes nothing without it. So a process that was stopped is fenced
   * even before it receives any message.
   */
  isAlive(): boolean;
  /** Connections to the database that it has for all its states. Left out: each state has one of its own. */
  readonly sessions?: PostgresSessions;
}

/**
 * The few connections on which one process owns many states of a database. A connection
 * holds the locks of several states at once, so that one that is owned for long, because a task is
 * waited for, costs no connection of its own, and a reconcile makes none.
 *
 * A lock of one connection may be taken twice on that connection. So the states that are owned are known here as well.
 */
export class PostgresSessions {
  readonly #location: PostgresLocation;
  readonly #most: number;
  /** How many states are owned on each. */
  readonly #users = new Map<PostgresConnection, number>();
  readonly #owned = new Set<string>();
  readonly #opening = new SerialQueue();

  /** `most`: connections, however many states are owned. */
  constructor(location: PostgresLocation, most = 4) {
    this.#location = location;
    this.#most = most;
  }

  /**
   * The connection with the fewest users, until it is given back.
   *
   * @throws StateError where none can be made.
   */
  take(): Promise<PostgresConnection> {
    return this.#opening.take(() => this.#take());
  }

  giveBack(connection: PostgresConnection): void {
    const users = this.#users.get(connection);
    if (users !== undefined) this.#users.set(connection, users - 1);
  }

  /** Reserves the state for this process. Returns whether no other part of this process owned the state. */
  own(state: string): boolean {
    if (this.#owned.has(state)) return false;
    this.#owned.add(state);
    return true;
  }

  release(state: string): void {
    this.#owned.delete(state);
  }

  async close(): Promise<void> {
    await this.#opening.end();
    await Promise.all([...this.#users.keys()].map((connection) => connection.close()));
    this.#users.clear();
  }

  async #take(): Promise<PostgresConnection> {
    for (const connection of this.#users.keys()) if (!connection.isOpen()) this.#users.delete(connection);
    const [least] = [...this.#users].sort(([, a], [, b]) => a - b);
    const connection =
      least !== undefined && (least[1] === 0 || this.#users.size >= this.#most)
        ? least[0]
        : await this.#open();
    this.#users.set(connection, (this.#users.get(connection) ?? 0) + 1);
    return connection;
  }

  async #open(): Promise<PostgresConnection> {
    const connection = await PostgresConnection.open(this.#location, 'write');
    try {
      await connection.failingAs('be opened', async () => {
        await migratePostgres(connection);
        await checkKeepsLocks(connection);
      });
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }
}

/**
 * Behind some poolers, and on some servers that only speak the protocol, a lock is an empty gesture.
 *
 * @throws StateError where it is.
 */
async function checkKeepsLocks(connection: PostgresConnection): Promise<void> {
  // Of no state: their ids are above 0.
  const unusedId = -connection.backendPid;
  await connection.query('SELECT pg_try_advisory_lock($1::integer, $2::integer)', lockClass, unusedId);
  const released = await connection.query(
    `SELECT pg_advisory_unlock($1::integer, $2::integer) FROM pg_locks
     WHERE locktype = 'advisory' AND classid = $1::bigint::oid AND objid = ($2::bigint & 4294967295)::oid
       AND pid = pg_backend_pid() AND granted`,
    lockClass,
    unusedId,
  );
  if (released.length === 1) return;
  throw new StateError(
    `The server of ${connection.label} does not keep locks for a session, so it cannot guard a state. ` +
      'Connect to PostgreSQL itself, or to a pooler in session mode.',
  );
}
