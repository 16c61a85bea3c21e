import { hostname } from 'node:os';
import { pid } from 'node:process';
import { StateError } from '../core/errors.ts';
import { type Holder, heldBy, type OwnerLockOptions } from './owner-lock.ts';
import type { PostgresConnection } from './postgres-connection.ts';
import { lockClass } from './postgres-migrations.ts';

/**
 * Makes this connection the one owner of a state, until `releaseOwnership` or its end.
 *
 * The lock is the server's and ends with the connection, however that ends; nobody ever
 * steals it by a timer. When the owner's machine vanishes, the server notices after about
 * half a minute, and from then on the old owner cannot write.
 *
 * @throws StateError naming the holder, where it is still held after `waitMs`.
 */
export async function acquireOwnership(
  connection: PostgresConnection,
  stateId: number,
  { now, waitMs = 0, clock, onWait }: OwnerLockOptions,
): Promise<void> {
  const giveUpAt = clock === undefined ? 0 : clock.monotonic() + waitMs;
  for (let tries = 0; ; tries += 1) {
    const [row] = await connection.query('SELECT pg_try_advisory_lock($1, $2) AS got', lockClass, stateId);
    if (row?.got === true) break;
    const holder = await readHolder(connection, stateId);
    const leftMs = clock === undefined ? 0 : giveUpAt - clock.monotonic();
    if (clock === undefined || leftMs <= 0) throw new StateError(heldBy(connection.label, holder));
    if (tries === 0) onWait?.(holder);
    await clock.sleep(Math.min(pollMs, leftMs));
  }
  await checkHeld(connection, stateId);
  await connection.query(
    `INSERT INTO vdcsync.owners (state_id, pid, host, since) VALUES ($1, $2, $3, $4)
     ON CONFLICT (state_id) DO UPDATE SET pid = excluded.pid, host = excluded.host, since = excluded.since`,
    stateId,
    pid,
    hostname(),
    now,
  );
}

/** Said aloud, since the server may take a moment to notice the end of a connection. */
export async function releaseOwnership(connection: PostgresConnection, stateId: number): Promise<void> {
  await connection.query('DELETE FROM vdcsync.owners WHERE state_id = $1', stateId);
  await connection.query('SELECT pg_advisory_unlock($1, $2)', lockClass, stateId);
}

/** Between two tries. */
const pollMs = 250;

/** Behind some poolers, and on some servers that only speak the protocol, the lock is an empty gesture. */
async function checkHeld(connection: PostgresConnection, stateId: number): Promise<void> {
  const held = await connection.query(
    `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = $1::bigint::oid AND objid = $2::bigint::oid
     AND pid = pg_backend_pid() AND granted`,
    lockClass,
    stateId,
  );
  if (held.length === 1) return;
  throw new StateError(
    `The server of ${connection.label} does not keep locks for a session, so it cannot guard a state. ` +
      'Connect to PostgreSQL itself, or to a pooler in session mode.',
  );
}

async function readHolder(connection: PostgresConnection, stateId: number): Promise<Holder | undefined> {
  const [row] = await connection.query(
    'SELECT pid, host, since FROM vdcsync.owners WHERE state_id = $1',
    stateId,
  );
  return row && { pid: Number(row.pid), host: String(row.host), since: Number(row.since) };
}
