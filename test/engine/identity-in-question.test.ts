import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { codesOf, projectOf } from '../reconcilers/support.ts';
import { type Rig, rig } from '../support/rig.ts';

const key = 'servers.database' as ResourceKey;
const head = 'settings: {unmanaged: ignore}\nnetworks: {n: {cidr: 10.1.0.0/24}}\n';
const inside = 'network_interfaces: [n], firewall: {enabled: true, policy_in: drop, rules: []}';
const entry = (fields: string) => `${head}servers: {database: {${fields}}}\n`;

/** Two servers with addresses that no file made. */
function played(): Rig {
  const made = rig({ emulator: { readings: { reuseIds: true } } });
  made.emulator.mutate({ do: 'add_server', name: 'one', public: true });
  made.emulator.mutate({ do: 'add_server', name: 'two', public: true });
  return made;
}

describe('src/engine: a server whose identity is in question', () => {
  test('adopt refuses another server than the entry names', async () => {
    const made = played();
    const file = entry('id: 2001');

    const refused = made.adopt(file, key, '2002');

    await expect(refused).rejects.toThrow(/vdcsync\.yaml:\d+:\d+: .*has `id: 2001` in the spec/);
    expect(await made.store.bindings()).toEqual([]);
    await made.adopt(file, key, '2001');
    expect(await made.store.bindings()).toMatchObject([{ key, id: '2001' }]);
  });

  test('adopt takes a server from a key that has left the spec, without a warning before', async () => {
    const made = played();
    const two = (entries: string) => `${head}servers: {${entries}}\n`;
    await made.apply(two('one: {id: 2001}, database: {id: 2002}'));
    const file = two('database: {id: 2001}');
    const { blocked, warnings } = await made.plan(file);
    expect(blocked).toMatchObject([{ code: 'id_conflict', remedies: [{ args: [key, '2001'] }, {}] }]);
    expect(warnings.map(({ code }) => code)).not.toContain('released');

    await made.adopt(file, key, '2001');

    const bound = (await made.store.bindings()).filter(({ kind }) => kind === 'server');
    expect(bound).toMatchObject([{ key, id: '2001', formerKeys: ['servers.one'] }]);
    expect((await made.apply(file)).outcome).toBe('converged');
  });

  test('adopt refuses an entry that is not managed', async () => {
    const made = played();

    const refused = made.adopt(entry('id: 2001, managed: false'), key, '2001');

    await expect(refused).rejects.toThrow('has `managed: false`');
    expect(await made.store.bindings()).toEqual([]);
  });

  test('no part of the server is written while the entry names another server than the state', async () => {
    const made = played();
    await made.apply(entry(`id: 2001, ${inside}`));
    const before = made.writes().length;
    // A further network and another firewall: each would be a write.
    const other = entry(`id: 2002, network_interfaces: [n, m], firewall: {enabled: false}`).replace(
      'networks: {',
      'networks: {m: {cidr: 10.2.0.0/24}, ',
    );

    const plan = await made.plan(other);
    const report = await made.apply(other);

    expect(codesOf(plan)).toEqual({
      [key]: 'id_conflict',
      [`${key}.firewall`]: 'dependency_blocked',
      [`${key}.network_interfaces.m`]: 'dependency_blocked',
    });
    expect(report.outcome).toBe('blocked');
    expect(made.writes().slice(before)).toMatchObject([{ path: '/networks' }]);
    expect(projectOf(made.emulator).servers[1]?.interfaces).toHaveLength(1);
  });
});
