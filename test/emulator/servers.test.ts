import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../src/emulator/profile.ts';
import { imageOf, sliderServer, stage } from './support.ts';

describe('src/emulator/handlers/servers.ts', () => {
  test('`reusePool: same` reuses only an address of the pool of the server type', async () => {
    const { call, emulator } = stage({ readings: { reusePool: 'same' } });
    const main = (await call('POST', '/ips', {})).body.data;
    const reuse = { public_ipv4: { reuse: true } };
    const type = { server_type_id: 8, image: await imageOf(call, 8), gpu_package: 'l40s-1' };
    const gpu = (await call('POST', '/servers', { name: 'gpu-1', ...type, ...reuse })).body.data;
    expect(gpu.ipv4).toMatch(/^198\.51\.100\./);
    const web = (await call('POST', '/servers', await sliderServer(call, reuse))).body.data;
    expect(web.ipv4).toBe(main.address);
    expect(emulator.world.projects[0]?.ips).toHaveLength(2);
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

  test('operations that the table does not show are disabled', async () => {
    const { call } = stage();
    const missing = await call('GET', '/servers');
    expect([missing.status, missing.headers.allow]).toEqual([405, 'POST']);
    expect((await call('GET', '/servers/1')).headers.allow).toBe('DELETE');
    expect((await call('DELETE', '/servers/1/iso')).headers.allow).toBe('PUT');
    expect((await call('PUT', '/servers/1/backup-policy', { enabled: true })).status).toBe(405);
  });

  test('a profile enables undocumented operations', async () => {
    const { call, clock } = stage({ profile: loadProfile(all) });
    const ip = (await call('POST', '/ips', {})).body.data;
    const body = await sliderServer(call, { public_ipv4: { ip_id: ip.id } });
    const server = (await call('POST', '/servers', body)).body.data;
    expect(server.ipv4).toBe(ip.address);
    expect((await call('POST', '/servers', body)).body.code).toBe('ip_in_use');
    expect((await call('GET', '/servers')).body.data).toMatchObject([{ id: server.id, status: 'creating' }]);
    const iso = (await call('POST', '/isos', { url: 'https://example.com/a.iso' })).body.data;
    await clock.advance(60_000);
    expect((await call('GET', `/servers/${server.id}`)).body.data).toMatchObject({
      status: 'active',
      power: true,
    });
    expect((await call('PUT', `/servers/${server.id}/iso`, { iso_id: iso.id })).status).toBe(200);
    expect((await call('DELETE', `/isos/${iso.id}`)).body.code).toBe('iso_in_use');
    const policy = { enabled: true, days: ['sun'], hour: 3, minute: 30, keep: 2 };
    const set = await call('PUT', `/servers/${server.id}/backup-policy`, policy);
    expect(set.body.data).toEqual({ ...policy, next_run: '2026-08-02T05:30:00+02:00', last_run: null });
    await clock.advance(21 * 86_400_000);
    expect((await call('GET', `/servers/${server.id}/backups`)).body.data).toMatchObject(
      [
        { id: '2026-08-16T03:30:00Z', status: 'available' },
        { id: '2026-08-09T03:30:00Z', status: 'available' },
      ].toReversed(),
    );
    const image = await call('POST', '/server-images', { server_id: server.id, name: 'golden' });
    expect(image.status).toBe(202);
  });

  test.each([
    ['limits: {reads: 0}', /profile\.limits\.reads/],
    ['limits: {window: soon}', /profile\.limits\.window/],
    ['operations: {list_servers: {method: FETCH}}', /list_servers\.method/],
    ['operations: {list_servers: {path: servers}}', /list_servers\.path/],
    ['- 1', /profile: must be a map/],
  ])('refuses %j', (text, message) => {
    expect(() => loadProfile(text)).toThrow(message);
  });
});
