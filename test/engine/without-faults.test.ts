import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { load, rig } from '../support/rig.ts';
import { converges, executed, shop } from './shop.ts';

describe('src/engine: without faults', () => {
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

  test('of many servers in flight at once none is taken for an unmanaged one', async () => {
    const server = `{server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}, network_interfaces: [n]}`;
    const names = Array.from({ length: 60 }, (_, at) => `  web-${at}: ${server}\n`);

    const { results } = await rig().apply(`networks: {n: {cidr: 10.9.0.0/24}}\nservers:\n${names.join('')}`);

    expect(results.filter(({ outcome }) => outcome !== 'done')).toEqual([]);
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
