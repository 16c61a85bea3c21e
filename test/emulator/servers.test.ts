import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../src/emulator/profile.ts';
import { type caller, imageOf, sliderServer, stage } from './support.ts';

type Call = ReturnType<typeof caller>;

async function gpuServer(call: Call, more: object = {}): Promise<object> {
  return { name: 'gpu-1', server_type_id: 8, image: await imageOf(call, 8), gpu_package: 'l40s-1', ...more };
}

describe('src/emulator/handlers/servers.ts', () => {
  test('a server is creating without power, and has its id and address at once', async () => {
    const { call } = stage();
    const made = await call(
      'POST',
      '/servers',
      await sliderServer(call, { public_ipv4: { new: true }, ssh_keys: [101] }),
    );
    expect(made.status).toBe(202);
    const { id, ...server } = made.body.data;
    expect(server).toMatchObject({ name: 'web-1', status: 'creating', power: false, ipv4: '203.0.113.10' });
    expect(server.ips).toMatchObject([
      { server_id: id, primary: true, prefix: '/24', gateway: '203.0.113.1' },
    ]);
    const cards = (await call('GET', `/servers/${id}/network-interfaces`)).body.data;
    expect(cards).toMatchObject([{ id: 'net0', public: true, firewall: false }]);
    const firewall = (await call('GET', `/servers/${id}/firewall`)).body.data;
    expect(firewall).toEqual({ enabled: false, policy_in: 'drop', policy_out: 'accept', rules: [] });
  });

  test.each([
    ['gpu_package_required', { gpu_package: undefined }],
    ['gpu_package_not_found', { gpu_package: 'a100-9' }],
    ['resources_managed_by_package', { cores: 4 }],
    ['resources_managed_by_package', { plan_id: 51 }],
    ['gpus_not_supported', { gpus: 1 }],
    ['disk_type_not_supported', { disk_type: 'ssd' }],
  ])('a packaged type answers %s to %j', async (code, more) => {
    const { call, emulator } = stage();
    const refused = await call(
      'POST',
      '/servers',
      await gpuServer(call, { public_ipv4: { new: true }, ...more }),
    );
    expect([refused.status, refused.body.code]).toEqual([422, code]);
    expect(emulator.billed()).toEqual([]);
  });

  test('capacity is used up and comes back; a withdrawn package is not found', async () => {
    const { call, clock, emulator } = stage();
    emulator.mutate({ do: 'set_capacity', package: 'l40s-1', capacity: 1 });
    const body = await gpuServer(call);
    const { id } = (await call('POST', '/servers', body)).body.data;
    expect((await call('POST', '/servers', body)).body.code).toBe('no_gpu_capacity');
    await call('DELETE', `/servers/${id}`);
    await clock.forward(20_000);
    expect((await call('POST', '/servers', body)).status).toBe(202);
    emulator.mutate({ do: 'withdraw_package', package: 'l40s-1' });
    expect((await call('POST', '/servers', body)).body.code).toBe('gpu_package_not_found');
    const { gpu_packages } = (await call('GET', '/server-types/8/pricing')).body.data;
    expect(gpu_packages.map(({ key }: { key: string }) => key)).toEqual(['l40s-2', 'h100-1']);
  });

  test('no capacity: a fresh address is released, a free one stays the caller’s', async () => {
    const { call, emulator } = stage();
    emulator.mutate({ do: 'set_capacity', package: 'l40s-1', capacity: 0 });
    expect(
      (await call('POST', '/servers', await gpuServer(call, { public_ipv4: { new: true } }))).status,
    ).toBe(409);
    expect(emulator.billed()).toEqual([]);
    const ip = (await call('POST', '/ips', { server_type_id: 8 })).body.data;
    expect(
      (await call('POST', '/servers', await gpuServer(call, { public_ipv4: { reuse: true } }))).status,
    ).toBe(409);
    expect((await call('GET', `/ips/${ip.id}`)).body.data.server_id).toBeNull();
  });

  test('reuse takes any free address of the project, and a new one only when none is free', async () => {
    const { call, emulator } = stage();
    const main = (await call('POST', '/ips', {})).body.data;
    const reuse = { public_ipv4: { reuse: true } };
    const gpu = (await call('POST', '/servers', await gpuServer(call, reuse))).body.data;
    expect(gpu.ipv4).toBe(main.address);
    const web = (await call('POST', '/servers', await sliderServer(call, reuse))).body.data;
    expect(web.ipv4).not.toBe(main.address);
    expect(emulator.world.projects[0]?.ips).toHaveLength(2);
  });

  test('or only one of the pool that serves the type', async () => {
    const { call, emulator } = stage({ readings: { reusePool: 'same' } });
    const main = (await call('POST', '/ips', {})).body.data;
    const reuse = { public_ipv4: { reuse: true } };
    const gpu = (await call('POST', '/servers', await gpuServer(call, reuse))).body.data;
    expect(gpu.ipv4).toMatch(/^198\.51\.100\./);
    const web = (await call('POST', '/servers', await sliderServer(call, reuse))).body.data;
    expect(web.ipv4).toBe(main.address);
    expect(emulator.world.projects[0]?.ips).toHaveLength(2);
  });

  test.each([
    [{ cores: '2' }, 'cores'],
    [{ cores: 2.5 }, 'cores'],
    [{ colour: 'red' }, 'colour'],
    [{ public_ipv4: { new: 'true' } }, 'public_ipv4.new'],
    [{ public_ipv4: { new: true, reuse: true } }, 'public_ipv4'],
    [{ public_ipv4: { ip_id: 1 } }, 'public_ipv4.ip_id'],
    [{ ssh_keys: [101, 999] }, 'ssh_keys'],
    [{ gpu_package: 'l40s-1' }, 'gpu_package'],
    [{ disk_gb: undefined }, 'disk_gb'],
    [{ image: 'ubuntu-24.04' }, 'image'],
    [{ name: '   ' }, 'name'],
  ])('a slider type refuses %j', async (more, name) => {
    const { call, emulator } = stage();
    const refused = await call('POST', '/servers', await sliderServer(call, more));
    expect([refused.status, refused.body.code]).toEqual([422, 'invalid_request']);
    expect(refused.body.invalid_params.map((param: { name: string }) => param.name)).toContain(name);
    expect(emulator.world.executions).toEqual([]);
  });

  test('an own ISO stands in the image list and no server can be made from it', async () => {
    const { call, clock } = stage();
    const iso = (await call('POST', '/isos', { url: 'https://example.com/rescue.iso' })).body.data;
    await clock.forward(60_000);
    const images = (await call('GET', '/server-types/3/images')).body.data;
    expect(images.at(-1)).toEqual({ id: iso.id, name: 'rescue.iso', type: 'useriso' });
    const refused = await call('POST', '/servers', await sliderServer(call, { image: iso.id }));
    expect([refused.status, refused.body.code]).toEqual([422, 'image_not_supported']);
  });

  test('spending is refused with 402 while suspended; what reduces the bill is not', async () => {
    const { call, clock, emulator } = stage();
    const body = await sliderServer(call, { public_ipv4: { new: true } });
    const { id, ips } = (await call('POST', '/servers', body)).body.data;
    await clock.forward(45_000);
    for (const [standing, status] of [
      ['suspended', 'Suspended'],
      ['unpaid', 'Active'],
    ] as const) {
      emulator.mutate({ do: 'set_standing', standing });
      expect((await call('GET', '/project')).body.data.status).toBe(status);
      expect((await call('POST', '/servers', body)).status).toBe(402);
      expect((await call('POST', '/ips', {})).status).toBe(402);
      expect((await call('POST', `/servers/${id}/backups`)).status).toBe(402);
    }
    expect((await call('DELETE', `/servers/${id}`)).status).toBe(202);
    await clock.forward(20_000);
    expect((await call('DELETE', `/ips/${ips[0].id}`)).status).toBe(200);
  });

  test('a firewall is enabled only with a public card, and refuses any other name for the note', async () => {
    const { call } = stage();
    const { id } = (await call('POST', '/servers', await sliderServer(call))).body.data;
    const off = { enabled: false, policy_in: 'drop', rules: [] };
    expect((await call('PUT', `/servers/${id}/firewall`, off)).status).toBe(200);
    const refused = await call('PUT', `/servers/${id}/firewall`, { ...off, enabled: true });
    expect([refused.status, refused.body.code]).toEqual([409, 'firewall_no_public_iface']);
    const rules = [{ direction: 'in', action: 'accept', enabled: true, note: 'x' }];
    const unknown = await call('PUT', `/servers/${id}/firewall`, { ...off, rules });
    expect(unknown.body.invalid_params).toEqual([{ name: 'rules[0].note', reason: 'is not a known field' }]);
    expect((await call('PUT', `/servers/${id}/firewall`, { ...off, policy_out: 'drop' })).status).toBe(422);
  });

  test('cards, networks and their refusals', async () => {
    const { call, clock } = stage();
    const { id } = (await call('POST', '/servers', await sliderServer(call))).body.data;
    await call('POST', '/networks', { name: 'backend', cidr: '10.20.0.0/24' });
    await clock.forward(45_000);
    const network = (await call('GET', '/networks')).body.data[1];
    const added = await call('POST', `/servers/${id}/network-interfaces`, { network_id: network.id });
    expect(added.body.data).toMatchObject({ id: 'net0', public: false, network_id: network.id });
    expect(added.body.task.status).toBe('pending');
    expect((await call('GET', '/networks')).body.data[1].server_count).toBe(1);
    expect((await call('DELETE', `/networks/${network.id}`)).body.code).toBe('network_in_use');
    expect((await call('POST', `/servers/${id}/network-interfaces`, { network_id: 999 })).status).toBe(404);
    await call('DELETE', `/servers/${id}`);
    await clock.forward(20_000);
    const deleted = await call('DELETE', `/networks/${network.id}`);
    expect([deleted.status, deleted.body.data]).toEqual([202, null]);
    await clock.forward(8000);
    expect((await call('GET', '/networks?skip_vm_count=1')).body.data).toHaveLength(1);
  });

  test('a token reaches as far as its level, its member and its life', async () => {
    const { call, emulator } = stage();
    const { read, member, readWrite } = emulator.tokens();
    expect((await call('POST', '/ips', {}, { token: read })).body.code).toBe('insufficient_scope');
    expect((await call('DELETE', '/ips/1', undefined, { token: member })).body.code).toBe(
      'insufficient_privileges',
    );
    expect((await call('GET', '/ips', undefined, { token: 'vdc_nobody' })).status).toBe(401);
    emulator.mutate({ do: 'revoke_token', token: readWrite });
    const refused = await call('GET', '/ips');
    expect([refused.status, refused.headers['content-type']]).toEqual([401, 'application/problem+json']);
    expect(JSON.stringify(emulator.world)).not.toContain(readWrite);
  });
});

