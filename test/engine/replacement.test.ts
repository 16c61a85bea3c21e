import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { expectFixedPoint } from '../support/invariants.ts';
import { applied, type Rig, rig } from '../support/rig.ts';

const size = (cores: number) =>
  `server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20`;
const more =
  'public_ipv4: {new: true}, network_interfaces: [backend], firewall: {enabled: true, policy_in: drop}';
const head = 'networks: {backend: {cidr: 10.20.0.0/24}}\nservers:\n';
const file = (cores: number, replace = 'allowed') =>
  `${head}  web: {${size(cores)}, ${more}, replace: ${replace}}\n`;
const tooLarge = 64;

const servers = (played: Rig) => played.project.servers.map(({ id, cores }) => [id, cores]);
const addresses = (played: Rig) => played.project.ips.map(({ id, serverId }) => [id, serverId]);
/** The writes that may be carried out. */
const written = (played: Rig, from = 0) =>
  played
    .writes()
    .slice(from)
    .filter(({ body }) => body?.includes('vdcsync_probe') !== true)
    .map(({ method, path }) => `${method} ${path}`);

async function made(): Promise<Rig> {
  const played = rig({ emulator: { readings: { sizeBounds: 'on' } } });
  await played.apply(file(1));
  return played;
}

describe('src/engine/claims/release.ts: a server is replaced, the new one first', () => {
  test('the old server is deleted once the new one is complete, and its address last', async () => {
    const played = await made();
    const from = played.writes().length;

    const plan = await played.plan(file(2));
    const report = await played.apply(file(2));

    expect(plan.operations.map(({ id }) => id)).toEqual([
      'create:servers.web',
      'create:servers.web.firewall',
      'create:servers.web.network_interfaces.backend',
      'delete:servers.web~2001',
      'delete:servers.web~2001.public_ipv4',
    ]);
    expect(plan.warnings.map(({ code }) => code)).toEqual(['billed_twice']);
    expect(plan.summary).toMatchObject({ replace: 1 });
    expect(report.results.map(({ outcome }) => outcome)).toEqual(Array(5).fill('done'));
    expect(written(played, from)).toEqual([
      'POST /servers',
      'PUT /servers/2002/firewall',
      'POST /servers/2002/network-interfaces',
      'DELETE /servers/2001',
      'DELETE /ips/5001',
    ]);
    expect([servers(played), addresses(played)]).toEqual([[[2002, 2]], [[5002, 2002]]]);
    expectFixedPoint(await played.plan(file(2)));
  });

  test('the new server takes the address that the entry names, after the old one is deleted', async () => {
    const named = (cores: number) => `ips: {web: {}}\n${file(cores).replace('{new: true}', '{ip: web}')}`;
    const played = await applied(named(1));

    const plan = await played.plan(named(2));

    expect(plan.operations.map(({ id }) => id).slice(0, 2)).toEqual([
      'delete:servers.web',
      'create:servers.web',
    ]);
    const first = await played.plan(named(2).replace('allowed', '{order: create_first}'));
    expect(first.blocked).toMatchObject([{ key: 'servers.web', code: 'address_in_use' }]);
    expect((await played.apply(named(2))).outcome).toBe('converged');
    expect([servers(played), addresses(played)]).toEqual([[[2002, 2]], [[5001, 2002]]]);
  });

  test('another purchase does not begin between the deletion of a server and its creation', async () => {
    const named = (cores: number) =>
      `${head}  web: {${size(cores)}, public_ipv4: {ip: web}, replace: allowed}\n`;
    const played = await applied(`ips: {web: {}}\n${named(1)}`);
    const from = played.writes().length;

    const report = await played.apply(`ips: {web: {}}\n${named(2)}  bare: {${size(1)}}\n`);

    expect(report.outcome).toBe('converged');
    const sent = played.writes().slice(from);
    const names = sent.map(({ method, body = '{}' }) =>
      method === 'DELETE' ? method : JSON.parse(body).name,
    );
    expect(names.slice(names.indexOf('DELETE'))).toEqual(['DELETE', 'web', 'bare']);
    expect(names.indexOf('bare')).toBe(names.length - 1);
  });

  test('an address that the replaced server still holds waits for its deletion, and the replacement after it', async () => {
    const named = (address: string) => `ips: {web: {}}\n${file(1).replace('{new: true}', address)}`;
    const without = named('').replace(', public_ipv4: ', '').replace('enabled: true', 'enabled: false');
    const played = await applied(named('{ip: web}'));
    const refusal = { do: 'answer', status: 422, code: 'invalid_request', effect: 'none' } as const;
    await played.failing({ path: 'add_network_interface' }, refusal, without);
    const settled = { type: 'absent' } as const;
    await played.resolve(without, 'servers.web.network_interfaces.backend', settled);

    const plan = await played.plan(named('{ip: web}'));

    expect(plan.operations.map(({ id }) => id)).toEqual([
      'create:servers.web.network_interfaces.backend',
      'delete:servers.web~2001',
    ]);
    // The next server has a public interface, and this one has none.
    expect(plan.blocked.map(({ code }) => code)).toEqual(['firewall_no_public_iface']);
    expect(plan.warnings.map(({ message }) => message).join()).toContain(
      'Server 2001, which retires, has that address until it is deleted',
    );
    // An entry with `id:` is not replaced: the server with the address stays.
    const kept = await played.plan(
      named('{ip: web}').replace('replace: allowed', 'replace: allowed, id: 2002'),
    );
    expect(kept.operations.map(({ verb }) => verb)).not.toContain('delete');
    expect(kept.blocked.map(({ key, code }) => `${code} ${key}`)).toEqual(
      expect.arrayContaining(['replace_not_allowed servers.web', 'dependency_blocked servers.web~2001']),
    );
    expect((await played.apply(named('{ip: web}'))).outcome).toBe('converged');
    expect([servers(played), addresses(played)]).toEqual([[[2003, 1]], [[5001, 2003]]]);
  });

  test('the old server stays while a resource inside the new one is missing', async () => {
    const played = await made();
    const refusal = { do: 'answer', status: 422, code: 'invalid_request', effect: 'none' } as const;
    played.fail({ path: 'replace_firewall' }, refusal);

    const report = await played.apply(file(2));

    expect(servers(played).map(([id]) => id)).toEqual([2001, 2002]);
    expect(report.blocked.map(({ key, code }) => [key, code])).toEqual([
      ['servers.web.firewall', 'invalid_request'],
      ['servers.web~2001', 'dependency_blocked'],
      ['servers.web~2001.public_ipv4', 'dependency_blocked'],
    ]);
    const keys = (await played.store.bindings()).map(({ key }) => key);
    expect(keys).toContain('servers.web~2001' as ResourceKey);
    played.emulator.setFaults([]);
    const settled = { type: 'absent' } as const;
    await played.resolve(file(2), 'servers.web.firewall', settled);
    expect((await played.apply(file(2))).outcome).toBe('converged');
    expect(servers(played)).toEqual([[2002, 2]]);
  });
});

