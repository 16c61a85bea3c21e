import { StateError } from '../core/errors.ts';
import type { StateStore } from '../core/state.ts';
import { memoryState } from './memory.ts';
import { type OpenSqliteOptions, openSqliteState } from './sqlite.ts';

export type OpenStateOptions = OpenSqliteOptions;

/**
 * Opens the state that a user named: a path, or `:memory:` for one that ends with the process.
 *
 * @throws StateError where it cannot be used; see `openSqliteState`.
 */
export async function openState(location: string, options: OpenStateOptions): Promise<StateStore> {
  if (location === ':memory:') {
    return memoryState({ createdAt: options.now, lineage: options.lineage, mode: options.mode });
  }
  if (/^postgres(ql)?:\/\//i.test(location)) {
    // The URL may hold a password, so it is not repeated.
    throw new StateError(
      'PostgreSQL is not available as the state in this version. Name a file with --state or VDCSYNC_STATE.',
    );
  }
  if (location.trim() === '' || location.includes('\0')) {
    throw new StateError('The state needs a path. Name a file with --state or VDCSYNC_STATE.');
  }
  return openSqliteState(location, options);
}
