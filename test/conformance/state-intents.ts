import { expect } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { IntentPatch, StateChange, StateStore } from '../../src/core/state.ts';
import { close, expectRejected, expectReplayed, type StoreTest } from './state-checks.ts';
import {
  backend,
  later,
  sampleAnswer,
  sampleBinding,
  sampleIntent,
  web,
  webFirewall,
} from './state-samples.ts';

const unknown = {
  phase: 'unknown',
  unconfirmed: { why: 'server_error', question: { stage: 'asking', probes: 1 } },
  notSeenAt: 5,
} as const;
const blocked = { code: 'ambiguous', reason: 'two candidates', candidates: ['1', '2'] };

export function intents(test: StoreTest): void {
  test('an intent is read as written', async ({ store }) => {
    const intent = sampleIntent('a', web, { parentId: '9' }, unknown);
    await store.beginIntent(intent);
    expect(await store.openIntents()).toEqual([intent]);
    expect(await store.intents({ limit: 1 })).toEqual([intent]);
  });

  test('a key has at most one open intent, also if blocked; an id is used once; other intents do not change', async ({
    store,
  }) => {
    const second = sampleIntent('b', web, { verb: 'delete' });
    const begin = () => store.beginIntent(second);
    await store.beginIntent(sampleIntent('a', web));
    await expectRejected(store, begin, /servers\.web-1 has an open write \(create, .*, id a\)/);
    await store.beginIntent(sampleIntent('c', webFirewall));
    await store.updateIntent('a', { stage: { phase: 'blocked', blocked } }, later);
    await expectRejected(store, begin, /has an open write/);
    await close(store, 'a', { outcome: 'absent' });
    await begin();
    expect((await store.openIntents()).map(({ id }) => id)).toEqual(['c', 'b']);
    await expectRejected(store, () => store.beginIntent(sampleIntent('a', backend)), /intent a already/);
    for (const [id, message] of [
      ['a', /closed \(absent\)/],
      ['x', /no intent x/],
    ] as const) {
      await expectRejected(store, () => store.updateIntent(id, { sends: 2 }, later), message);
      await expectRejected(store, () => close(store, id), message);
    }
  });

  test('an intent cannot begin as closed, and cannot be closed by an update or without a time', async ({
    store,
  }) => {
    const stage = { phase: 'closed', outcome: 'done', closedAt: 1 } as const;
    const closed = sampleIntent('a', web, {}, stage);
    await expectRejected(store, () => store.beginIntent(closed), /cannot begin closed/);
    const timeless = sampleIntent('a', web, { createdAt: Number.NaN });
    await expectRejected(store, () => store.beginIntent(timeless), /no time/);
    await store.beginIntent(sampleIntent('a', web));
    await expectRejected(
      store,
      () => store.updateIntent('a', { stage } as unknown as IntentPatch, later),
      /closeIntent alone/,
    );
    await expectRejected(store, () => store.updateIntent('a', {}, Number.NaN), /no time/);
  });

  test('an update changes only the named fields, and a new stage replaces the fields of the previous stage', async ({
    store,
  }) => {
    await store.beginIntent(sampleIntent('a', web, {}, unknown));
    const stages = [
      { phase: 'blocked', blocked, unconfirmed: unknown.unconfirmed },
      { phase: 'accepted', answer: sampleAnswer, notSeenAt: 5 },
      { phase: 'waiting' },
    ] as const;
    for (const stage of stages) {
      await store.updateIntent('a', { sends: 2, stage }, later);
      expect(await store.openIntents()).toEqual([sampleIntent('a', web, { sends: 2 }, stage)]);
      await store.updateIntent('a', { sends: 3 }, later);
      expect(await store.openIntents()).toEqual([sampleIntent('a', web, { sends: 3 }, stage)]);
    }
  });
}

export function closing(test: StoreTest): void {
  test('closing an intent records the outcome and applies the changes', async ({ store }) => {
    await store.beginIntent(
      sampleIntent('a', web, {}, { phase: 'accepted', answer: sampleAnswer, notSeenAt: 5 }),
    );
    await close(store, 'a', { text: 'task 5', changes: [{ type: 'bind', binding: sampleBinding(web) }] });
    expect(await store.openIntents()).toEqual([]);
    const closed = { phase: 'closed', outcome: 'done', closedAt: later } as const;
    expect(await store.intents({ limit: 5 })).toEqual([
      sampleIntent('a', web, { detail: 'task 5' }, { ...closed, answer: sampleAnswer }),
    ]);
    expect(await store.bindings()).toEqual([sampleBinding(web)]);
  });

  test('closing is atomic: if a part cannot be recorded, the intent stays open', async ({ store }) => {
    await store.beginIntent(sampleIntent('a', web));
    const changes: StateChange[] = [
      { type: 'release', key: web, gone: true, reason: 'replaced' },
      { type: 'bind', binding: sampleBinding(web, { applied: 1n as unknown as number }) },
    ];
    await expectRejected(store, () => close(store, 'a', { changes }), /cannot be recorded/);
    expect(await store.incarnation(web)).toBe(0);
    await expectRejected(store, () => close(store, 'a', { at: Number.NaN }), /no time/);
  });

  test('the journal lists every step, oldest first, and its replay gives the state', async ({ store }) => {
    await store.beginIntent(sampleIntent('a', web));
    await store.updateIntent('a', { sends: 2, lastSentAt: later }, later);
    const accepted = { phase: 'accepted', answer: sampleAnswer } as const;
    await store.updateIntent('a', { stage: accepted, requestId: 'r' }, later + 1, 'late');
    await store.updateIntent('a', { stage: { ...accepted, notSeenAt: later + 2 } }, later + 2);
    await close(store, 'a', { changes: [{ type: 'bind', binding: sampleBinding(web) }], at: later + 3 });
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
    expect(journal[2]?.data).toEqual({ patch: { stage: accepted, requestId: 'r' }, note: 'late' });
    await expectReplayed(store);
  });
}

export function looking(test: StoreTest): void {
  test('the last attempt is the highest recorded attempt, open or closed, of the key, verb and incarnation', async ({
    store,
  }) => {
    const last = () => store.lastAttempt(web, 'create', '0');
    expect(await last()).toBe(-1);
    await store.beginIntent(sampleIntent('a', web, { attempt: 2 }));
    expect(await last()).toBe(2);
    await close(store, 'a', { outcome: 'failed' });
    await store.beginIntent(sampleIntent('b', web, { attempt: 1 }));
    expect(await last()).toBe(2);
    expect(await store.lastAttempt(web, 'create', '1')).toBe(-1);
    expect(await store.lastAttempt(web, 'delete', '0')).toBe(-1);
    expect(await store.lastAttempt(backend, 'create', '0')).toBe(-1);
  });

  test('an attempt with the outcome `void` may be used again', async ({ store }) => {
    const last = () => store.lastAttempt(web, 'create', '0');
    await store.beginIntent(sampleIntent('a', web, { attempt: 0 }));
    await close(store, 'a', { outcome: 'void' });
    expect(await last()).toBe(-1);
    await store.beginIntent(sampleIntent('b', web, { attempt: 0 }));
    expect(await last()).toBe(0);
    await close(store, 'b', { outcome: 'absent' });
    expect(await last()).toBe(0);
  });

  test('lists the latest intents, newest first, and the latest journal entries, oldest first', async ({
    store,
  }) => {
    const keys = ['a', 'b', 'c'].map((name) => `networks.${name}` as ResourceKey);
    for (const key of keys) await store.beginIntent(sampleIntent(`of ${key}`, key));
    await close(store, 'of networks.a');
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
