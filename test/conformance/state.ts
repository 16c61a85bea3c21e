import { afterEach, describe, expect, test } from 'vitest';
import { StateError } from '../../src/core/errors.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { StateChange, StateStore } from '../../src/core/state.ts';
import { replay } from '../../src/state/replay.ts';
import { backend, later, sampleBinding, sampleIntent, web, webFirewall } from './state-samples.ts';

/** How the suite gets at stores of one sort. */
export interface StateHarness {
  /** A new and empty state, for writing. Born at 1 with the lineage `born`. */
  create(): Promise<StateStore>;
  /** Closes the store and opens the same state again; left out where it ends with its process. */
  reopen?(store: StateStore): Promise<StateStore>;
  /** A state, empty or not, opened for reading only. */
  readOnly(): Promise<StateStore>;
  /** Runs after every test. */
  cleanUp?(): Promise<void>;
}

/** What every store has to do, whatever it keeps its state in. */
export function stateConformance(name: string, harness: StateHarness): void {
  describe(`state conformance: ${name}`, () => {
    afterEach(async () => harness.cleanUp?.());
    identity(harness);
    bindings(harness);
    intents(harness);
    closing(harness);
    looking(harness);
    budgetsAndNotes(harness);
    readingOnly(harness);
    ending(harness);
    if (harness.reopen !== undefined) reopening(harness, harness.reopen.bind(harness));
  });
}

const none: readonly StateChange[] = [];

/** All that can be seen of a store, to tell that a rejected call left no trace. */
async function seen(store: StateStore): Promise<unknown> {
  const everything = { limit: Number.POSITIVE_INFINITY };
  return {
    info: await store.info(),
    bindings: await store.bindings(),
    open: await store.openIntents(),
    intents: await store.intents(everything),
    journal: await store.journal(everything),
  };
}

async function expectRejected(
  store: StateStore,
  call: () => Promise<unknown>,
  message: RegExp,
): Promise<void> {
  const before = await seen(store);
  const error = await call().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StateError);
  expect((error as StateError).message).toMatch(message);
  expect(await seen(store)).toEqual(before);
}

function identity(harness: StateHarness): void {
  test('a new state has its lineage, no project and nothing in it', async () => {
    const store = await harness.create();
    expect(await store.info()).toEqual({ lineage: 'born', serial: 0, createdAt: 1, projectId: null });
    expect(await store.bindings()).toEqual([]);
    expect(await store.openIntents()).toEqual([]);
    expect(await store.journal({ limit: 10 })).toEqual([]);
  });

  test('the first claim ties it to a project, a second one of the same changes nothing', async () => {
    const store = await harness.create();
    await store.claimProject(4711);
    await store.claimProject(4711);
    expect(await store.info()).toMatchObject({ projectId: 4711, serial: 1 });
  });

  test("another project's claim is rejected", async () => {
    const store = await harness.create();
    await store.claimProject(4711);
    await expectRejected(store, () => store.claimProject(4712), /belongs to project 4711, not 4712/);
  });

  test('every change moves the serial on by one, and no read does', async () => {
    const store = await harness.create();
    const serials: number[] = [];
    const note = async () => serials.push((await store.info()).serial);
    await store.claimProject(1);
    await note();
    await store.change([{ type: 'bind', binding: sampleBinding(web) }], later);
    await note();
    await store.beginIntent(sampleIntent('a', backend));
    await note();
    await store.updateIntent('a', { phase: 'accepted' }, later);
    await note();
    await store.closeIntent('a', 'done', '', none, later);
    await note();
    await store.recordUse('writes', 5);
    await note();
    await store.putNote('n', 1);
    await note();
    await seen(store);
    await store.recentUse('writes', 6);
    await store.change(none, later);
    await note();
    expect(serials).toEqual([1, 2, 3, 4, 5, 6, 7, 7]);
  });
}

