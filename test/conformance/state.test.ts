import { join } from 'node:path';
import { describe } from 'vitest';
import { openSqliteState } from '../../src/state/sqlite-driver.ts';
import { newFolder } from '../support/folders.ts';
import { stateConformance } from './state.ts';
import { harnessOf } from './state-checks.ts';
import { stateEquivalence } from './state-equivalence.ts';

describe('src/state/sql-store.ts: SQLite', () => {
  stateConformance('sqlite', sqliteHarness());
  stateEquivalence('sqlite', sqliteHarness(), 60);
});

function sqliteHarness() {
  return harnessOf(() => join(newFolder('vdcsync-state-'), 'state.db'), openSqliteState);
}
