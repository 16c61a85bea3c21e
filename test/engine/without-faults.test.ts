import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { load, rig } from '../support/rig.ts';
import { converges, executed, shop } from './shop.ts';

describe('engine: without faults', () => {
  test('what the plan showed is what is done, nothing is blocked, and a plan leaves no trace', async () => {
    const played = rig();
    const before = JSON.stringify([await played.store.info(), await played.store.journal({ limit: 10 })]);
    const plan: Plan = await played.plan(shop);

    expect(
      JSON.stringify([await played.store.info(), await played.store.journal({ limit: 10 })]).replace(
        /"serial":\d+/,
        '',
      ),
    ).toBe(before.replace(/"serial":\d+/, ''));
    const report = await played.apply(shop);

    expect(report.results.map(({ verb, key }) => `${verb}:${key}`).sort()).toEqual(
      plan.operations.map(({ id }) => id).sort(),
    );
    expect(report.blocked).toEqual([]);
    await converges(played, shop);
  });

  test('two runs at once are one after the other', async () => {
    const played = rig();

    await played.clock.run(
      Promise.all([
        played.engine.apply(load(shop), { approve: async () => true }),
        played.engine.apply(load(shop), { approve: async () => true }),
      ]),
    );

    await converges(played, shop);
    expect(executed(played, 'ip')).toBe(2);
  });

  test('the same seed gives the same trace', async () => {
    const traces = await Promise.all(
      [1, 2].map(async () => {
        const played = rig();
        await played.apply(shop);
        return JSON.stringify(played.sent);
      }),
    );

    expect(traces[0]).toBe(traces[1]);
  });
});