function bindings(harness: StateHarness): void {
  test('a binding comes back as it was given, sorted by key', async () => {
    const store = await harness.create();
    const full = sampleBinding(web, { parentId: '9', tainted: 'its task failed', protect: true, keep: true });
    await store.change([{ type: 'bind', binding: full }], later);
    await store.change([{ type: 'bind', binding: sampleBinding(backend, { kind: 'network' }) }], later);
    expect(await store.bindings()).toEqual([sampleBinding(backend, { kind: 'network' }), full]);
  });

  test('binding a key again replaces what it was bound to', async () => {
    const store = await harness.create();
    await store.change([{ type: 'bind', binding: sampleBinding(web, { tainted: 'x' }) }], later);
    await store.change([{ type: 'bind', binding: sampleBinding(web, { id: '18' }) }], later);
    expect(await store.bindings()).toEqual([sampleBinding(web, { id: '18' })]);
  });

  test('what the caller does to a value afterwards does not reach the state', async () => {
    const store = await harness.create();
    const applied = { cores: 4 };
    await store.change([{ type: 'bind', binding: sampleBinding(web, { applied }) }], later);
    applied.cores = 8;
    expect((await store.bindings())[0]?.applied).toEqual({ cores: 4 });
  });

  test('changes of one call are applied in their order', async () => {
    const store = await harness.create();
    const bind = { type: 'bind', binding: sampleBinding(web) } as const;
    const release = { type: 'release', key: web, gone: false, reason: 'moved' } as const;
    await store.change([bind, release], later);
    expect(await store.bindings()).toEqual([]);
    await store.change([release, bind], later);
    expect(await store.bindings()).toHaveLength(1);
  });

  test('releasing what still exists keeps the incarnation, releasing what is gone raises it', async () => {
    const store = await harness.create();
    expect(await store.incarnation(web)).toBe(0);
    await store.change([{ type: 'release', key: web, gone: false, reason: 'left alone' }], later);
    expect(await store.incarnation(web)).toBe(0);
    await store.change([{ type: 'release', key: web, gone: true, reason: 'deleted' }], later);
    expect(await store.incarnation(web)).toBe(1);
    await store.change([{ type: 'next_incarnation', key: web }], later);
    expect(await store.incarnation(web)).toBe(2);
    expect(await store.incarnation(backend)).toBe(0);
  });

  test('the next incarnation leaves the binding as it is', async () => {
    const store = await harness.create();
    await store.change([{ type: 'bind', binding: sampleBinding(web) }], later);
    await store.change([{ type: 'next_incarnation', key: web }], later);
    expect(await store.bindings()).toHaveLength(1);
  });

  test("releasing a server leaves its children's bindings and incarnations", async () => {
    const store = await harness.create();
    const firewall = sampleBinding(webFirewall, { kind: 'firewall', parentId: '17' });
    await store.change(
      [
        { type: 'bind', binding: sampleBinding(web) },
        { type: 'bind', binding: firewall },
      ],
      later,
    );
    await store.change([{ type: 'release', key: web, gone: true, reason: 'deleted' }], later);
    expect(await store.bindings()).toEqual([firewall]);
    expect(await store.incarnation(webFirewall)).toBe(0);
  });

  test('one change that cannot be recorded takes the others of its call with it', async () => {
    const store = await harness.create();
    const broken = sampleBinding(backend, { applied: 1n as unknown as number });
    const changes: StateChange[] = [
      { type: 'bind', binding: sampleBinding(web) },
      { type: 'bind', binding: broken },
    ];
    await expectRejected(store, () => store.change(changes, later), /cannot be recorded/);
    await expectRejected(store, () => store.change(changes.slice(0, 1), Number.NaN), /no time/);
  });
}

