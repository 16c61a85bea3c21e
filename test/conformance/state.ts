import { afterEach, test as base, describe, expect } from 'vitest';
import { StateError } from '../../src/core/errors.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import { bindings } from './state-bindings.ts';
import {
  close,
  expectRejected,
  expectReplayed,
  type StateHarness,
  type StoreTest,
  seen,
  storeTest,
} from './state-checks.ts';
import { claims } from './state-claims.ts';
import { closing, intents, looking } from './state-intents.ts';
import { pruned } from './state-prune.ts';
import { backend, later, sampleAnswer, sampleBinding, sampleIntent, web } from './state-samples.ts';

/** What every store has to do, whatever it keeps its state in. */
export function stateConformance(name: string, { create, reopen, readOnly, cleanUp }: StateHarness): void {
  const test = storeTest(create);
  describe(`state conformance: ${name}`, () => {
    afterEach(() => cleanUp());
    identity(test, reopen);
    bindings(test);
    claims(test);
    intents(test);
    closing(test);
    pruned(test);
    looking(test);
    notes(test);
    readingOnly(readOnly);
    ending(test);
    reopening(test, reopen);
  });
}

type Reopen = StateHarness['reopen'];

function identity(test: StoreTest, reopen: Reopen): void {
  test('a new state has a lineage, no project and no records', async ({ store }) => {
    expect(await store.info()).toEqual({
      lineage: 'born',
      serial: 0,
      createdAt: 1,
      projectId: null,
      service: null,
    });
    expect(await store.bindings()).toEqual([]);
    expect(await store.claims()).toEqual([]);
    expect(await store.openIntents()).toEqual([]);
    expect(await store.journal({ limit: 10 })).toEqual([]);
  });

  test('the first claim binds the state to a project, and a second claim changes nothing', async ({
    store,
  }) => {
    await store.claimProject(4711);
    await store.claimProject(4711);
    expect(await store.info()).toMatchObject({ projectId: 4711, serial: 1 });
  });

  test("another project's claim is rejected", async ({ store }) => {
    await store.claimProject(4711);
    await expectRejected(store, () => store.claimProject(4712), /belongs to project 4711, not 4712/);
  });

  test('of two concurrent claims, one is rejected', async ({ store }) => {
    const claims = await Promise.allSettled([store.claimProject(1), store.claimProject(2)]);
    expect(claims.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(await store.info()).toMatchObject({ projectId: 1, serial: 1 });
  });

  test('the first claim binds the state to an API, and a second claim of the same API changes nothing', async ({
    store,
  }) => {
    await store.claimService('emulator');
    await store.claimService('emulator');
    await expectRejected(
      store,
      () => store.claimService('api'),
      /belongs to the API `emulator`, not to `api`/,
    );
    expect(await (await reopen(store)).info()).toMatchObject({ service: 'emulator', serial: 1 });
  });

  test('every change increases the serial by one, and reads do not', async ({ store }) => {
    const serials: number[] = [];
    const note = async () => serials.push((await store.info()).serial);
    await store.claimProject(1);
    await note();
    await store.change([{ type: 'bind', binding: sampleBinding(web) }], later);
    await note();
    await store.beginIntent(sampleIntent('a', backend));
    await note();
    await store.updateIntent('a', { stage: { phase: 'accepted', answer: sampleAnswer } }, later);
    await note();
    await close(store, 'a');
    await note();
    await store.putNote('n', 1);
    await note();
    await seen(store);
    await store.change([], later);
    await note();
    expect(serials).toEqual([1, 2, 3, 4, 5, 6, 6]);
  });
}

function notes(test: StoreTest): void {
  test('a note can be any JSON, and the last value replaces earlier values', async ({ store }) => {
    expect(await store.note('tasks')).toBeUndefined();
    await store.putNote('tasks', null);
    expect(await store.note('tasks')).toBeNull();
    await store.putNote('tasks', { create_server: [1.5, 'x', { y: [] }] });
    expect(await store.note('tasks')).toEqual({ create_server: [1.5, 'x', { y: [] }] });
    await expectRejected(store, () => store.putNote('tasks', undefined as unknown as null), /no value/);
  });
}

function readingOnly(readOnly: StateHarness['readOnly']): void {
  base('a state opened for reading rejects every change and answers every question', async () => {
    const store = await readOnly();
    const refused = /opened for reading only/;
    await expectRejected(store, () => store.claimProject(1), refused);
    await expectRejected(store, () => store.change([], later), refused);
    await expectRejected(store, () => store.beginIntent(sampleIntent('z', web)), refused);
    await expectRejected(store, () => store.updateIntent('z', {}, later), refused);
    await expectRejected(store, () => close(store, 'z'), refused);
    await expectRejected(store, () => store.putNote('n', 1), refused);
    expect(await store.note('never put')).toBeUndefined();
    expect(await store.incarnation('networks.never' as ResourceKey)).toBe(0);
    expect(await store.lastAttempt('networks.never' as ResourceKey, 'create', '0')).toBe(-1);
  });
}

function ending(test: StoreTest): void {
  test('a closed store accepts only another close', async ({ store }) => {
    await store.close();
    await store.close();
    await expect(store.info()).rejects.toThrow(StateError);
    await expect(store.bindings()).rejects.toThrow(/closed already/);
    await expect(store.putNote('n', 1)).rejects.toThrow(/closed already/);
  });
}

function reopening(test: StoreTest, reopen: Reopen): void {
  test('a reopened state has all its records and accepts changes', async ({ store: first }) => {
    let store = first;
    await store.claimProject(4711);
    await store.beginIntent(sampleIntent('a', web, { attempt: 3 }));
    await store.updateIntent('a', { stage: { phase: 'accepted', answer: sampleAnswer } }, later);
    await store.change(
      [
        { type: 'bind', binding: sampleBinding(backend) },
        { type: 'release', key: web, gone: true, reason: 'deleted' },
      ],
      later,
    );
    await store.putNote('n', { deep: [1] });
    const before = await seen(store);

    store = await reopen(store);
    expect(await seen(store)).toEqual(before);
    expect(await store.note('n')).toEqual({ deep: [1] });
    expect(await store.incarnation(web)).toBe(1);
    expect(await store.lastAttempt(web, 'create', '0')).toBe(3);
    await expectRejected(store, () => store.beginIntent(sampleIntent('b', web)), /has an open write/);
    await expectRejected(store, () => store.claimProject(1), /belongs to project 4711/);

    await close(store, 'a');
    store = await reopen(store);
    expect(await store.openIntents()).toEqual([]);
    await expectReplayed(store);
  });
}
