import { StateError } from '../core/errors.ts';

/** A state inside a PostgreSQL database, as a URL names it. */
export interface PostgresLocation {
  /** For the driver: the URL with everything that is in it. Holds the password. */
  readonly connectionString: string;
  /** Which of the states in the database. */
  readonly state: string;
  /** For messages and reports: without user, password and settings. */
  readonly label: string;
  /** The operator accepts a connection to another machine that is not verified (`allow_insecure=true`). */
  readonly allowInsecure: boolean;
}

/** The state that a URL without `?state=` means. */
export const defaultStateName = 'default';

/** A location as it may be shown: of a URL without user, password and settings. */
export function shownLocation(location: string): string {
  return isPostgresUrl(location) ? parsePostgresUrl(location).label : location;
}

/** Does a location name a PostgreSQL database? */
export function isPostgresUrl(location: string): boolean {
  return /^postgres(ql)?:\/\//i.test(location);
}

/**
 * Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE?state=NAME`. Everything else in the query is for the driver:
 * `sslmode`, `sslrootcert`, `sslcert`, `sslkey`, `host` (a folder with a socket), `options`. The exception is
 * `allow_insecure`, see `PostgresLocation`.
 *
 * No message repeats the URL: an unreadable part may be a password in the wrong place.
 *
 * @throws StateError if the text is not a URL of this form.
 */
export function parsePostgresUrl(text: string): PostgresLocation {
  if (!isPostgresUrl(text))
    throw new StateError(
      'The state is a path or a postgres:// URL; other URLs are not known. Name one with --state or VDCSYNC_STATE.',
    );
  const url = readUrl(text);
  // The last one counts: it may have been added to a URL that names one.
  const state = url.searchParams.getAll('state').at(-1) ?? defaultStateName;
  if (!/^[\w.-]{1,100}$/.test(state)) {
    throw new StateError(
      "The state's name in the PostgreSQL URL (?state=NAME) may hold letters, digits, '.', '_' and '-', up to 100.",
    );
  }
  const allowInsecure = url.searchParams.get('allow_insecure') === 'true';
  return { connectionString: withStrictTls(text, url), state, label: labelOf(url, state), allowInsecure };
}

function readUrl(text: string): URL {
  const refused = new StateError(
    'The PostgreSQL URL of the state cannot be read. Its form is postgres://USER:PASSWORD@HOST:5432/DATABASE?state=NAME; ' +
      'characters such as / ? # @ in a password are written as %2F %3F %23 %40.',
  );
  // A user without a host, as `?host=FOLDER` allows, is no URL to the standard.
  const url = URL.parse(text) ?? URL.parse(text.replace('@/', '@localhost/'));
  if (url === null) throw refused;
  // Behind the host an @ is the rest of a password that was not encoded: the label would show it.
  if (/@/.test(url.pathname + url.search) || url.hash !== '') throw refused;
  return url;
}

function labelOf(url: URL, state: string): string {
  const socket = url.searchParams.get('host');
  const host = socket === null ? url.host || 'localhost' : '';
  const query = [
    ...(socket === null ? [] : [`host=${socket}`]),
    ...(state === defaultStateName ? [] : [`state=${state}`]),
  ];
  return `postgres://${host}${url.pathname}${query.length === 0 ? '' : `?${query.join('&')}`}`;
}

/**
 * The driver treats `prefer`, `require` and `verify-ca` as `verify-full`, and warns that a later version will not. The
 * explicit value keeps the check of the certificate, and avoids the warning.
 */
function withStrictTls(text: string, url: URL): string {
  if (url.searchParams.get('uselibpqcompat') === 'true') return text;
  return text.replace(/([?&]sslmode=)(prefer|require|verify-ca)(?=&|$)/, '$1verify-full');
}