function intents(harness: StateHarness): void {
  test('an intent comes back as it was given', async () => {
    const store = await harness.create();
    const intent = sampleIntent('a', web, { parentId: '9', why: '503', facts: { id: 3 }, notSeenAt: 5 });
    await store.beginIntent(intent);
    expect(await store.openIntents()).toEqual([intent]);
    expect(await store.intents({ limit: 1 })).toEqual([intent]);
  });

  test('a key has one open intent at most', async () => {
    const store = await harness.create();
    await store.beginIntent(sampleIntent('a', web));
    const second = sampleIntent('b', web, { verb: 'delete' });
    await expectRejected(store, () => store.beginIntent(second), /servers\.web-1 has the open intent a/);
    await store.beginIntent(sampleIntent('c', webFirewall));
    await store.closeIntent('a', 'refused', '422', none, later);
    await store.beginIntent(second);
    expect((await store.openIntents()).map(({ id }) => id)).toEqual(['c', 'b']);
  });

  test('a blocked intent still keeps its key', async () => {
    const store = await harness.create();
    await store.beginIntent(sampleIntent('a', web));
    await store.updateIntent('a', { phase: 'blocked' }, later);
    await expectRejected(store, () => store.beginIntent(sampleIntent('b', web)), /open intent a/);
  });

  test('an id is used once', async () => {
    const store = await harness.create();
    await store.beginIntent(sampleIntent('a', web));
    await store.closeIntent('a', 'done', '', none, later);
    await expectRejected(store, () => store.beginIntent(sampleIntent('a', backend)), /intent a already/);
  });

  test('an intent does not begin closed, nor is it closed by an update, nor without a time', async () => {
    const store = await harness.create();
    const closed = sampleIntent('a', web, { phase: 'closed' });
    await expectRejected(store, () => store.beginIntent(closed), /cannot begin closed/);
    const timeless = sampleIntent('a', web, { createdAt: Number.NaN });
    await expectRejected(store, () => store.beginIntent(timeless), /no time/);
    await store.beginIntent(sampleIntent('a', web));
    await expectRejected(
      store,
      () => store.updateIntent('a', { phase: 'closed' }, later),
      /closeIntent alone/,
    );
    await expectRejected(store, () => store.updateIntent('a', {}, Number.NaN), /no time/);
  });

  test('an update changes the fields it names and clears those it says no longer hold', async () => {
    const store = await harness.create();
    const begun = sampleIntent('a', web, { why: '503', notSeenAt: 5 });
    await store.beginIntent(begun);
    const blocked = { code: 'ambiguous', reason: 'two candidates', candidates: ['1', '2'] };
    await store.updateIntent('a', { phase: 'blocked', blocked, clear: ['notSeenAt'] }, later);
    const { notSeenAt: _, ...rest } = begun;
    expect(await store.openIntents()).toEqual([{ ...rest, phase: 'blocked', blocked }]);
    await store.updateIntent('a', { phase: 'waiting', clear: ['blocked', 'why'] }, later);
    const { why: __, ...plain } = rest;
    expect(await store.openIntents()).toEqual([{ ...plain, phase: 'waiting' }]);
  });

  test('an unknown intent is neither updated nor closed', async () => {
    const store = await harness.create();
    await expectRejected(store, () => store.updateIntent('x', {}, later), /no intent x/);
    await expectRejected(store, () => store.closeIntent('x', 'done', '', none, later), /no intent x/);
  });

  test('a closed intent does not change any more', async () => {
    const store = await harness.create();
    await store.beginIntent(sampleIntent('a', web));
    await store.closeIntent('a', 'absent', 'seen twice', none, later);
    await expectRejected(store, () => store.updateIntent('a', { sends: 2 }, later), /closed \(absent\)/);
    await expectRejected(store, () => store.closeIntent('a', 'done', '', none, later), /closed \(absent\)/);
  });
}

function closing(harness: StateHarness): void {
  test('closing keeps the outcome and applies its changes', async () => {
    const store = await harness.create();
    await store.beginIntent(sampleIntent('a', web));
    await store.closeIntent('a', 'done', 'task 5', [{ type: 'bind', binding: sampleBinding(web) }], later);
    expect(await store.openIntents()).toEqual([]);
    const closed = { phase: 'closed', outcome: 'done', detail: 'task 5', closedAt: later } as const;
    expect(await store.intents({ limit: 5 })).toEqual([sampleIntent('a', web, closed)]);
    expect(await store.bindings()).toEqual([sampleBinding(web)]);
  });

  test('closing is one change: where a part cannot be recorded, the intent stays open', async () => {
    const store = await harness.create();
    await store.beginIntent(sampleIntent('a', web));
    const changes: StateChange[] = [
      { type: 'release', key: web, gone: true, reason: 'replaced' },
      { type: 'bind', binding: sampleBinding(web, { applied: 1n as unknown as number }) },
    ];
    const close = () => store.closeIntent('a', 'done', '', changes, later);
    await expectRejected(store, close, /cannot be recorded/);
    expect(await store.incarnation(web)).toBe(0);
    await expectRejected(store, () => store.closeIntent('a', 'done', '', none, Number.NaN), /no time/);
  });

  test('the journal tells every step, oldest first, and gives the state when replayed', async () => {
    const store = await harness.create();
    await store.beginIntent(sampleIntent('a', web));
    await store.updateIntent('a', { sends: 2, lastSentAt: later }, later);
    await store.updateIntent('a', { phase: 'accepted', requestId: 'r' }, later + 1, 'late');
    await store.updateIntent('a', { notSeenAt: later + 2 }, later + 2);
    await store.closeIntent('a', 'done', '', [{ type: 'bind', binding: sampleBinding(web) }], later + 3);
    await store.change([{ type: 'release', key: web, gone: true, reason: 'deleted' }], later + 4);
    await store.change([{ type: 'next_incarnation', key: web }], later + 5);
    const journal = await store.journal({ limit: 99 });
    expect(journal.map(({ at, event, intentId }) => [at - later, event, intentId])).toEqual([
      [sampleIntent('a', web).createdAt - later, 'begun', 'a'],
      [0, 'sent', 'a'],
      [1, 'answered', 'a'],
      [2, 'note', 'a'],
      [3, 'closed', 'a'],
      [3, 'bound', 'a'],
      [4, 'released', undefined],
      [5, 'note', undefined],
    ]);
    expect(journal[2]?.data).toEqual({ patch: { phase: 'accepted', requestId: 'r' }, note: 'late' });
    await expectReplayed(store);
  });
}

