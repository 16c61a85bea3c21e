import type { StateStore } from '../../src/core/state.ts';
import { openPostgresState } from '../../src/state/postgres.ts';
import { postgresServer } from '../support/postgres.ts';
import { stateConformance } from './state.ts';
import type { StateHarness } from './state-checks.ts';
import { stateEquivalence } from './state-equivalence.ts';
import { sampleBinding, sampleIntent, web } from './state-samples.ts';

const server = postgresServer();

stateConformance('postgres', postgresHarness('one'));
stateEquivalence('postgres', postgresHarness('any'), 40);

/** Every state has a name of its own in one database. */
function postgresHarness(prefix: string): Required<StateHarness> {
  const stores: StateStore[] = [];
  const names = new Map<StateStore, string>();
  let count = 0;
  const open = async (name: string, mode: 'write' | 'read') => {
    const store = await openPostgresState(server.url(), { mode, now: 1, lineage: 'born', name });
    stores.push(store);
    names.set(store, name);
    return store;
  };
  const newName = () => {
    count += 1;
    return `${prefix}-${count}`;
  };
  return {
    create: () => open(newName(), 'write'),
    async reopen(store) {
      await store.close();
      return open(names.get(store) ?? '', 'write');
    },
    async readOnly() {
      const name = newName();
      const store = await open(name, 'write');
      await store.claimProject(4711);
      await store.change([{ type: 'bind', binding: sampleBinding(web) }], 5);
      await store.beginIntent(sampleIntent('a', web));
      await store.close();
      return open(name, 'read');
    },
    async cleanUp() {
      for (const store of stores.splice(0)) await store.close();
      names.clear();
    },
  };
}
