import { describe, expect, test } from 'vitest';
import { deletionsOf } from '../../src/core/plan.ts';
import { summaryLine } from '../../src/view/plan.ts';
import { codesOf, countOf, idsOf, projectOf, sliders } from '../reconcilers/support.ts';
import { resolveOf } from '../support/resolve.ts';
import { rig } from '../support/rig.ts';

const networks = (...names: readonly string[]) =>
  `networks: {${names.map((name, at) => `${name}: {cidr: 10.${at + 1}.0.0/24}`).join(', ')}}\n`;

describe('src/plan/guards.ts', () => {
  test('max_deletions blocks all deletions of a larger plan; replacements count, parts do not', async () => {
    const { apply, plan } = rig();
    await apply(`${networks('a', 'b')}servers: {web: {${sliders}, public_ipv4: {new: true}}}\n`);
    const left = 'networks: {b: {cidr: 10.9.0.0/24}}\n';

    const planned = await plan(`settings: {prune: true}\n${left}`);

    expect(codesOf(planned)).toEqual({
      'networks.a': 'max_deletions',
      'networks.b': 'max_deletions',
      'servers.web': 'max_deletions',
      'servers.web.public_ipv4': 'max_deletions',
    });
    expect(resolveOf(planned.blocked[0])).toContain('max_deletions: 3');
    expect(planned.blocked.map(({ reason }) => reason)).toEqual([
      expect.stringContaining(
        '3 deletions in one run (without addresses that are deleted with their servers) are more',
      ),
      expect.stringContaining('(2). Network '),
      expect.stringMatching(/ Server 2001 \(203\.0\.113\.\d+\) would be deleted with all data on its disks$/),
      expect.stringMatching(/ Address 203\.0\.113\.\d+ would be deleted$/),
    ]);
    const allowed = await plan(`settings: {prune: true, max_deletions: 3}\n${left}`);
    expect(allowed.blocked).toEqual([]);
    expect(deletionsOf(allowed)).toBe(3);
    expect(summaryLine(allowed)).toBe('Plan: 1 to replace, 3 to delete (1 address with its server).');
    expect((await apply(`settings: {prune: true, max_deletions: 3}\n${left}`)).outcome).toBe('converged');
  });

  test('max_deletions does not count deletions that wait or are left out', async () => {
    const { apply, plan, emulator } = rig();
    const inside = `public_ipv4: {ip: web}, network_interfaces: [a]`;
    await apply(
      `${networks('a', 'b')}ips: {web: {}, spare: {}}\nservers: {web: {${sliders}, protect: true, ${inside}}}\n`,
    );

    const planned = await plan('settings: {prune: true}\n');
    expect(codesOf(planned)).toEqual({
      'servers.web': 'protected',
      'ips.web': 'dependency_blocked',
      'networks.a': 'dependency_blocked',
    });
    expect(idsOf(planned)).toEqual(['delete:ips.spare', 'delete:networks.b']);
    expect((await apply('settings: {prune: true}\n')).results.map(({ outcome }) => outcome)).toEqual([
      'done',
      'done',
    ]);
    expect(projectOf(emulator).networks).toHaveLength(2);
  });

  test('max_deletions applies to all rounds of a run', async () => {
    const { apply, emulator } = rig();
    await apply(`${networks('a', 'b', 'c')}servers: {web: {${sliders}, network_interfaces: [c]}}\n`);
    const [, a] = projectOf(emulator).networks;
    emulator.mutate({ do: 'delete_network', id: a?.id ?? 0 });

    expect((await apply('settings: {prune: true, max_deletions: 2}\n')).outcome).toBe('blocked');
    expect(countOf(emulator, 'delete_network') + countOf(emulator, 'delete_server')).toBeLessThanOrEqual(2);
  });

  test('max_monthly_increase counts known prices only, and deletions make room', async () => {
    const { apply, plan } = rig();
    const ai = (name: string, key: string) =>
      `${name}: {server_type: gpu-fixed, image: debian-13, replace: allowed, gpu_package: ${key}}`;
    const limit = (most: number) => `settings: {prune: true, max_monthly_increase: ${most}}\n`;

    const over = await plan(
      `${limit(1000)}servers: {${ai('a', 'l40s-1')}, ${ai('b', 'l40s-1')}, web: {${sliders}}}\n`,
    );
    expect(codesOf(over)).toEqual({
      'servers.a': 'max_monthly_increase',
      'servers.b': 'max_monthly_increase',
    });
    expect(resolveOf(over.blocked[0])).toContain('max_monthly_increase: 1780');
    expect(idsOf(over)).toEqual(['create:servers.web']);
    expect(
      (await plan(`${limit(1780)}servers: {${ai('a', 'l40s-1')}, ${ai('b', 'l40s-1')}}\n`)).blocked,
    ).toEqual([]);

    await apply(`servers: {${ai('a', 'l40s-1')}}\n`);
    expect((await plan(`${limit(0)}servers: {${ai('b', 'l40s-1')}}\n`)).blocked).toEqual([]);
    expect(codesOf(await plan(`${limit(799)}servers: {${ai('a', 'l40s-2')}}\n`))).toEqual({
      'servers.a': 'max_monthly_increase',
    });
    expect((await plan(`${limit(800)}servers: {${ai('a', 'l40s-2')}}\n`)).blocked).toEqual([]);
  });

  test('an operation that waits for a blocked one is blocked with it, down the chain, and resolved with it', async () => {
    const { plan, emulator } = rig();
    const net = emulator.mutate({ do: 'add_network', name: 'a', cidr: '10.7.0.0/24' }) as { id: number };
    const text = `${networks('a', 'b')}servers:
  web: {server_type: nope, image: debian-13, plan_id: 51, public_ipv4: {new: true}, network_interfaces: [b], firewall: {enabled: true}, backup: {max_age: 24h}}
  app: {${sliders}, network_interfaces: [a, b]}
`;
    const planned = await plan(text);

    expect(codesOf(planned)).toEqual({
      'networks.a': 'name_exists',
      'servers.web': 'server_type_not_found',
      'servers.app.network_interfaces.a': 'dependency_blocked',
      'servers.web.network_interfaces.b': 'dependency_blocked',
      'servers.web.firewall': 'dependency_blocked',
      'servers.web.backup': 'dependency_blocked',
    });
    expect(idsOf(planned)).toEqual([
      'create:networks.b',
      'create:servers.app',
      'create:servers.app.network_interfaces.b',
    ]);
    emulator.mutate({ do: 'delete_network', id: net.id });
    expect((await plan(text.replace('server_type: nope', 'server_type: 5'))).blocked).toEqual([]);
  });
});
