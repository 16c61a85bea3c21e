import { isIPv4 } from 'node:net';
import type pg from 'pg';
import { StateError } from '../core/errors.ts';

/**
 * A state decides what is bought and deleted, and its URL holds a password. So a connection
 * to another machine needs TLS with a certificate that is checked for that machine's name.
 *
 * Looks at what the driver makes of URL and environment (`PGHOST`, `PGSSLMODE`) and not at
 * their text, so that no spelling gets by.
 *
 * @throws StateError where the server is on another machine and would not be verified.
 */
export function refuseUnverified(client: pg.Client, label: string): void {
  const { host, ssl } = client as { readonly host: string; readonly ssl: unknown };
  if (isThisMachine(host) || verifiesFully(ssl)) return;
  throw new StateError(
    `The state ${label} is on another machine, and nothing would verify that machine. ` +
      'Whoever is on the way to it could read the password and change the state. ' +
      'Add sslmode=verify-full to the URL, and sslrootcert=FILE where the certificate authority is your own. ' +
      'To accept the risk instead, add allow_insecure=true to the URL.',
  );
}

/** By a Unix socket or over loopback. */
function isThisMachine(host: string): boolean {
  return (
    host.startsWith('/') ||
    host === 'localhost' ||
    host === '::1' ||
    (isIPv4(host) && host.startsWith('127.'))
  );
}

/** The driver's settings of TLS, as Node's `tls.connect` takes them: what is left out is checked. */
function verifiesFully(ssl: unknown): boolean {
  if (ssl === true) return true;
  if (typeof ssl !== 'object' || ssl === null) return false;
  const { rejectUnauthorized, checkServerIdentity } = ssl as Record<string, unknown>;
  return rejectUnauthorized !== false && checkServerIdentity === undefined;
}
