import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import { cidrProblem, normalCidr } from '../../src/reconcilers/network.ts';
import { resolveOf, resolving, saidBy } from '../support/resolve.ts';
import { load, rig } from '../support/rig.ts';
import { added, codesOf, countOf, idsOf, projectOf, sliders, warningsOf } from './support.ts';

const backend = 'networks: {backend: {cidr: 10.20.0.0/24}}\n';

describe('src/reconcilers/network.ts', () => {
  test('a network is not replaced if an unmanaged network has its new name', async () => {
    const { apply, emulator } = rig();
    await apply(backend);
    emulator.mutate({ do: 'add_network', name: 'back', cidr: '10.30.0.0/24' });
    const before = projectOf(emulator).networks.map(({ id }) => id);

    const { blocked } = await apply('networks: {backend: {name: back, cidr: 10.21.0.0/24}}\n');

    expect(blocked).toMatchObject([{ key: 'networks.backend', code: 'name_exists' }]);
    expect(projectOf(emulator).networks.map(({ id }) => id)).toEqual(before);
  });

  test('a change of cidr or name is a replacement', async () => {
    const { apply, plan, emulator } = rig();
    await apply(backend);
    const changed = 'networks: {backend: {name: back, cidr: 10.21.0.0/24}}\n';

    const planned = await plan(changed);
    const report = await apply(changed);

    expect(planned.summary).toMatchObject({ create: 0, delete: 0, replace: 1 });
    const message = expect.stringContaining(
      'unproven: `name: back`, `cidr: 10.21.0.0/24`, payment and quota.',
    );
    expect(planned.warnings).toMatchObject([{ code: 'replacement_unchecked', message }]);
    expect(planned.operations).toMatchObject([
      { id: 'delete:networks.backend', replacement: 'create:networks.backend', risk: 'destructive' },
      {
        id: 'create:networks.backend',
        replacement: 'delete:networks.backend',
        needs: ['delete:networks.backend'],
        changes: [
          { path: 'name', from: 'backend', to: 'back' },
          { path: 'cidr', from: '10.20.0.0/24', to: '10.21.0.0/24' },
        ],
      },
    ]);
    expect(report.outcome).toBe('converged');
    expect(projectOf(emulator).networks.slice(1)).toMatchObject([{ name: 'back', cidr: '10.21.0.0/24' }]);
  });

  test('a network with remaining servers stays, and the message names the servers', async () => {
    const { apply, plan, engine, clock } = rig();
    const server = (networks: string) => `{${sliders}, network_interfaces: [${networks}]}`;
    await apply(`${backend}servers: {web: ${server('backend')}, db: ${server('backend')}}\n`);
    const rest = `settings: {prune: true}\nservers: {web: ${server('')}}\n`;
    await clock.run(engine.forget(load(rest), 'servers.db' as ResourceKey));

    expect((await plan(rest)).blocked).toMatchObject([
      {
        code: 'network_in_use',
        reason: '2 servers stay on the network: servers.web, 1 that this spec does not manage',
      },
    ]);
  });

  test('a replacement of a network with servers is blocked until the spec restores the cidr', async () => {
    const { apply, plan, emulator } = rig();
    const servers = `servers: {web: {${sliders}, network_interfaces: [backend]}}\n`;
    await apply(backend + servers);

    const report = await apply(`networks: {backend: {cidr: 10.21.0.0/24}}\n${servers}`);

    expect(report.outcome).toBe('blocked');
    expect(report.blocked).toMatchObject([
      {
        key: 'networks.backend',
        verb: 'update',
        code: 'network_in_use',
        reason:
          'a change of cidr from 10.20.0.0/24 to 10.21.0.0/24 deletes the network and creates a new one, but 1 server is on it: servers.web',
        remedies: resolving(expect.stringContaining('cidr: 10.20.0.0/24')),
      },
    ]);
    expect(projectOf(emulator).networks).toHaveLength(2);
    expect((await plan(backend + servers)).blocked).toEqual([]);
  });

  test('a server on a network whose replacement is blocked is not replaced either', async () => {
    const { apply, plan } = rig();
    const file = (subnet: string, more = '') =>
      `networks: {backend: {cidr: ${subnet}}, other: {cidr: 10.30.0.0/24}}\nservers: {web: {${sliders.replace('cores: 1', 'cores: 2')}, replace: allowed, network_interfaces: [${more || 'backend'}]}}\n`;
    await apply(file('10.20.0.0/24').replace('cores: 2', 'cores: 1'));

    expect(codesOf(await plan(file('10.21.0.0/24')))).toEqual({
      'networks.backend': 'network_in_use',
      'servers.web': 'dependency_blocked',
    });
    expect(idsOf(await plan(file('10.20.0.0/24')))).toContain('delete:servers.web~2001');
    expect(codesOf(await plan(file('10.21.0.0/24', 'other')))).toEqual({
      'networks.backend': 'network_in_use',
    });
  });

  test('the remedy removes the servers from a network only if nothing else blocks the replacement', async () => {
    const { apply, plan } = rig();
    const servers = `servers: {web: {${sliders}, network_interfaces: [backend]}}\n`;
    await apply(`networks: {backend: {cidr: 10.20.0.0/24, protect: true}}\n${servers}`);
    const changed = (rest: string) => `networks: {backend: {cidr: 10.21.0.0/24${rest}}}\n${servers}`;

    expect(codesOf(await plan(changed(', protect: true')))).toEqual({ 'networks.backend': 'protected' });
    expect(codesOf(await plan(changed('')))).toEqual({ 'networks.backend': 'network_in_use' });
  });

  test('the command in the message corrects the wrong binding of a network with servers', async () => {
    const { apply, plan, engine, clock, emulator } = rig();
    const servers = `servers: {web: {${sliders}, network_interfaces: [backend]}}\n`;
    await apply(backend + servers);
    const right = added(emulator, { do: 'add_network', name: 'front', cidr: '10.21.0.0/24' });
    const renamed = `networks: {backend: {name: front, cidr: 10.21.0.0/24}}\n${servers}`;

    const [blocked] = (await plan(renamed)).blocked;

    const adopt = ['networks.backend', String(right)];
    expect(blocked).toMatchObject({ code: 'name_exists' });
    expect(blocked?.remedies[0]).toMatchObject({ command: 'adopt', args: adopt });
    await clock.run(engine.adopt(load(renamed), adopt[0] as ResourceKey, adopt[1] as string));
    expect(codesOf(await plan(renamed))).toEqual({});
  });

  test('a network is not deleted while a server on it stays, managed or not', async () => {
    const { apply, plan } = rig();
    await apply(`${backend}servers: {web: {protect: true, ${sliders}, network_interfaces: [backend]}}\n`);

    const planned = await plan('settings: {prune: true}\n');

    expect(idsOf(planned)).toEqual([]);
    expect(codesOf(planned)).toEqual({
      'servers.web': 'protected',
      'networks.backend': 'dependency_blocked',
    });
    const kept = `settings: {prune: true}\nservers: {web: {${sliders}}}\n`;
    expect(codesOf(await plan(kept))).toEqual({ 'networks.backend': 'network_in_use' });
  });

  test('a network whose name exists is not created, and the command in the message adopts it', async () => {
    const { apply, plan, engine, clock, emulator } = rig();
    const found = added(emulator, { do: 'add_network', name: 'backend', cidr: '10.20.0.0/24' });

    const planned = await plan(backend);
    const [, key, id] = /vdcsync adopt (\S+) (\d+)/.exec(resolveOf(planned.blocked[0]) ?? '') ?? [];
    expect(planned.blocked).toMatchObject([{ code: 'name_exists' }]);
    expect([key, id]).toEqual(['networks.backend', String(found)]);

    await clock.run(engine.adopt(load(backend), 'networks.backend' as never, String(found)));

    expect(await plan(backend)).toMatchObject({ operations: [], blocked: [] });
    expect((await apply(backend)).outcome).toBe('converged');
    expect(countOf(emulator, 'create_network')).toBe(0);
  });

  test('the command in the message corrects a key that is bound to a network of another name', async () => {
    const { apply, plan, engine, clock, emulator } = rig();
    const wrong = added(emulator, { do: 'add_network', name: 'other', cidr: '10.21.0.0/24' });
    const right = added(emulator, { do: 'add_network', name: 'backend', cidr: '10.20.0.0/24' });
    const key = 'networks.backend' as ResourceKey;
    await clock.run(engine.adopt(load(backend), key, String(wrong)));

    const [, id] =
      /vdcsync adopt networks\.backend (\d+)/.exec(resolveOf((await plan(backend)).blocked[0])) ?? [];
    expect(id).toBe(String(right));
    await clock.run(engine.adopt(load(backend), key, String(id)));

    expect((await apply(backend)).outcome).toBe('converged');
    expect(countOf(emulator, 'create_network') + countOf(emulator, 'delete_network')).toBe(0);
  });

  test('adoption of a network with another subnet is the last remedy, and warns of its replacement', async () => {
    const { plan, engine, clock, emulator } = rig();
    const id = added(emulator, { do: 'add_network', name: 'backend', cidr: '10.50.0.0/24' });

    const ways = resolveOf((await plan(backend)).blocked[0]).split(' | ');
    expect(ways?.[1]).toBe('write `managed: false` in networks.backend (to use that network unchanged)');
    expect(ways?.at(-1)).toBe(
      `vdcsync adopt networks.backend ${id} (if that network belongs to this spec: the next apply then replaces it by a network with 10.20.0.0/24)`,
    );
    const said = await clock.run(engine.adopt(load(backend), 'networks.backend' as never, String(id)));
    expect(saidBy(said)).toContain(
      'The resource has cidr 10.50.0.0/24 instead of 10.20.0.0/24, which cannot be changed in place: the next apply would delete the resource',
    );
  });

  test('an unmanaged network is found by its name, and has to exist', async () => {
    const { apply, plan, emulator } = rig();
    const text = 'networks: {shared: {managed: false}}\n';

    expect((await plan(text)).blocked).toMatchObject([
      { code: 'not_found', remedies: resolving(expect.stringContaining('set `cidr` and remove `managed`')) },
    ]);
    const byId = await plan('networks: {shared: {id: 77}}\n');
    expect(resolveOf(byId.blocked[0])).toContain(
      'set `cidr` and remove `id` in networks.shared (to create a new resource)',
    );
    emulator.mutate({ do: 'add_network', name: 'shared', cidr: '10.50.0.0/24' });

    expect((await apply(text)).outcome).toBe('converged');
    expect((await apply('settings: {prune: true}\n')).outcome).toBe('converged');
    expect(projectOf(emulator).networks.map(({ name }) => name)).toEqual(['default', 'shared']);
  });

  test('an ambiguous network name needs an `id`', async () => {
    const { plan, emulator } = rig();
    emulator.mutate({ do: 'add_network', name: 'shared', cidr: '10.50.0.0/24' });
    const second = added(emulator, { do: 'add_network', name: 'shared', cidr: '10.51.0.0/24' });

    const planned = await plan('networks: {shared: {managed: false}}\n');

    expect(codesOf(planned)).toEqual({ 'networks.shared': 'name_ambiguous' });
    expect(resolveOf(planned.blocked[0])).toContain(`id: ${second}`);
    expect((await plan(`networks: {shared: {managed: false, id: ${second}}}\n`)).blocked).toEqual([]);
  });

  test.each(['409', '422'])('the default network is never changed, adopted or not (%s)', async (status) => {
    const { apply, plan, clock, engine, emulator } = rig({
      emulator: { readings: { defaultNetworkDelete: Number(status) as 409 | 422 } },
    });
    const { id } = projectOf(emulator).networks[0] ?? { id: 0 };
    await apply(`networks: {default: {id: ${id}}}\n`);

    const changed = await plan('networks: {default: {cidr: 10.9.0.0/24}}\n');
    const removed = await apply('settings: {prune: true}\n');
    await apply(`networks: {default: {id: ${id}}}\n`);
    const destroyed = await clock.run(
      engine.apply(load(`networks: {default: {id: ${id}}}\n`), { destroy: true, approve: async () => true }),
    );

    expect(changed.operations).toEqual([]);
    expect(codesOf(changed)).toEqual({ 'networks.default': 'default_network' });
    expect(codesOf(await plan('networks: {default: {managed: false}}\n'))).toEqual({});
    expect([removed.outcome, destroyed.outcome]).toEqual(['converged', 'converged']);
    expect(countOf(emulator, 'delete_network')).toBe(0);
    expect(projectOf(emulator).networks).toHaveLength(1);
  });

  test.each([
    [' 010.020.000.000/24 ', '10.20.0.0/24'],
    ['10.20.0.77/24', '10.20.0.0/24'],
    ['10.20.3.255/22', '10.20.0.0/22'],
    ['255.255.255.255/0', '0.0.0.0/0'],
    ['200.1.2.3/32', '200.1.2.3/32'],
    ['not a subnet', 'not a subnet'],
  ])('%s is compared as %s', (given, normal) => {
    expect(normalCidr(given)).toBe(normal);
  });

  test('the error about a wrong cidr shows a correct value', () => {
    expect(cidrProblem('10.20.0.1/24')).toContain('10.20.0.0/24');
    expect(cidrProblem('10.20.0.256/24')).toContain('up to 255');
    expect(cidrProblem('10.20.0.0/33')).toContain('up to 32');
    expect(cidrProblem('10.20.0.0/24')).toBeUndefined();
  });

  test.each([
    ['no network', 0],
    ['only the default network', 1],
  ])('a truncated list does not create a network again: the list shows %s', async (_what, keep) => {
    const spec = `${backend}servers: {web: {${sliders}, network_interfaces: [backend]}}\n`;
    const { apply, plan, emulator } = rig({ emulator: { readings: { uniqueNetworkNames: false } } });
    await apply(spec);
    emulator.setFaults([faultRule({ method: 'GET', path: '/networks' }, { do: 'truncate_list', keep })]);

    const report = await apply(spec);

    expect([report.outcome, warningsOf(report.plan)]).toEqual(['converged', ['network_not_listed']]);
    expect(countOf(emulator, 'create_network')).toBe(1);
    emulator.setFaults([]);
    expect(warningsOf(await plan(spec))).toEqual([]);
  });
});