/** The journal, replayed, is the state. */
export async function expectReplayed(store: StateStore): Promise<void> {
  const everything = { limit: Number.POSITIVE_INFINITY };
  const {
    bindings: bound,
    openIntents,
    intents: all,
    incarnations,
  } = replay(await store.journal(everything));
  expect([...bound.values()].sort((a, b) => (a.key < b.key ? -1 : 1))).toEqual(await store.bindings());
  expect(openIntents).toEqual(await store.openIntents());
  expect([...all.values()].reverse()).toEqual(await store.intents(everything));
  for (const [key, gone] of incarnations) expect(await store.incarnation(key)).toBe(gone);
}

function looking(harness: StateHarness): void {
  test('the last attempt is the highest recorded, open or closed, of that key, verb and incarnation', async () => {
    const store = await harness.create();
    const last = () => store.lastAttempt(web, 'create', '0');
    expect(await last()).toBe(-1);
    await store.beginIntent(sampleIntent('a', web, { attempt: 2 }));
    expect(await last()).toBe(2);
    await store.closeIntent('a', 'failed', '', none, later);
    await store.beginIntent(sampleIntent('b', web, { attempt: 1 }));
    expect(await last()).toBe(2);
    expect(await store.lastAttempt(web, 'create', '1')).toBe(-1);
    expect(await store.lastAttempt(web, 'delete', '0')).toBe(-1);
    expect(await store.lastAttempt(backend, 'create', '0')).toBe(-1);
  });

  test('an attempt that ended void may be used again', async () => {
    const store = await harness.create();
    const last = () => store.lastAttempt(web, 'create', '0');
    await store.beginIntent(sampleIntent('a', web, { attempt: 0 }));
    await store.closeIntent('a', 'void', '', none, later);
    expect(await last()).toBe(-1);
    await store.beginIntent(sampleIntent('b', web, { attempt: 0 }));
    expect(await last()).toBe(0);
    await store.closeIntent('b', 'absent', '', none, later);
    expect(await last()).toBe(0);
  });

  test('intents come newest first, the journal oldest first, both limited to the newest', async () => {
    const store = await harness.create();
    const keys = ['a', 'b', 'c'].map((name) => `networks.${name}` as ResourceKey);
    for (const key of keys) await store.beginIntent(sampleIntent(`of ${key}`, key));
    await store.closeIntent('of networks.a', 'done', '', none, later);
    const ids = async (filter: Parameters<StateStore['intents']>[0]) =>
      (await store.intents(filter)).map(({ id }) => id);
    expect(await ids({ limit: 2 })).toEqual(['of networks.c', 'of networks.b']);
    expect(await ids({ limit: 9, key: 'networks.a' as ResourceKey })).toEqual(['of networks.a']);
    expect(await ids({ limit: 0 })).toEqual([]);
    const events = async (filter: Parameters<StateStore['journal']>[0]) =>
      (await store.journal(filter)).map(({ key, event }) => `${event} ${key}`);
    expect(await events({ limit: 2 })).toEqual(['begun networks.c', 'closed networks.a']);
    expect(await events({ limit: 9, key: 'networks.a' as ResourceKey })).toEqual([
      'begun networks.a',
      'closed networks.a',
    ]);
    expect(await events({ limit: 0 })).toEqual([]);
  });
}

