import { hostname } from 'node:os';
import { pid } from 'node:process';
import { StateHeldError } from '../core/errors.ts';
import { heldBy, type LockHolder, type OwnerLockOptions } from './owner-lock.ts';
import type { PostgresConnection } from './postgres-connection.ts';
import { lockClass, postgresVersion } from './postgres-migrations.ts';
import type { Replica } from './postgres-sessions.ts';
import { headColumns } from './records.ts';
import type { Row } from './sql-driver.ts';

interface AcquireOptions extends OwnerLockOptions {
  readonly replica?: Replica;
  /** Has the connection for one piece of work. */
  readonly alone: <T>(work: () => Promise<T>) => Promise<T>;
  /** `tryLock` for the state. */
  readonly take: () => Promise<Row | undefined>;
  readonly label: string;
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
 * @throws StateHeldError naming the holder, if the lock is still taken after `waitMs`.
 */
export async function acquireOwnership(
  connection: PostgresConnection,
  stateId: number,
  { waitMs = 0, clock, onWait, replica, alone, take, label }: AcquireOptions,
): Promise<Row> {
  const giveUpAt = clock === undefined ? 0 : clock.monotonic() + waitMs;
  for (let tries = 0; ; tries += 1) {
    const leftMs = clock === undefined ? 0 : giveUpAt - clock.monotonic();
    const isLast = clock === undefined || leftMs <= 0;
    const head = await alone(async () => {
      const taken = await take();
      const ends = taken === undefined && isLast && replica !== undefined;
      return ends && (await endReplica(connection, stateId, replica)) ? take() : taken;
    });
    if (head !== undefined) return head;
    const holder = await alone(() => readHolder(connection, stateId));
    if (isLast) throw new StateHeldError(heldBy(label, holder));
    if (tries === 0) onWait?.(holder);
    await clock.sleep(Math.min(pollMs, leftMs));
  }
}

/**
 * The row of the state, or `undefined` if there is no state of this name, another connection has its lock, or the tables have
 * another version. One statement finds the state, takes the lock and records the owner: a process that is stopped between two
 * statements would have a lock that no other process may end. The update waits for a write of the previous owner that
 * is being committed, so the serial is the last one.
 */
export async function tryLock(
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
export async function releaseOwnership(connection: PostgresConnection, stateId: number): Promise<void> {
  await connection.query(
    `WITH gone AS (DELETE FROM vdcsync.owners WHERE state_id = $2::integer)
     SELECT pg_advisory_unlock($1::integer, $2::integer)`,
    ...[lockClass, stateId],
  );
}

/** Time between two attempts. */
const pollMs = 250;

async function readHolder(connection: PostgresConnection, stateId: number): Promise<LockHolder | undefined> {
  const [row] = await connection.query(
    'SELECT pid, host, since FROM vdcsync.owners WHERE state_id = $1',
    stateId,
  );
  return row && { pid: Number(row.pid), host: String(row.host), since: Number(row.since) };
}
