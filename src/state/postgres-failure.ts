import { StateError } from '../core/errors.ts';

/**
 * Turns an error of PostgreSQL or of the connection into a message: the cause, the state, and a remedy. `doing`: "be
 * written".
 */
export function postgresFailure(error: unknown, label: string, doing: string): StateError {
  if (error instanceof StateError) return error;
  return new StateError(`The state ${label} could not ${doing}: ${explain(error)}`, { cause: error });
}

/** The SQLSTATE of an answer from the server; `undefined` where it is not the server that speaks. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('severity' in error) || !('code' in error)) return undefined;
  return String(error.code);
}

/** Is the connection gone with this error? Without it the lock is gone, too. */
export function endsConnection(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined) return true;
  return state.startsWith('08') || severityOf(error) === 'FATAL' || severityOf(error) === 'PANIC';
}

function severityOf(error: unknown): string {
  return error instanceof Error && 'severity' in error ? String(error.severity) : '';
}

function explain(error: unknown): string {
  const said = saidBy(error);
  const state = sqlState(error);
  if (state === undefined) return explainNetwork(error, said);
  switch (state) {
    case '28000':
    case '28P01':
      return `the server refuses user or password (${said}). Check them in the URL, or in PGUSER and PGPASSWORD.`;
    case '3D000':
      return `the database does not exist (${said}). Create it first; the tables in it are made by vdcsync.`;
    case '42501':
      return `the user lacks a right (${said}). It needs to own the schema vdcsync, or to be allowed to create it.`;
    case '25006':
      return `the server is read-only (${said}). Name the primary, not a standby. If it is the primary, its disk may be full: free some space, then set default_transaction_read_only to off.`;
    case '53100':
      return `the server's disk is full (${said}). Free some space; nothing was recorded.`;
    case '53300':
      return `the server has no connection free (${said}).`;
    case '57P01':
    case '57P02':
    case '57P03':
      return `the server is stopping or starting (${said}). Start again when it is up.`;
    case '55P03':
    case '57014':
      return `it took too long (${said}). Nothing was recorded. Check for another session that holds locks in the schema vdcsync.`;
    default:
      return `${said} (SQLSTATE ${state}).`;
  }
}

function explainNetwork(error: unknown, said: string): string {
  if (/password/i.test(said)) {
    return `the server asks for a password (${said}). Put it into the URL or into PGPASSWORD.`;
  }
  const call = error instanceof Error && 'syscall' in error ? error.syscall : undefined;
  if (call === 'open') return `a file that the URL names cannot be read (${said}).`;
  if (/certificate|SSL|TLS|altnames/i.test(said)) {
    return `no trusted TLS connection could be made (${said}). Check sslmode and sslrootcert in the URL.`;
  }
  if (call !== undefined || error instanceof AggregateError || /timeout|terminated/i.test(said)) {
    return `the server cannot be reached, or has gone (${said}). Check host and port, and that it runs.`;
  }
  return `${said}.`;
}

/** An error of several addresses has no message of its own. */
function saidBy(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message !== '') return error.message.replace(/\.$/, '');
  const parts = error instanceof AggregateError ? error.errors.map(saidBy) : [];
  return parts.join('; ') || ('code' in error ? String(error.code) : error.name);
}