function budgetsAndNotes(harness: StateHarness): void {
  test('uses are counted by bucket, oldest first, however they were recorded', async () => {
    const store = await harness.create();
    for (const at of [30, 10.5, 20, 20]) await store.recordUse('writes', at);
    await store.recordUse('reads', 15);
    expect(await store.recentUse('writes', 0)).toEqual([10.5, 20, 20, 30]);
    expect(await store.recentUse('writes', 20)).toEqual([20, 20, 30]);
    expect(await store.recentUse('reads', 0)).toEqual([15]);
    expect(await store.recentUse('other', 0)).toEqual([]);
  });

  test('uses before the time last asked for are forgotten at the next one, of that bucket alone', async () => {
    const store = await harness.create();
    for (const bucket of ['writes', 'reads']) {
      for (const at of [10, 20, 30]) await store.recordUse(bucket, at);
    }
    await store.recentUse('writes', 20);
    await store.recordUse('writes', 40);
    expect(await store.recentUse('writes', 0)).toEqual([20, 30, 40]);
    expect(await store.recentUse('reads', 0)).toEqual([10, 20, 30]);
    await expectRejected(store, () => store.recordUse('writes', Number.NaN), /no time/);
  });

  test('a note is any JSON, and the last one counts', async () => {
    const store = await harness.create();
    expect(await store.note('tasks')).toBeUndefined();
    await store.putNote('tasks', null);
    expect(await store.note('tasks')).toBeNull();
    await store.putNote('tasks', { create_server: [1.5, 'x', { y: [] }] });
    expect(await store.note('tasks')).toEqual({ create_server: [1.5, 'x', { y: [] }] });
    await expectRejected(store, () => store.putNote('tasks', undefined as unknown as null), /no value/);
  });
}

function readingOnly(harness: StateHarness): void {
  test('a state opened for reading rejects every change and answers every question', async () => {
    const store = await harness.readOnly();
    const refused = /opened for reading only/;
    await expectRejected(store, () => store.claimProject(1), refused);
    await expectRejected(store, () => store.change(none, later), refused);
    await expectRejected(store, () => store.beginIntent(sampleIntent('z', web)), refused);
    await expectRejected(store, () => store.updateIntent('z', {}, later), refused);
    await expectRejected(store, () => store.closeIntent('z', 'done', '', none, later), refused);
    await expectRejected(store, () => store.recordUse('writes', 1), refused);
    await expectRejected(store, () => store.putNote('n', 1), refused);
    expect(await store.recentUse('never used', 0)).toEqual([]);
    expect(await store.note('never put')).toBeUndefined();
    expect(await store.incarnation('networks.never' as ResourceKey)).toBe(0);
    expect(await store.lastAttempt('networks.never' as ResourceKey, 'create', '0')).toBe(-1);
  });
}

function ending(harness: StateHarness): void {
  test('a closed store can be closed again and does nothing else', async () => {
    const store = await harness.create();
    await store.close();
    await store.close();
    await expect(store.info()).rejects.toThrow(StateError);
    await expect(store.bindings()).rejects.toThrow(/closed already/);
    await expect(store.putNote('n', 1)).rejects.toThrow(/closed already/);
  });
}

function reopening(harness: StateHarness, reopen: (store: StateStore) => Promise<StateStore>): void {
  test('a state opened again is as it was left, and goes on', async () => {
    let store = await harness.create();
    await store.claimProject(4711);
    await store.beginIntent(sampleIntent('a', web, { attempt: 3 }));
    await store.updateIntent('a', { phase: 'accepted', taskId: '5' }, later);
    await store.change(
      [
        { type: 'bind', binding: sampleBinding(backend) },
        { type: 'release', key: web, gone: true, reason: 'deleted' },
      ],
      later,
    );
    await store.recordUse('writes', 10);
    await store.putNote('n', { deep: [1] });
    const before = await seen(store);

    store = await reopen(store);
    expect(await seen(store)).toEqual(before);
    expect(await store.recentUse('writes', 0)).toEqual([10]);
    expect(await store.note('n')).toEqual({ deep: [1] });
    expect(await store.incarnation(web)).toBe(1);
    expect(await store.lastAttempt(web, 'create', '0')).toBe(3);
    await expectRejected(store, () => store.beginIntent(sampleIntent('b', web)), /open intent a/);
    await expectRejected(store, () => store.claimProject(1), /belongs to project 4711/);

    await store.closeIntent('a', 'done', '', none, later);
    store = await reopen(store);
    expect(await store.openIntents()).toEqual([]);
    await expectReplayed(store);
  });
}
