import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { profiled } from '../support/profiled.ts';
import { load, rig } from '../support/rig.ts';
import { idsOf, projectOf, sliders, warningsOf } from './support.ts';

const file = (cards: string, more = '') =>
  `networks: {default: {managed: false}, a: {cidr: 10.1.0.0/24}, b: {cidr: 10.2.0.0/24}}
servers: {web: {${sliders}, network_interfaces: [${cards}]${more}}}\n`;

describe('src/reconcilers/network-interface.ts', () => {
  test('a lasting 409 about a network interface that the list lacks ends the run without an open write', async () => {
    const readings = { defaultNetworkCard: true, duplicateInterfaces: 409, pageSize: 1 } as const;
    const { apply, store } = rig({ emulator: { readings } });

    const report = await apply(file('default', ', public_ipv4: {new: true}'));

    const key = 'servers.web.network_interfaces.default';
    expect(report.blocked.find((each) => each.key === key)?.code).toBe('network_already_attached');
    expect((await store.openIntents()).map((each) => each.key)).not.toContain(key);
  });

  test('a surplus network interface is reported, and not removed', async () => {
    const { apply, plan, emulator } = rig({ emulator: { readings: { defaultNetworkCard: true } } });
    await apply(file('a'));

    const planned = await plan(file('a'));

    expect(warningsOf(planned)).toEqual(['surplus_network_interface']);
    expect(planned.operations).toEqual([]);
    expect(projectOf(emulator).servers[0]?.interfaces).toHaveLength(2);
  });

  test('a spec without networks reports only the network interfaces that vdcsync added', async () => {
    const { apply, plan } = rig({ emulator: { readings: { defaultNetworkCard: true } } });
    await apply(file('a'));

    const without = await plan(`networks: {a: {cidr: 10.1.0.0/24}}\nservers: {web: {${sliders}}}\n`);

    expect(without.warnings).toMatchObject([
      { code: 'no_longer_declared', message: expect.stringContaining('network interface net1 still exists') },
    ]);
  });

  test('a network interface that another entry of its network adopts is not removed', async () => {
    const profile = 'operations: {remove_network_interface: {}}';
    const { apply, plan, emulator } = profiled({}, profile);
    const network = (name: string, entry: string) =>
      `networks: {${name}: {${entry}}}\nservers: {web: {${sliders}, network_interfaces: [${name}]}}\n`;
    await apply(network('a', 'cidr: 10.1.0.0/24'));
    const cards = projectOf(emulator).servers[0]?.interfaces.map(({ id }) => id);
    const again = network('b', 'managed: false, name: a');

    expect(idsOf(await plan(again))).toEqual(['adopt:servers.web.network_interfaces.b']);
    expect((await apply(again)).outcome).toBe('converged');

    expect(projectOf(emulator).servers[0]?.interfaces.map(({ id }) => id)).toEqual(cards);
    expect(idsOf(await plan(again))).toEqual([]);
  });

  test.each([
    'net0',
    'net2',
    'net9',
  ])('adopt refuses %s, which is in another network or in none', async (id) => {
    const { apply, engine, clock, store } = rig();
    const spec = file('a, b', ', public_ipv4: {new: true}');
    await apply(spec);
    const before = await store.bindings();

    const adopted = clock.run(
      engine.adopt(load(spec), 'servers.web.network_interfaces.a' as ResourceKey, id),
    );

    await expect(adopted).rejects.toThrow(`servers.web has no network interface ${id} that fits`);
    expect(await store.bindings()).toEqual(before);
  });

  test('a missing network interface is added again after a second read, or reported with `drift: report`', async () => {
    const { apply, plan, emulator } = rig();
    await apply(file('a'));
    const [server] = projectOf(emulator).servers;
    if (server !== undefined) server.interfaces = [];

    const reported = await plan(`settings: {drift: report}\n${file('a')}`);
    const planned = await plan(file('a'));

    expect([idsOf(reported), warningsOf(reported)]).toEqual([[], ['drift']]);
    expect(planned.operations).toMatchObject([{ reason: 'the server no longer has network interface net0' }]);
    expect((await apply(file('a'))).outcome).toBe('converged');
    expect(projectOf(emulator).servers[0]?.interfaces).toHaveLength(1);
  });
});
