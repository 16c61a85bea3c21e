import { StateError } from '../core/errors.ts';
import type { StateStore } from '../core/state.ts';
import type { OpenPostgresOptions } from './postgres.ts';
import { isPostgresUrl, parsePostgresUrl } from './postgres-url.ts';
import { memoryState, type OpenSqliteOptions, openSqliteState } from './sqlite-driver.ts';

/** `replica` counts for PostgreSQL alone. */
export type OpenStateOptions = OpenSqliteOptions & Pick<OpenPostgresOptions, 'replica'>;

/**
 * Opens the state that a user named: a path, a `postgres://` URL, or `:memory:` for one
 * that ends with the process.
 *
 * @throws StateError where it cannot be used; see `openSqliteState` and `openPostgresState`.
 */
export async function openState(location: string, options: OpenStateOptions): Promise<StateStore> {
  if (location === ':memory:') {
    return memoryState({ createdAt: options.now, lineage: options.lineage, mode: options.mode });
  }
  // Taken for a path, a URL would make folders of a slip in the scheme, and of a password in it.
  if (/^\w+:\/\//.test(location)) {
    if (!isPostgresUrl(location))
      throw new StateError(
        'The state is a path or a postgres:// URL; other URLs are not known. Name one with --state or VDCSYNC_STATE.',
      );
    // Loaded only here: the driver would cost every start with a file its time.
    const { openPostgresState } = await import('./postgres.ts');
    return openPostgresState(location, options);
  }
  if (location.trim() === '' || location.includes('\0')) {
    throw new StateError('The state needs a path. Name a file with --state or VDCSYNC_STATE.');
  }
  return openSqliteState(location, options);
}

/** A location as it may be shown: of a URL without user, password and settings. */
export function shownLocation(location: string): string {
  return isPostgresUrl(location) ? parsePostgresUrl(location).label : location;
}
