import { afterAll, describe, expect } from 'vitest';
import type { StateStore } from '../../src/core/state.ts';
import { openPostgresState } from '../../src/state/postgres.ts';
import { PostgresSessions, type Replica } from '../../src/state/postgres-sessions.ts';
import { parsePostgresUrl } from '../../src/state/postgres-url.ts';
import { postgresServer } from '../support/postgres.ts';
import { stateConformance } from './state.ts';
import { close, harnessOf, type StateHarness, seen } from './state-checks.ts';
import { stateEquivalence } from './state-equivalence.ts';
import { backend, sampleBinding, sampleIntent, web } from './state-samples.ts';

const server = postgresServer();
const urlOf = (name: string) => `${server.url()}?state=${name}`;

describe('src/state/sql-store.ts: PostgreSQL', () => {
  stateConformance('postgres', postgresHarness('one'));
  stateConformance('postgres, beside states of other projects on the same connection', neighbouredHarness());
  stateEquivalence('postgres', postgresHarness('any'), 20);
});

/**
 * In one database with two others that are owned all the time and hold the same keys, ids, budgets and notes. They have to
 * be after all tests what they were before.
 */
function neighbouredHarness(): StateHarness {
  let shared: Replica | undefined;
  const replica = () => {
    shared ??= {
      id: 'own',
      isAlive: () => true,
      sessions: new PostgresSessions(parsePostgresUrl(server.url()), 1),
    };
    return shared;
  };
  const harness = postgresHarness('between', replica);
  const neighbours: { readonly store: StateStore; readonly name: string; readonly before: unknown }[] = [];
  // By a reader: what an owner has read it need not read again.
  const inDatabase = async (name: string) => {
    const reader = await openPostgresState(urlOf(name), { mode: 'read', now: 1, lineage: name });
    const all = await everything(reader);
    await reader.close();
    return all;
  };
  const settle = async (name: string, projectId: number) => {
    const store = await openPostgresState(urlOf(name), {
      ...{ mode: 'write', now: 1, lineage: name },
      replica: replica(),
    });
    await store.claimProject(projectId);
    await store.change([{ type: 'release', key: web, gone: true, reason: 'an earlier one' }], 4);
    await store.change([{ type: 'bind', binding: sampleBinding(web, { id: name }) }], 5);
    // What the suite calls its own.
    for (const id of ['a', 'b', 'c']) {
      await store.beginIntent(sampleIntent(id, backend));
      await close(store, id, { text: 'of a neighbour' });
    }
    await store.beginIntent(sampleIntent('d', web));
    for (const note of ['name', 'a', 'service']) await store.putNote(note, name);
    neighbours.push({ store, name, before: await inDatabase(name) });
  };
  const beside = async <T>(open: () => Promise<T>): Promise<T> => {
    if (neighbours.length === 0) {
      await settle('before', 4_701);
      const opened = await open();
      await settle('behind', 4_702);
      return opened;
    }
    return open();
  };
  afterAll(async () => {
    expect(neighbours).toHaveLength(2);
    for (const { store, name, before } of neighbours) {
      expect(await inDatabase(name)).toEqual(before);
      expect(await everything(store)).toEqual(before);
      // It owns its state still.
      await store.putNote('name', 'written');
      await store.close();
    }
    await shared?.sessions?.close();
  });
  return {
    create: () => beside(harness.create),
    reopen: harness.reopen,
    readOnly: () => beside(harness.readOnly),
    cleanUp: harness.cleanUp,
  };
}

async function everything(store: StateStore): Promise<unknown> {
  return {
    seen: await seen(store),
    gone: await store.incarnation(web),
    attempt: await store.lastAttempt(web, 'create', '0'),
    notes: [await store.note('name'), await store.note('a'), await store.note('service')],
  };
}

/** Every state has a name of its own in one database. */
function postgresHarness(prefix: string, replica?: () => Replica) {
  let count = 0;
  return harnessOf(
    () => {
      count += 1;
      return `${prefix}-${count}`;
    },
    (name, options) =>
      openPostgresState(urlOf(name), {
        ...options,
        ...(replica === undefined ? {} : { replica: replica() }),
      }),
  );
}