describe('src/emulator/profile.ts', () => {
  const all = `
limits: {window: 1m, reads: 60, writes: 20}
time_scale: 60
operations:
  list_servers: {method: GET, path: /servers}
  read_server: {}
  remove_network_interface: {}
  update_backup_policy: {method: PUT, path: "/servers/{server_id}/backup-policy"}
  insert_iso: {method: PUT, path: "/servers/{server_id}/iso", body: {iso_id: "{iso_id}"}}
  take_server_image: {}
  named_address: {body: {public_ipv4: {ip_id: "{ip_id}"}}}
  something_newer: {method: GET, path: /newer}
`;

  test('operations that the table does not show are off', async () => {
    const { call } = stage();
    const missing = await call('GET', '/servers');
    expect([missing.status, missing.headers.allow]).toEqual([405, 'POST']);
    expect((await call('GET', '/servers/1')).headers.allow).toBe('DELETE');
    expect((await call('DELETE', '/servers/1/iso')).headers.allow).toBe('PUT');
    expect((await call('PUT', '/servers/1/backup-policy', { enabled: true })).status).toBe(405);
  });

  test('a profile switches them on', async () => {
    const { call, clock } = stage({ profile: loadProfile(all) });
    const ip = (await call('POST', '/ips', {})).body.data;
    const body = await sliderServer(call, { public_ipv4: { ip_id: ip.id } });
    const server = (await call('POST', '/servers', body)).body.data;
    expect(server.ipv4).toBe(ip.address);
    expect((await call('POST', '/servers', body)).body.code).toBe('ip_in_use');
    expect((await call('GET', '/servers')).body.data).toMatchObject([{ id: server.id, status: 'creating' }]);
    const iso = (await call('POST', '/isos', { url: 'https://example.com/a.iso' })).body.data;
    await clock.forward(60_000);
    expect((await call('GET', `/servers/${server.id}`)).body.data).toMatchObject({
      status: 'active',
      power: true,
    });
    expect((await call('PUT', `/servers/${server.id}/iso`, { iso_id: iso.id })).status).toBe(200);
    expect((await call('DELETE', `/isos/${iso.id}`)).body.code).toBe('iso_in_use');
    const policy = { enabled: true, days: ['sun'], hour: 3, minute: 30, keep: 2 };
    const set = await call('PUT', `/servers/${server.id}/backup-policy`, policy);
    expect(set.body.data).toEqual({ ...policy, next_run: '2026-08-02T05:30:00+02:00', last_run: null });
    await clock.forward(21 * 86_400_000);
    expect((await call('GET', `/servers/${server.id}/backups`)).body.data).toMatchObject(
      [
        { id: '2026-08-16T03:30:00Z', status: 'available' },
        { id: '2026-08-09T03:30:00Z', status: 'available' },
      ].toReversed(),
    );
    const image = await call('POST', '/server-images', { server_id: server.id, name: 'golden' });
    expect(image.status).toBe(202);
  });

  test('no image is taken from a packaged server', async () => {
    const { call } = stage({ profile: loadProfile(all) });
    const { id } = (await call('POST', '/servers', await gpuServer(call))).body.data;
    const refused = await call('POST', '/server-images', { server_id: id, name: 'x' });
    expect([refused.status, refused.body.code]).toEqual([422, 'server_type_not_supported']);
  });

  test.each([
    ['limits: {reads: 0}', /profile\.limits\.reads/],
    ['limits: {window: soon}', /profile\.limits\.window/],
    ['operations: {list_servers: {method: FETCH}}', /list_servers\.method/],
    ['operations: {list_servers: {path: servers}}', /list_servers\.path/],
    ['- 1', /profile: must be a map/],
  ])('%j is refused', (text, message) => {
    expect(() => loadProfile(text)).toThrow(message);
  });
});
