import { isIPv4 } from 'node:net';
import type pg from 'pg';
import { StateError } from '../core/errors.ts';

/**
 * A state decides which resources are bought and deleted, and its URL holds a password. So a connection to another
 * machine needs TLS with a certificate that is checked for that machine's name.
 *
 * The check reads the driver's result from URL and environment (`PGHOST`, `PGSSLMODE`) and not their text, so that no
 * spelling escapes it.
 *
 * @throws StateError if the server is on another machine and would not be verified.
 */
export function refuseUnverified(client: pg.Client, label: string): void {
  const { host, ssl } = client as { readonly host: string; readonly ssl: unknown };
  if (isThisMachine(host) || verifiesFully(ssl)) return;
  throw new StateError(
    `The state ${label} is on another machine, and the connection does not verify that machine. ` +
      'An attacker on the network could read the password and change the state. ' +
      'Add sslmode=verify-full to the URL, and sslrootcert=FILE if you use your own certificate authority. ' +
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

/**
 * Whether the driver's TLS settings, in the form of Node's `tls.connect`, check everything. Missing settings mean a
 * full check.
 */
function verifiesFully(ssl: unknown): boolean {
  if (ssl === true) return true;
  if (typeof ssl !== 'object' || ssl === null) return false;
  const { rejectUnauthorized, checkServerIdentity } = ssl as Record<string, unknown>;
  return rejectUnauthorized !== false && checkServerIdentity === undefined;
}
