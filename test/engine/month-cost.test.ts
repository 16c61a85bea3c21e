import { describe, expect, test } from 'vitest';
import type { World } from '../../src/core/kind.ts';
import type { StateStore } from '../../src/core/state.ts';
import { BilledHistory, monthCost } from '../../src/engine/month-cost.ts';
import { kinds } from '../../src/reconcilers/registry.ts';

const apiNow = Date.UTC(2026, 10, 16);
const binding = { key: 'ips.web', kind: 'ip', id: '1', identity: {}, applied: null };
const bound = { at: Date.UTC(2026, 10, 11), key: 'ips.web', event: 'bound', data: { binding } };

/** A state with one adopted address, which counts the reads of its whole journal. */
class Store {
  reads = 0;
  readonly lines = [bound];
  readonly intents = async () => [];
  readonly journal = async ({ limit }: { readonly limit: number }) => {
    if (limit > 1) this.reads += 1;
    return this.lines.slice(-limit);
  };
}

function worldWith(prices: { readonly address: string }): World {
  return { apiNow, profile: { prices }, catalogue: { types: [], pricing: new Map() } } as unknown as World;
}

describe('src/engine/month-cost.ts', () => {
  test('only a new line reads the whole journal again', async () => {
    const [store, history] = [new Store(), new BilledHistory()];
    const cost = (world: World) => monthCost(store as unknown as StateStore, kinds, world, history);

    const priced = worldWith({ address: '3.00' });
    const month = {
      name: '2026-11',
      cost: '0.50',
      cost_at_least: '0.50',
      run_rate: '3.00',
      forecast: '2.00',
    };
    expect(await cost(priced)).toEqual({ ...month, incomplete: ['ips.web'] });
    await cost(priced);
    expect(store.reads).toBe(1);

    store.lines.push({ ...bound, at: bound.at + 1 });
    await cost(priced);
    expect(store.reads).toBe(2);
  });
});
