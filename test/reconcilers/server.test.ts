import { describe, expect, test } from 'vitest';
import { planText } from '../../src/cli/render/plan-text.ts';
import { plainPaint } from '../../src/cli/terminal.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import { resolveOf, resolving } from '../support/resolve.ts';
import { load, rig } from '../support/rig.ts';
import { added, codesOf, idsOf, projectOf, sliders, warningsOf } from './support.ts';

const prune = 'settings: {prune: true, max_deletions: 10}\n';
const gpu = 'server_type: gpu-fixed, image: ubuntu-24.04';

function servers(entries: Readonly<Record<string, string>>): string {
  const lines = Object.entries(entries).map(([name, entry]) => `  ${name}: {${entry}}\n`);
  return `servers:\n${lines.join('')}`;
}

describe('src/reconcilers/server.ts: creation', () => {
  test('a server has one of three pricing modes, by id or by name', async () => {
    const { apply, plan, emulator } = rig();
    const image = projectOf(emulator) && emulator.world.serverTypes[1]?.images[1]?.id;
    const text = servers({
      slider: `${sliders}, ssh_keys: [101, 102]`,
      planned: `server_type: 5, image: ${image}, plan_id: 52`,
      packaged: `${gpu}, gpu_package: h100-1`,
    });

    const report = await apply(text);

    expect(report.outcome).toBe('converged');
    expect(projectOf(emulator).servers).toMatchObject([
      { name: 'packaged', typeId: 8, planId: null, gpuPackage: 'h100-1', cores: null },
      { name: 'planned', typeId: 5, planId: 52, gpuPackage: null, cores: 2 },
      { name: 'slider', typeId: 3, planId: null, gpuPackage: null, cores: 1 },
    ]);
    expect((await plan(text)).operations).toEqual([]);
  });

  test('another notation of the same values is no change', async () => {
    const { apply, plan, emulator } = rig();
    await apply(servers({ web: `${sliders}, ssh_keys: [101, 102]` }));
    const id = emulator.world.serverTypes[0]?.images[0]?.id;

    const web = `server_type: 3, image: ${id}, cores: 1, memory_mb: 1024, disk_gb: 20, ssh_keys: [102, 101]`;
    const planned = await plan(servers({ web }));

    expect([planned.operations, planned.blocked]).toEqual([[], []]);
  });

  test.each([
    [
      'server_type: nope, image: debian-13, plan_id: 51',
      'server_type_not_found',
      'sliders-1 (id 3), plans-1 (id 5), gpu-fixed (id 8)',
    ],
    [
      'server_type: 5, image: beos, plan_id: 51',
      'image_not_found',
      'ubuntu-24.04, debian-13, almalinux-10, windows-2025',
    ],
    [`${gpu}, gpu_package: b200-8`, 'gpu_package_not_found', 'l40s-1, l40s-2, h100-1'],
    [`${gpu}, cores: 4`, 'gpu_package_required', 'gpu_package'],
    [
      'server_type: sliders-1, image: debian-13, plan_id: 51',
      'sizing_mode_mismatch',
      '`cores` and `memory_mb` and `disk_gb`',
    ],
    ['server_type: 5, image: debian-13, cores: 2', 'sizing_mode_mismatch', 'plan_id'],
    ['server_type: 5, image: debian-13, gpu_package: l40s-1', 'sizing_mode_mismatch', 'plan_id'],
  ])('%s is blocked as %s before anything is sent', async (entry, code, alternatives) => {
    const { apply, emulator } = rig();

    const report = await apply(servers({ web: entry }));

    expect(codesOf(report)).toEqual({ 'servers.web': code });
    expect(resolveOf(report.blocked[0])).toContain(alternatives);
    expect(emulator.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
  });

  test('an ISO of the project is no image, and a system image of the same name is one', async () => {
    const { apply, plan, emulator } = rig();
    const isos =
      'isos: {own: {url: "https://mirror.example.com/own.iso"}, ubuntu: {name: ubuntu-24.04, url: "https://mirror.example.com/u.iso"}}\n';
    await apply(isos);
    const id = projectOf(emulator).isos[0]?.id;

    for (const image of ['own', id]) {
      const planned = await plan(isos + servers({ web: `server_type: 5, plan_id: 51, image: ${image}` }));
      expect(codesOf(planned)).toEqual({ 'servers.web': 'image_not_supported' });
    }
    const system = servers({ web: 'server_type: 5, plan_id: 51, image: ubuntu-24.04' });
    expect((await apply(isos + system)).outcome).toBe('converged');
  });

  test('a list of packages is an order of preference: unsold packages warn, full packages are skipped', async () => {
    const { apply, plan, emulator } = rig();
    emulator.mutate({ do: 'withdraw_package', package: 'h100-1' });
    emulator.mutate({ do: 'set_capacity', package: 'l40s-2', capacity: 0 });
    const text = servers({ ai: `${gpu}, gpu_package: [h100-1, l40s-2, l40s-1]` });

    const planned = await plan(text);
    const report = await apply(text);

    expect(planned.warnings).toMatchObject([
      { code: 'gpu_package_not_sold', message: expect.stringContaining('h100-1') },
    ]);
    expect(planned.cost.known_monthly_delta).toBe('1690.00');
    expect(report.outcome).toBe('converged');
    expect(projectOf(emulator).servers[0]?.gpuPackage).toBe('l40s-1');
    expect((await plan(text)).operations).toEqual([]);
  });

  test('a package that is withdrawn later is a warning, and no change', async () => {
    const { apply, plan, emulator } = rig();
    const text = servers({ ai: `${gpu}, gpu_package: l40s-1` });
    await apply(text);
    emulator.mutate({ do: 'withdraw_package', package: 'l40s-1' });

    const planned = await plan(text);

    expect([planned.operations, warningsOf(planned)]).toEqual([[], ['catalogue_changed']]);
  });
});

describe('src/reconcilers/server.ts: values that cannot change in place', () => {
  test.each([
    ['cores: 2', 'cores'],
    ['image: debian-13', 'image'],
    ['name: other', 'name'],
    ['ssh_keys: [101]', 'ssh_keys'],
    ['public_ipv4: {new: true}', 'public_ipv4'],
  ])('%s needs a replacement, which the spec has to allow', async (change, path) => {
    const { apply, plan, emulator } = rig();
    await apply(servers({ web: sliders }));
    const [field = ''] = change.split(':');
    const entry = `${sliders}, `.replace(new RegExp(`${field}: [^,]*, `), '') + change;

    const planned = await plan(servers({ web: entry }));
    const permitting = servers({ web: `${entry}, replace: {order: delete_first}` });
    const allowed = await plan(permitting);

    expect(codesOf(planned)).toEqual({ 'servers.web': 'replace_not_allowed' });
    expect(planned.blocked[0]?.reason).toContain(path);
    expect(resolveOf(planned.blocked[0])).toContain('replace: allowed');
    expect(allowed.summary).toMatchObject({ replace: 1, blocked: 0 });
    expect((await apply(permitting)).outcome).toBe('converged');
    expect(projectOf(emulator).servers).toHaveLength(1);
    expect((await plan(servers({ web: entry }))).operations).toEqual([]);
  });

  const whole = (cores: number, more = '') => `networks: {backend: {cidr: 10.20.0.0/24}}
settings: {max_deletions: 10}
servers:
  web:
    {server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, replace: {order: delete_first},
     public_ipv4: {new: true}, network_interfaces: [backend], firewall: {enabled: true, rules: []}, backup: {max_age: 24h}${more}}
`;

  test('keep_ip keeps the address in the project, and the plan shows that the address is billed', async () => {
    const { apply, plan, emulator } = rig();
    await apply(whole(1, ', keep_ip: true'));
    const [kept] = projectOf(emulator).ips;

    const planned = await plan(whole(2, ', keep_ip: true'));
    const report = await apply(whole(2, ', keep_ip: true'));

    expect(idsOf(planned)).not.toContain('delete:servers.web.public_ipv4');
    expect(planned.cost.left_billed).toContain(`${kept?.address} stays billed: keep_ip`);
    expect(planned.warnings).toMatchObject([{ code: 'replacement_unchecked' }]);
    expect(report.outcome).toBe('converged');
    expect(projectOf(emulator).ips.map(({ id, serverId }) => [id, serverId !== null])).toEqual([
      [kept?.id, false],
      [expect.any(Number), true],
    ]);
  });

  test.each([
    [
      'plan_id',
      'server_type: 5, image: debian-13, plan_id: 51',
      ['plan_id: 51', 'plan_id: 52'],
      'unproven: `plan_id: 52`, payment and quota.',
    ],
    [
      'ssh_keys',
      `${sliders}, ssh_keys: [101, 102]`,
      ['[101, 102]', '[102, 999]'],
      'unproven: `ssh_keys: [102, 999]`, payment and quota.',
    ],
    [
      'disk_type',
      `${sliders}, disk_type: ssd`,
      ['ssd', 'nvme'],
      'unproven: `disk_type: nvme`, payment and quota.',
    ],
    ['cores', sliders, ['cores: 1', 'cores: 2'], 'unproven: `cores: 2`, payment and quota.'],
    ['name', sliders, ['cores: 1', 'name: other, cores: 1'], 'unproven: `name: other`, payment and quota.'],
    [
      'server_type',
      `${gpu}, gpu_package: l40s-1`,
      [`${gpu}, gpu_package: l40s-1`, sliders],
      'unproven: `cores: 1`, `memory_mb: 1024`, `disk_gb: 20`, payment and quota.',
    ],
  ])('the plan warns of a replacement that only the API can refuse, by its %s', async (_, entry, [
    from,
    to,
  ], says) => {
    const { apply, plan } = rig({ emulator: { readings: { planList: 'hidden' } } });
    const file = (text: string) => servers({ one: `${text}, replace: {order: delete_first}` });
    await apply(file(entry));

    const { warnings } = await plan(file(entry.replace(from as string, to as string)));

    expect(warnings).toMatchObject([
      { code: 'replacement_unchecked', key: 'servers.one', message: expect.stringContaining(says as string) },
    ]);
  });

  test('a replacement with another pricing mode names the size of the old server', async () => {
    const { apply, plan } = rig();
    await apply(servers({ one: 'server_type: 5, image: debian-13, plan_id: 51' }));

    const { blocked } = await plan(servers({ one: `${gpu}, gpu_package: l40s-1` }));

    expect(blocked).toMatchObject([{ code: 'replace_not_allowed' }]);
    expect(blocked[0]?.remedies[0]).toMatchObject({
      set: { server_type: 5, image: 'debian-13', plan_id: 51 },
      remove: ['gpu_package'],
    });
  });

  test('the plan warns before an address of the spec loses its last server', async () => {
    const { apply, plan } = rig();
    const file = (address: string, settings = 'prune: true') =>
      `settings: {${settings}, max_deletions: 9}\nips: {web: {}}\nservers: {one: {${sliders}, replace: {order: delete_first}${address}}}\n`;
    await apply(file(', public_ipv4: {ip: web}'));
    const leaving = (settings: string) => `settings: {${settings}}\nips: {web: {}}\n`;

    const told = async (text: string) => (await plan(text)).warnings.map(({ code }) => code);

    expect(await told(leaving('prune: true'))).toEqual(['address_left_idle']);
    const unproven = 'replacement_unchecked';
    expect(await told(file(', public_ipv4: {new: true}'))).toEqual(['address_left_idle', unproven]);
    const other = file(', public_ipv4: {ip: web}').replace('ubuntu-24.04', 'debian-13');
    expect(await told(other)).toEqual([unproven]);
    expect(await told(leaving('prune: false'))).toEqual([]);
    expect(await told('settings: {prune: true}')).toEqual([]);
  });

  test('the plan warns once of a new server with a public address and no firewall', async () => {
    const { apply, plan } = rig();
    const entry = (more: string) => `servers: {one: {${sliders}${more}}}\n`;
    const open = ', public_ipv4: {new: true}';
    expect(warningsOf(await plan(entry(open)))).toEqual(['no_firewall']);
    expect(warningsOf(await plan(entry('')))).toEqual([]);
    expect(warningsOf(await plan(entry(`${open}, firewall: {enabled: false}`)))).toEqual([]);
    await apply(entry(open));
    expect(warningsOf(await plan(entry(open)))).toEqual([]);
  });

  test('a server whose replacement max_deletions blocks keeps its parts unchanged', async () => {
    const { apply, plan } = rig();
    await apply(whole(1));
    const capped = whole(2).replace('max_deletions: 10', 'max_deletions: 0');

    const planned = await plan(capped);

    expect(planned.operations).toEqual([]);
    expect(codesOf(planned)).toEqual({ 'servers.web': 'max_deletions' });
    expect((await apply(capped)).outcome).toBe('blocked');
  });

  test('a plan that the server type does not have is blocked before any deletion', async () => {
    const { apply, plan, emulator } = rig();
    const planned = 'server_type: plans-1, image: ubuntu-24.04, replace: {order: delete_first}';
    const of = (id: number) => servers({ one: `${planned}, plan_id: ${id}` });
    const [held] = (await plan(of(99))).blocked;
    expect(held?.code).toBe('plan_not_found');
    expect(resolveOf(held)).toMatch(/^set `plan_id` to one of 51 \(.+\), 52 \(.+\), 53 \(/);
    await apply(of(51));
    expect(codesOf((await apply(of(99))).plan)).toEqual({ 'servers.one': 'plan_not_found' });
    expect(projectOf(emulator).servers).toHaveLength(1);
    expect(warningsOf(await plan(of(52)))).toEqual(['replacement_unchecked']);
  });

  test('the plan of a GPU server shows every preference, and the highest possible cost', async () => {
    const { plan } = rig();
    const listed = await plan(servers({ ai: `${gpu}, gpu_package: [l40s-1, l40s-2]` }));
    const [creation] = listed.operations;

    expect(creation?.changes).toContainEqual({ path: 'gpu_package', from: null, to: ['l40s-1', 'l40s-2'] });
    expect(listed.cost).toMatchObject({ known_monthly_delta: '890.00', known_monthly_most: '1690.00' });
    expect(planText(listed, plainPaint)).toContain(
      'Cost: +890.00 a month, from 0.00 to 890.00 (at most +1690.00 with another package); known prices only',
    );
    const plain = await plan(servers({ ai: `${gpu}, gpu_package: l40s-1` }));
    expect(plain.cost).not.toHaveProperty('known_monthly_most');
  });
});

describe('src/reconcilers/server.ts: deletion', () => {
  test('`protect` also holds after the entry has left the spec, and the remedy works', async () => {
    const { apply, plan, emulator } = rig();
    await apply(servers({ web: `${sliders}, protect: true` }));

    const larger = sliders.replace('cores: 1', 'cores: 2');
    const replaced = servers({ web: `${larger}, replace: {order: delete_first}, protect: true` });
    for (const text of [prune, replaced])
      expect(codesOf(await plan(text))).toEqual({ 'servers.web': 'protected' });

    await apply(servers({ web: `${sliders}, protect: false` }));
    expect((await apply(prune)).outcome).toBe('converged');
    expect(emulator.billed()).toEqual([]);
  });

  test('a deletion lists the resources that stay billed: backups, and an address without an entry', async () => {
    const { apply, plan, emulator } = rig();
    emulator.mutate({ do: 'add_ip' });
    const web = `${sliders}, public_ipv4: {reuse: true}, backup: {max_age: 24h}`;
    await apply(`settings: {unmanaged: ignore}\n${servers({ web })}`);
    const [{ address } = { address: '' }] = projectOf(emulator).ips;

    const planned = await plan(prune);
    const report = await apply(prune);

    expect(planned.cost.left_billed).toEqual([
      expect.stringMatching(/^1 backup of servers\.web stays billed: .* client area$/),
      `${address} stays billed: it is attached to servers.web, and no entry of the spec declares it`,
    ]);
    expect(report.outcome).toBe('converged');
    expect(emulator.billed().map(({ kind }) => kind)).toEqual(['ip', 'backup']);
  });

  test('a deleted server is created again with its parts, or reported with `drift: report`', async () => {
    const { apply, plan, emulator } = rig();
    const text = servers({ web: `${sliders}, public_ipv4: {new: true}, firewall: {enabled: true}` });
    await apply(text);
    const [address] = projectOf(emulator).ips;
    emulator.mutate({ do: 'delete_server', id: projectOf(emulator).servers[0]?.id ?? 0 });

    const reported = await plan(`settings: {drift: report}\n${text}`);
    const planned = await plan(text);
    const report = await apply(text);

    expect(reported).toMatchObject({ operations: [], blocked: [] });
    expect(warningsOf(reported)).toContain('drift');
    expect(idsOf(planned)).toEqual(['create:servers.web', 'create:servers.web.firewall']);
    expect(report.outcome).toBe('converged');
    // The new server has the address of the old one.
    const [server] = projectOf(emulator).servers;
    expect(projectOf(emulator).ips).toMatchObject([{ id: address?.id, serverId: server?.id }]);
    expect((await plan(text)).operations).toEqual([]);
  });

  test('addresses of several deleted servers are deleted only with `prune: true`', async () => {
    const { apply, plan, emulator } = rig();
    const one = `${sliders}, public_ipv4: {new: true}`;
    const text = servers({ a: one, b: one });
    await apply(text);
    for (const { id } of [...projectOf(emulator).servers]) emulator.mutate({ do: 'delete_server', id });

    const kept = await plan(text);
    expect(idsOf(kept)).toEqual([]);
    expect(codesOf(kept)).toMatchObject({
      'servers.a.public_ipv4': 'prune_disabled',
      'servers.b.public_ipv4': 'prune_disabled',
    });
    const reusing = await plan(text.replaceAll('new: true', 'reuse: true'));
    expect(idsOf(reusing)).toEqual(['create:servers.a', 'create:servers.b']);
    expect((await apply(`${prune}\n${text}`)).outcome).toBe('converged');
    expect(projectOf(emulator).ips).toHaveLength(2);
  });
});

describe('src/reconcilers/server.ts: existing servers', () => {
  test('a deleted server with `id:` leads to a valid spec, and the message names the remaining resources', async () => {
    const { apply, plan, emulator } = rig();
    const id = added(emulator, { do: 'add_server', name: 'web' });
    const [address] = projectOf(emulator).ips;
    const file = (entry: string) => `ips: {web: {id: ${address?.id}}}\n${servers({ web: entry })}`;
    await apply(file(`id: ${id}, public_ipv4: {ip: web}`));
    emulator.mutate({ do: 'delete_server', id });

    const gone = await plan(file(`id: ${id}, public_ipv4: {ip: web}`));

    expect(gone.blocked).toMatchObject([
      {
        code: 'not_found',
        remedies: resolving(
          'remove servers.web from the spec (if the resource is not needed) | set `id` in servers.web | set `server_type` and `image` and remove `id` in servers.web (to create a new resource)',
        ),
      },
    ]);
    expect(gone.warnings).toMatchObject([
      {
        code: 'address_left_idle',
        message: `ips.web (${address?.address}) is detached, and stays billed as long as its entry is in the spec`,
      },
    ]);
    const anew = await plan(file(`${sliders}, public_ipv4: {ip: web}`));
    expect([anew.blocked, idsOf(anew)]).toEqual([[], ['create:servers.web']]);
    const without = await plan(`ips: {web: {id: ${address?.id}}}\n`);
    expect([without.blocked, warningsOf(without)]).toEqual([[], ['released']]);
  });

  test('a deleted server with `id:` keeps its own address until the operator decides', async () => {
    const { apply, plan, emulator } = rig();
    const id = added(emulator, { do: 'add_server', name: 'web' });
    const bound = servers({ web: `id: ${id}, public_ipv4: {new: true}` });
    await apply(bound);
    emulator.mutate({ do: 'delete_server', id });

    const gone = await plan(bound);

    expect([codesOf(gone), idsOf(gone)]).toEqual([{ 'servers.web': 'not_found' }, []]);
    expect(gone.warnings).toMatchObject([
      {
        code: 'address_not_as_declared',
        message: expect.stringContaining('is billed, and no longer attached to its server'),
      },
    ]);
    expect(idsOf(await plan(prune))).toEqual(['delete:servers.web.public_ipv4']);
    const anew = await plan(servers({ web: `${sliders}, public_ipv4: {new: true}` }));
    expect(idsOf(anew)).toEqual(['create:servers.web']);
  });

  test('with an empty state, existing resources block purchases until they are adopted or ignored', async () => {
    const { apply, plan, clock, engine, emulator } = rig();
    const id = added(emulator, { do: 'add_server', name: 'web' });
    const free = added(emulator, { do: 'add_ip' });
    const text = `ips: {spare: {}}\nnetworks: {a: {cidr: 10.1.0.0/24}}\n${servers({ web: sliders })}`;

    const planned = await plan(text);
    expect(codesOf(planned)).toEqual({
      'ips.spare': 'unmanaged_resources',
      'servers.web': 'unmanaged_resources',
    });
    expect(idsOf(planned)).toEqual(['create:networks.a']);
    expect((await plan(`settings: {unmanaged: ignore}\n${text}`)).blocked).toEqual([]);

    await clock.run(engine.adopt(load(text), 'servers.web' as never, String(id)));
    await clock.run(engine.adopt(load(text), 'ips.spare' as never, String(free)));
    expect((await apply(text)).outcome).toBe('converged');
    expect(emulator.billed()).toHaveLength(3);
  });

  test('an adopted server is compared with the values that the operator confirmed, in any notation', async () => {
    const { apply, plan, emulator, engine, clock } = rig();
    const id = added(emulator, { do: 'add_server', name: 'web' });
    const entry = servers({ web: `id: ${id}, ${sliders}` });
    await apply(entry);
    await clock.run(engine.adopt(load(entry), 'servers.web' as ResourceKey, String(id)));
    const image = emulator.world.serverTypes[0]?.images[0]?.id;

    const sizes = 'cores: 1, memory_mb: 1024, disk_gb: 20';
    const larger = `${sliders.replace('cores: 1', 'cores: 8')}, replace: {order: delete_first}`;

    const same = await plan(servers({ web: `id: ${id}, server_type: 3, image: ${image}, ${sizes}` }));
    const other = await plan(servers({ web: `id: ${id}, ${larger}` }));

    expect([same.operations, same.blocked]).toEqual([[], []]);
    expect(codesOf(other)).toEqual({ 'servers.web': 'replace_not_allowed' });
    expect(resolveOf(other.blocked[0])).toContain('remove `id` in servers.web');
    const free = `settings: {prune: true}\n${servers({ web: larger })}`;
    expect((await plan(free)).summary.replace).toBe(1);
  });

  test('an unmanaged server has to exist, and is not changed', async () => {
    const { apply, plan, emulator } = rig();
    const text = servers({ other: 'id: 2001, managed: false' });
    expect(codesOf(await plan(text))).toEqual({ 'servers.other': 'not_found' });
    emulator.mutate({ do: 'add_server', name: 'other' });

    expect((await apply(text)).outcome).toBe('converged');
    expect((await apply(prune)).outcome).toBe('converged');
    expect(projectOf(emulator).servers).toHaveLength(1);
  });
});
