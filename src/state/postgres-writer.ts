import { StateError } from '../core/errors.ts';
import type { PostgresConnection } from './postgres-connection.ts';
import { postgresVersion } from './postgres-migrations.ts';

/**
 * Writes one state. Every transaction first moves `serial` on from the value this process
 * knows, on the connection that got the lock, in the schema version this program knows: a
 * second writer that got past the lock is refused at its first change, whichever it is.
 */
export class PostgresWriter {
  private readonly connection: PostgresConnection;
  private readonly stateId: number;
  private serial: number;

  /** Only for the owner of the lock, which it was before it looked at the serial. */
  static async open(connection: PostgresConnection, stateId: number): Promise<PostgresWriter> {
    const [row] = await connection.query('SELECT serial FROM vdcsync.states WHERE id = $1', stateId);
    return new PostgresWriter(connection, stateId, Number(row?.serial));
  }

  private constructor(connection: PostgresConnection, stateId: number, serial: number) {
    this.connection = connection;
    this.stateId = stateId;
    this.serial = serial;
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

  private async moveSerial(): Promise<void> {
    const moved = await this.connection.query(
      `UPDATE vdcsync.states SET serial = serial + 1
       WHERE id = $1 AND serial = $2 AND pg_backend_pid() = $3
         AND EXISTS (SELECT 1 FROM vdcsync.schema_version WHERE version = $4)
       RETURNING serial`,
      this.stateId,
      this.serial,
      this.connection.backendPid,
      postgresVersion,
    );
    if (moved.length === 1) return;
    throw new StateError(
      `The state ${this.connection.label} was written by another process since it was opened (its serial is not ${this.serial}), ` +
        'or brought to a later version, or is reached through a pooler that changes connections. ' +
        'Nothing was recorded. Stop the other process, then start again.',
    );
  }
}
