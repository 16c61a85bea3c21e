import { expect } from 'vitest';
import type { StateChange } from '../../src/core/state.ts';
import { expectRejected, type StoreTest } from './state-checks.ts';
import { backend, later, sampleBinding, web } from './state-samples.ts';

export function bindings(test: StoreTest): void {
  test('bindings are read as written, sorted by key', async ({ store }) => {
    const full = sampleBinding(web, { parentId: '9', tainted: 'its task failed', protect: true, keep: true });
    await store.change([{ type: 'bind', binding: full }], later);
    await store.change([{ type: 'bind', binding: sampleBinding(backend, { kind: 'network' }) }], later);
    expect(await store.bindings()).toEqual([sampleBinding(backend, { kind: 'network' }), full]);
  });

  test('a later change of a value by the caller does not change the state', async ({ store }) => {
    const applied = { cores: 4 };
    await store.change([{ type: 'bind', binding: sampleBinding(web, { applied }) }], later);
    applied.cores = 8;
    expect((await store.bindings())[0]?.applied).toEqual({ cores: 4 });
  });

  test('if one change of a call cannot be recorded, none of its changes is', async ({ store }) => {
    const broken = sampleBinding(backend, { applied: 1n as unknown as number });
    const changes: StateChange[] = [
      { type: 'bind', binding: sampleBinding(web) },
      { type: 'bind', binding: broken },
    ];
    await expectRejected(store, () => store.change(changes, later), /cannot be recorded/);
    await expectRejected(store, () => store.change(changes.slice(0, 1), Number.NaN), /no time/);
  });
}
