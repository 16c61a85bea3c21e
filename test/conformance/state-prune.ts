import { expect } from 'vitest';
import type { Intent, StateStore } from '../../src/core/state.ts';
import { close, expectReplayed, type StoreTest } from './state-checks.ts';
import { backend, sampleBinding, sampleIntent, web, webFirewall } from './state-samples.ts';

const all = { limit: Number.POSITIVE_INFINITY };
const idsOf = async (store: StateStore) => (await store.intents(all)).map(({ id }) => id).reverse();

/** A write that ended at a moment. */
async function ended(store: StateStore, id: string, at: number, more: Partial<Intent> = {}): Promise<void> {
  const intent = sampleIntent(id, webFirewall, { verb: 'update', createdAt: at, ...more });
  await store.beginIntent(intent);
  const { key } = intent;
  const binding = sampleBinding(key, { id, boundAt: at });
  await close(store, id, { changes: intent.verb === 'delete' ? [] : [{ type: 'bind', binding }], at });
}

export function pruned(test: StoreTest): void {
  test('pruning keeps young records, and old records that decide the next key or show the origin of a resource', async ({
    store,
  }) => {
    await ended(store, 'made', 1, { key: web, verb: 'create' });
    await ended(store, 'again', 2, { key: web, verb: 'create', attempt: 1 });
    for (const attempt of [0, 1, 2]) await ended(store, `rule-${attempt}`, 3 + attempt, { attempt });
    await ended(store, 'young', 20, { attempt: 3 });
    const before = [await store.bindings(), await store.lastAttempt(webFirewall, 'update', '0')];

    expect(await store.prune(10)).toBeGreaterThan(0);

    expect(await idsOf(store)).toEqual(['again', 'young']);
    expect(await store.intents({ outcome: 'done', limit: 9 })).toHaveLength(2);
    expect([await store.bindings(), await store.lastAttempt(webFirewall, 'update', '0')]).toEqual(before);
    expect(await store.lastAttempt(web, 'create', '0')).toBe(1);
    await expectReplayed(store);
    expect(await store.prune(10)).toBe(0);
  });

  test('pruning keeps open records of any age, and every incarnation', async ({ store }) => {
    await store.beginIntent(sampleIntent('open', backend, { createdAt: 1 }));
    for (const at of [1, 2, 3]) {
      await store.change([{ type: 'bind', binding: sampleBinding(web, { boundAt: at }) }], at);
      await store.change([{ type: 'release', key: web, gone: true, reason: 'deleted' }], at);
    }
    await store.change([{ type: 'next_incarnation', key: backend }], 4);
    await store.prune(100);
    expect(await store.openIntents()).toHaveLength(1);
    expect([await store.incarnation(web), await store.incarnation(backend)]).toEqual([3, 1]);
    expect((await store.journal(all)).map(({ event }) => event)).toEqual([
      'begun',
      ...['released', 'released', 'released'],
      'note',
    ]);
    await expectReplayed(store);
    await close(store, 'open', { at: 5 });
    await expectReplayed(store);
  });

  test('only the journal has a proof, and pruning removes old proofs', async ({ store }) => {
    const request = { name: 'create_network', path: {}, body: { name: 'a' }, probe: 'proof' } as const;
    const proof = (idempotencyKey: string) =>
      ({ type: 'proof', key: backend, proof: { idempotencyKey, request } }) as const;
    await store.change([{ type: 'next_incarnation', key: backend }], 1);
    await store.change([proof('older')], 2);
    await store.change([proof('newer')], 200);
    expect(await store.intents({ limit: 9 })).toEqual([]);
    expect(await store.lastAttempt(backend, 'create', '1')).toBe(-1);
    const proofs = async () =>
      (await store.journal({ event: 'proof', key: backend, limit: 9 })).map(({ data }) => data);
    expect(await proofs()).toMatchObject([
      { proof: { idempotencyKey: 'older', request } },
      { proof: { idempotencyKey: 'newer' } },
    ]);
    expect(await store.prune(100)).toBe(1);
    expect(await proofs()).toMatchObject([{ proof: { idempotencyKey: 'newer' } }]);
    await expectReplayed(store);
  });
}
