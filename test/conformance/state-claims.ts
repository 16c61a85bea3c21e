import { expect } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { close, expectRejected, expectReplayed, type StoreTest } from './state-checks.ts';
import { later, sampleBinding, sampleClaim, sampleIntent, web } from './state-samples.ts';

const db = 'servers.db' as ResourceKey;
const bind = (key: ResourceKey, id: string) =>
  ({ type: 'bind', binding: sampleBinding(key, { id }) }) as const;
const claim = (id: string, more: Parameters<typeof sampleClaim>[1] = {}) =>
  ({ type: 'claim', claim: sampleClaim(id, more) }) as const;
const unclaim = (id: string) =>
  ({ type: 'unclaim', object: { kind: 'server', id }, reason: 'gone' }) as const;

export function claims(test: StoreTest): void {
  test('a claim is read as written, and a second claim of the object replaces it', async ({ store }) => {
    await store.change([claim('18'), claim('17', { firstMissingAt: 5 })], later);
    expect(await store.claims()).toEqual([sampleClaim('17', { firstMissingAt: 5 }), sampleClaim('18')]);
    const holder = { is: 'released', by: 'file', formerKey: web } as const;
    await store.change([claim('17', { holder }), unclaim('18')], later);
    expect(await store.claims()).toEqual([sampleClaim('17', { holder })]);
    expect(await store.bindings()).toEqual([]);
    await expectReplayed(store);
  });

  test('an object has one holder: a second key, or a claim next to a binding, is rejected', async ({
    store,
  }) => {
    await store.change([bind(web, '17'), claim('18')], later);
    await expectRejected(store, () => store.change([bind(db, '17')], later), /server 17 is bound to servers/);
    await expectRejected(store, () => store.change([claim('17')], later), /server 17 is bound to servers/);
    await expectRejected(store, () => store.change([bind(db, '18')], later), /server 18 is claimed already/);
    await store.beginIntent(sampleIntent('a', db));
    const bound = () => close(store, 'a', { changes: [bind(db, '17')] });
    await expectRejected(store, bound, /server 17 is bound to servers/);
  });

  test('an object gets another holder in one call, and when an intent ends', async ({ store }) => {
    const release = (key: ResourceKey) => ({ type: 'release', key, gone: false, reason: 'because' }) as const;
    await store.change([bind(web, '17')], later);
    await store.change([release(web), claim('17')], later);
    expect([await store.bindings(), await store.claims()]).toEqual([[], [sampleClaim('17')]]);
    await store.beginIntent(sampleIntent('a', db));
    await close(store, 'a', { changes: [unclaim('17'), bind(db, '17')] });
    expect([await store.bindings(), await store.claims()]).toEqual([[sampleBinding(db)], []]);
    await store.change([release(db), bind(web, '17'), bind(web, '18'), claim('17')], later);
    expect(await store.bindings()).toEqual([sampleBinding(web, { id: '18' })]);
    expect(await store.claims()).toEqual([sampleClaim('17')]);
    await expectReplayed(store);
  });

  test('an object inside a server is identified by its server, and an address by its id alone', async ({
    store,
  }) => {
    const inside = (kind: 'backup' | 'ip', parentId: string) => claim('1', { kind, parentId });
    await store.change([inside('backup', '17'), inside('backup', '18')], later);
    expect(await store.claims()).toHaveLength(2);
    await store.change([inside('ip', '17'), inside('ip', '18')], later);
    expect((await store.claims()).filter(({ kind }) => kind === 'ip')).toHaveLength(1);
  });

  test('pruning keeps the last claim of an object, and nothing of an ended claim', async ({ store }) => {
    await store.change([claim('17'), claim('18')], 1);
    await store.change([claim('17', { firstMissingAt: 5 }), unclaim('18')], 2);
    await store.prune(100);
    expect((await store.journal({ limit: 10 })).map(({ event, key }) => [event, key])).toEqual([
      ['claimed', 'server 17'],
    ]);
    await expectReplayed(store);
    await store.change([], later);
    expect(await store.claims()).toEqual([sampleClaim('17', { firstMissingAt: 5 })]);
  });
}
