import { PostgresConnection } from './postgres-connection.ts';
import { migratePostgres } from './postgres-migrations.ts';
import type { PostgresLocation } from './postgres-url.ts';

/** A process of a fleet, as the owner of states. */
export interface Replica {
  /** Random text, new for each process. */
  readonly id: string;
  /**
   * Whether the last confirmed heartbeat is young enough. An owner writes nothing without
   * it: a process that stood still is fenced before it has heard of anything.
   */
  isAlive(): boolean;
}

/**
 * A replica whose last heartbeat is older than this is taken for hung or gone: the server
 * ends its connections as soon as another process wants a state that it owns. The age is by
 * the server's clock alone. An owner counts on two thirds of this at most.
 */
export const deadAfterSeconds = 12;

/** A heartbeat that takes longer has failed. */
const answerMs = 3_000;
/** Rows of replicas that ended so long ago serve nobody. */
const forgetAfter = '7 days';

/**
 * Records the heartbeats of one process, on a connection of its own: behind other
 * statements they would come late where the database is busy.
 */
export class PostgresHeartbeat {
  private readonly location: PostgresLocation;
  private readonly replica: { readonly id: string; readonly host: string; readonly pid: number };
  private connection: PostgresConnection | undefined;

  constructor(location: PostgresLocation, replica: PostgresHeartbeat['replica']) {
    this.location = location;
    this.replica = replica;
  }

  /** @throws StateError where the heartbeat was not recorded. The next call connects anew. */
  async beat(): Promise<void> {
    const { id, host, pid } = this.replica;
    await this.run(
      `INSERT INTO vdcsync.replicas (id, host, pid, seen_at) VALUES ($1, $2, $3, clock_timestamp())
       ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`,
      [id, host, pid],
    );
  }

  /** One statement on the connection of the heartbeats. */
  async run(sql: string, values: readonly unknown[]): Promise<{ rows: Record<string, unknown>[] }> {
    const connection = await this.connected();
    return { rows: [...(await connection.exclusive(() => connection.query(sql, ...(values as string[]))))] };
  }

  /** Says that it ends: nobody has to wait for its heartbeat to be missed. */
  async close(): Promise<void> {
    await this.run('DELETE FROM vdcsync.replicas WHERE id = $1', [this.replica.id]).catch(() => undefined);
    await this.connection?.close();
  }

  private async connected(): Promise<PostgresConnection> {
    if (this.connection?.isOpen() === true) return this.connection;
    const fresh = await PostgresConnection.open(this.location, 'write', answerMs);
    this.connection = fresh;
    await migratePostgres(fresh);
    await fresh.query(
      `DELETE FROM vdcsync.replicas WHERE seen_at < clock_timestamp() - interval '${forgetAfter}'`,
    );
    return fresh;
  }
}
