import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'vitest';
import type { StateStore } from '../../src/core/state.ts';
import { memoryState, openSqliteState } from '../../src/state/sqlite-driver.ts';
import { stateConformance } from './state.ts';
import type { StateHarness } from './state-checks.ts';
import { stateEquivalence } from './state-equivalence.ts';
import { sampleBinding, sampleIntent, web } from './state-samples.ts';

describe('src/state/sqlite-driver.ts', () => {
  stateConformance('memory', {
    create: async () => memoryState({ createdAt: 1, lineage: 'born' }),
    readOnly: async () => memoryState({ createdAt: 1, lineage: 'born', mode: 'read' }),
  });
});

describe('src/state/sql-store.ts: SQLite', () => {
  stateConformance('sqlite', sqliteHarness());
  stateEquivalence('sqlite', sqliteHarness(), 60);
});

function sqliteHarness(): Required<StateHarness> {
  const folders: string[] = [];
  const stores: StateStore[] = [];
  const paths = new Map<StateStore, string>();
  const open = async (path: string, mode: 'write' | 'read') => {
    const store = await openSqliteState(path, { mode, now: 1, lineage: 'born' });
    stores.push(store);
    paths.set(store, path);
    return store;
  };
  const newPath = () => {
    const folder = mkdtempSync(join(tmpdir(), 'vdcsync-state-'));
    folders.push(folder);
    return join(folder, 'state.db');
  };
  return {
    create: () => open(newPath(), 'write'),
    async reopen(store) {
      await store.close();
      return open(paths.get(store) ?? '', 'write');
    },
    async readOnly() {
      const path = newPath();
      const store = await open(path, 'write');
      await store.claimProject(4711);
      await store.change([{ type: 'bind', binding: sampleBinding(web) }], 5);
      await store.beginIntent(sampleIntent('a', web));
      await store.close();
      return open(path, 'read');
    },
    async cleanUp() {
      for (const store of stores.splice(0)) await store.close();
      for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
      paths.clear();
    },
  };
}
