import { StateError } from '../core/errors.ts';
import type { PostgresConnection } from './postgres-connection.ts';
import { postgresVersion } from './postgres-migrations.ts';
import type { Row } from './sql-driver.ts';

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
 * Writes one state. Every transaction first moves `serial` on from the value this process
 * knows, on the connection that got the lock, in the epoch that came with it, and in the schema version this program
 * knows. So an owner that has lost the lock is refused from the moment at which another one gets it.
 */
export class PostgresWriter {
  private readonly connection: PostgresConnection;
  private readonly stateId: number;
  /** As the owner found the state. */
  readonly head: Row;
  private readonly epoch: number;
  /** Counts every change that this owner has made. */
  serial: number;
  private refused = false;

  /** `head`: the state's row, as `acquireOwnership` returned it. */
  constructor(connection: PostgresConnection, stateId: number, head: Row) {
    this.connection = connection;
    this.stateId = stateId;
    this.epoch = Number(head.epoch);
    this.head = head;
    this.serial = Number(head.serial);
  }

  /**
   * Runs `changes` as one durable change, or not at all. Only inside `exclusive`.
   *
   * @throws StateError where it could not be made durable, or where another process has
   * written since.
   */
  async transaction(changes: () => Promise<void>): Promise<void> {
    await this.connection.transaction('be written', async () => {
      await this.moveSerial();
      await changes();
    });
    this.serial += 1;
  }

  /**
   * A durable change of one statement: the rest of `WITH fence AS (…)`. It changes something only for rows of `fence`, of which
   * there is one, and none where another process has written since. `$1` is the state's id, `$6` the first of the values. Only inside `exclusive`.
   *
   * @throws StateError as `transaction` does.
   */
  async change(sql: string, ...values: readonly (string | number)[]): Promise<void> {
    const statement = `WITH fence AS (${fence}) ${sql} RETURNING 1`;
    this.checkMoved(await this.connection.durable('be written', statement, ...this.#known(), ...values));
    this.serial += 1;
  }

  /** Whether a write was refused because another owner has come: every later one would be. */
  get isFenced(): boolean {
    return this.refused;
  }

  #known(): readonly [number, number, number, number, number] {
    return [this.stateId, this.serial, this.connection.backendPid, this.epoch, postgresVersion];
  }

  private async moveSerial(): Promise<void> {
    this.checkMoved(await this.connection.query(fence, ...this.#known()));
  }

  private checkMoved(moved: readonly Row[]): void {
    if (moved.length > 0) return;
    this.refused = true;
    throw new StateError(
      `Another process has taken or changed the state ${this.connection.label} (its serial is no longer ${this.serial}, or its epoch no longer ${this.epoch}), ` +
        'or has updated it to a later version, or the connection uses a pooler in transaction mode. ' +
        'Nothing was recorded. Stop the other process, then start again.',
    );
  }
}