describe('src/plan/order.ts: an edit of several servers', () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  const five = (cores: number, replace = 'allowed') =>
    `settings: {max_deletions: 10}\nservers:\n${names.map((name) => `  ${name}: {${size(cores)}, public_ipv4: {new: true}, firewall: {enabled: true, policy_in: drop}, replace: ${replace}}\n`).join('')}`;
  const start = async (replace?: string) => {
    const played = rig({ emulator: { readings: { sizeBounds: 'on' } } });
    await played.apply(five(1, replace));
    return played;
  };
  /** The highest number of servers at the same time. */
  const most = (played: Rig, from: number) => {
    let [now, highest] = [5, 5];
    for (const each of written(played, from)) {
      if (each === 'POST /servers') now += 1;
      if (each.startsWith('DELETE /servers/')) now -= 1;
      highest = Math.max(highest, now);
    }
    return highest;
  };

  test.each([
    'allowed',
    '{order: delete_first}',
    '{order: delete_first, at_once: 5}',
  ])('of five refused edits (%s), at most one deletes a server', async (replace) => {
    const played = await start(replace);
    const from = played.writes().length;

    const report = await played.apply(five(tooLarge, replace));

    const alive = replace === 'allowed' ? 5 : 4;
    expect(servers(played)).toHaveLength(alive);
    expect(written(played, from).filter((each) => each === 'POST /servers')).toHaveLength(1);
    expect(Object.fromEntries(report.blocked.map(({ key, code }) => [key, code]))).toMatchObject({
      'servers.a': 'invalid_request',
      'servers.b': 'dependency_blocked',
      'servers.e': 'dependency_blocked',
    });
    const again = await played.apply(five(tooLarge, replace));
    expect(again.blocked.length).toBeGreaterThanOrEqual(5);
    // A server that no replacement has retired yet has no key of its own.
    if (replace === 'allowed') expect(JSON.stringify(again.blocked)).not.toContain('~');
    expect(servers(played)).toHaveLength(alive);
    expect((await played.apply(five(2, replace))).outcome).toBe('converged');
    expect(servers(played).map(([, cores]) => cores)).toEqual(Array(5).fill(2));
    expect(addresses(played)).toHaveLength(5);
  });

  test('servers that are deleted first begin together once the first one with their values is complete', async () => {
    const replace = '{order: delete_first, at_once: 5}';
    const played = await start(replace);
    const from = played.writes().length;

    expect((await played.apply(five(2, replace))).outcome).toBe('converged');

    const writes = written(played, from).filter((each) => /\/servers(\/\d+)?$/.test(each));
    expect(writes.slice(0, 2)).toEqual(['DELETE /servers/2001', 'POST /servers']);
    expect(writes.slice(2, 6).every((each) => each.startsWith('DELETE'))).toBe(true);
    expect(servers(played).map(([, cores]) => cores)).toEqual(Array(5).fill(2));
  });

  test.each([
    ['allowed', 6],
    ['{at_once: 2}', 7],
    ['{at_once: 5}', 10],
  ])('with `replace: %s`, at most %i servers exist at the same time', async (replace, highest) => {
    const played = await start(replace);
    const from = played.writes().length;

    expect((await played.apply(five(2, replace))).outcome).toBe('converged');

    expect(most(played, from)).toBe(highest);
    expect(servers(played).map(([, cores]) => cores)).toEqual(Array(5).fill(2));
    expectFixedPoint(await played.plan(five(2, replace)));
  });
});
