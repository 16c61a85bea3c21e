import { PostgresConnection } from './postgres-connection.ts';
import { migratePostgres } from './postgres-migrations.ts';
import type { PostgresSessions } from './postgres-sessions.ts';
import type { PostgresLocation } from './postgres-url.ts';
import type { Row } from './queries.ts';

/** A process of a fleet, as the owner of states. */
export interface Replica {
  /** Random text, new for each process. */
  readonly id: string;
  /**
   * Whether the last confirmed heartbeat is young enough. An owner writes nothing without a young heartbeat. So a
   * process that was stopped is fenced even before it receives any message.
   */
  isAlive(): boolean;
  /** Connections to the database that it has for all its states. Left out: each state has one of its own. */
  readonly sessions?: PostgresSessions;
}

/**
 * A replica whose last heartbeat is older than this counts as hung or gone: the server ends its connections as soon as
 * another process wants a state that the replica owns. The age is measured with the server's clock alone. An owner
 * relies on at most two thirds of this time.
 */
export const deadAfterSeconds = 12;

/** A heartbeat that takes longer has failed. */
const answerMs = 3_000;
/** Rows of replicas that ended this long ago are deleted. */
const forgetAfter = '7 days';
/** All fleets of a database call on one channel; each call names its fleet. */
const channel = 'vdcsync';

/** A process of a fleet, in the form that the other processes see. */
export interface Member {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
}

/**
 * One process of a fleet: records its heartbeats, reads the list of live replicas, and calls the others. The replica
 * has a connection of its own: behind other statements its heartbeats would be late when the database is busy.
 */
export class PostgresReplica {
  private readonly location: PostgresLocation;
  private readonly self: Member;
  private readonly onCall: (text: string | undefined) => void;
  private connection: PostgresConnection | undefined;
  private connecting: Promise<PostgresConnection> | undefined;

  /** `onCall` receives the calls of other replicas, and `undefined` if calls may have been lost. */
  constructor(
    location: PostgresLocation,
    self: Member,
    onCall: (text: string | undefined) => void = () => {},
  ) {
    this.location = location;
    this.self = self;
    this.onCall = onCall;
  }

  /**
   * Records a heartbeat, and returns all live replicas of the fleet, the oldest first. A replica whose process has ended
   * is not among them: the server has ended its connection. A replica that hangs is among them until its heartbeat is
   * overdue.
   *
   * @throws StateError if the heartbeat was not recorded. The next call opens a new connection.
   */
  async beat(): Promise<readonly Member[]> {
    const { id, host, pid } = this.self;
    const rows = await this.run(
      `WITH own AS (
         INSERT INTO vdcsync.replicas (id, host, pid, fleet, seen_at, backend)
         VALUES ($1, $2, $3, $4, clock_timestamp(), pg_backend_pid())
         ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, backend = excluded.backend
         RETURNING id, host, pid, since)
       SELECT id, host, pid, since FROM own
       UNION ALL
       SELECT id, host, pid, since FROM vdcsync.replicas
       WHERE fleet = $4 AND id <> $1 AND seen_at >= clock_timestamp() - make_interval(secs => $5::double precision)
         AND (backend IS NULL OR backend IN (SELECT pid FROM pg_stat_activity))
       ORDER BY since, id`,
      ...[id, host, pid, this.location.state, deadAfterSeconds],
    );
    return rows.map((row) => ({ id: String(row.id), host: String(row.host), pid: Number(row.pid) }));
  }

  /** Calls all replicas of the fleet, this one included. A call may be lost. */
  async call(text: string): Promise<void> {
    await this.run('SELECT pg_notify($1, $2)', channel, this.prefix + text);
  }

  /** Announces the end of this replica, so that the others do not have to wait until its heartbeat is overdue. */
  async close(farewell = ''): Promise<void> {
    await this.run('DELETE FROM vdcsync.replicas WHERE id = $1', this.self.id)
      .then(() => this.call(farewell))
      .catch(() => undefined);
    await this.connection?.close();
  }

  private async run(sql: string, ...values: readonly (string | number)[]): Promise<readonly Row[]> {
    const connection = await this.connected();
    return connection.exclusive(() => connection.query(sql, ...values));
  }

  /** Distinguishes the calls of different fleets. */
  private get prefix(): string {
    return `${JSON.stringify(this.location.state)} `;
  }

  private async connected(): Promise<PostgresConnection> {
    if (this.connection?.isOpen() === true) return this.connection;
    this.connecting ??= this.connect().finally(() => {
      this.connecting = undefined;
    });
    return this.connecting;
  }

  private async connect(): Promise<PostgresConnection> {
    const fresh = await PostgresConnection.open(this.location, 'write', answerMs);
    const isFirst = this.connection === undefined;
    this.connection = fresh;
    await migratePostgres(fresh);
    await fresh.listen(channel, (text) => {
      if (text.startsWith(this.prefix)) this.onCall(text.slice(this.prefix.length));
    });
    await fresh.query(
      `DELETE FROM vdcsync.replicas WHERE seen_at < clock_timestamp() - interval '${forgetAfter}'`,
    );
    if (!isFirst) this.onCall(undefined);
    return fresh;
  }
}
