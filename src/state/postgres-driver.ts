import { StateError } from '../core/errors.ts';
import type { PostgresConnection } from './postgres-connection.ts';
import { postgresVersion } from './postgres-migrations.ts';
import { refuseClosedStore, refuseReadOnly } from './records.ts';
import type { Row, SqlDriver, SqlOwner, SqlValue } from './sql-driver.ts';

interface PostgresDriverDeps {
  readonly connection: PostgresConnection;
  /** The row of `vdcsync.states`. */
  readonly stateId: number;
  /** The row as the owner found it: see `acquireOwnership`. Left out: every change is rejected. */
  readonly head?: Row;
  /** Of a replica: whether its jobs were confirmed lately. */
  readonly isAlive?: () => boolean;
  /** Releases this state's part of the connection, if the connection still exists. Never rejects. */
  readonly close: () => Promise<void>;
}

/**
 * Increments the serial if no other process has done so, if this connection belongs to the owner, and if no other
 * owner has come since.
 */
const fence = `
  UPDATE vdcsync.states SET serial = serial + 1
  WHERE id = $1 AND serial = $2 AND pg_backend_pid() = $3 AND epoch = $4
    AND EXISTS (SELECT 1 FROM vdcsync.schema_version WHERE version = $5)
  RETURNING serial`;

/**
 * A state in PostgreSQL. Which one, who may write it and when: `openPostgresState`.
 *
 * Every change first moves `serial` on from the value this process knows, on the connection that got the lock, in the
 * epoch that came with it, and in the schema version this program knows. So an owner that has lost the lock is refused
 * from the moment at which another one gets it.
 */
export class PostgresDriver implements SqlDriver, SqlOwner {
  readonly owner: SqlOwner | undefined;
  readonly head: Row;
  serial: number;
  readonly #deps: PostgresDriverDeps;
  /** Other states may be owned on the connection, which then stays open. */
  #closed = false;
  /** Whether a write was refused because another owner has come: every later one would be. */
  #isFenced = false;

  constructor(deps: PostgresDriverDeps) {
    this.#deps = deps;
    this.owner = deps.head === undefined ? undefined : this;
    this.head = deps.head ?? {};
    this.serial = Number(this.head.serial);
  }

  isOpen(): boolean {
    return this.#deps.connection.isOpen();
  }

  isOwned(): boolean {
    const { connection, isAlive } = this.#deps;
    return !this.#closed && connection.isOpen() && !this.#isFenced && isAlive?.() !== false;
  }

  get lost(): AbortSignal {
    return this.#deps.connection.lost;
  }

  reading<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) refuseClosedStore();
    const { connection } = this.#deps;
    return connection.exclusive(() => connection.failingAs('be read', work));
  }

  writing(changes: () => Promise<void>): Promise<void> {
    const { connection } = this.#deps;
    return this.#change(() =>
      connection.transaction('be written', async () => {
        this.#checkMoved(await connection.query(fence, ...this.#known()));
        await changes();
      }),
    );
  }

  writeNote(name: string, value: string): Promise<void> {
    const { connection } = this.#deps;
    // It changes something only for rows of `fence`, of which there is one, and none where another process has written.
    const sql = `WITH fence AS (${fence})
      INSERT INTO vdcsync.notes (state_id, name, value) SELECT $1, $6, $7 FROM fence
      ON CONFLICT (state_id, name) DO UPDATE SET value = excluded.value RETURNING 1`;
    return this.#change(async () => {
      this.#checkMoved(await connection.durable('be written', sql, ...this.#known(), name, value));
    });
  }

  run(sql: string, ...values: readonly SqlValue[]): Promise<readonly Row[]> {
    const { connection, stateId } = this.#deps;
    return connection.query(sql, stateId, ...values);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#deps.close();
  }

  /** @throws StateError where the change could not be made durable, or where another process has written since */
  #change(change: () => Promise<void>): Promise<void> {
    if (this.#closed) refuseClosedStore();
    if (this.owner === undefined) refuseReadOnly();
    return this.#deps.connection.exclusive(async () => {
      await change();
      this.serial += 1;
    });
  }

  /** The values of the fence. */
  #known(): readonly [number, number, number, number, number] {
    const { connection, stateId } = this.#deps;
    return [stateId, this.serial, connection.backendPid, Number(this.head.epoch), postgresVersion];
  }

  #checkMoved(moved: readonly Row[]): void {
    if (moved.length > 0) return;
    this.#isFenced = true;
    const { connection } = this.#deps;
    throw new StateError(
      `Another process has taken or changed the state ${connection.label} (its serial is no longer ${this.serial}, or its epoch no longer ${this.head.epoch}), ` +
        'or has updated it to a later version, or the connection uses a pooler in transaction mode. ' +
        'Nothing was recorded. Stop the other process, then start again.',
    );
  }
}
