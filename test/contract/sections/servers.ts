import { describe, expect } from 'vitest';
import { test } from '../contract.ts';

describe('§4 /servers', () => {
  test('§3 creation answers 202 with the id at once, status `creating` and power false', async ({ api }) => {
    const answer = await api.post('/servers', await api.serverBody({ name: 'web-1' }));
    expect(answer.status).toBe(202);
    expect(answer.data).toMatchObject({ name: 'web-1', status: 'creating', power: false });
    expect(answer.task).toMatchObject({ is_terminal: false });
    await api.finish(answer);
    expect((await api.get(`/servers/${answer.data.id}/firewall`)).status).toBe(200);
  });

  test('§4.8 a Location of a creation is the path of the created resource', async ({ api }) => {
    const answer = await api.post('/servers', await api.serverBody());
    expect(answer.headers.location ?? `/v1/servers/${answer.data.id}`).toMatch(
      new RegExp(`/v1/servers/${answer.data.id}$`),
    );
  });

  test('§4.3 the name is trimmed', async ({ api }) => {
    const answer = await api.post('/servers', await api.serverBody({ name: '  web-1\n' }));
    expect(answer.data.name).toBe('web-1');
  });

  test('§4 plan types take plan_id', async ({ api }) => {
    const body = await api.planBody();
    expect((await api.post('/servers', body)).status).toBe(202);
  });

  test('§4 public_ipv4 {new: true} allocates a fresh address, also when one is free', async ({ api }) => {
    const free = (await api.post('/ips', {})).data;
    const server = await api.server({ public_ipv4: { new: true } });
    expect(server.ipv4).not.toBe(free.address);
    const ips = (await api.get('/ips')).data;
    expect(ips.map((ip) => ip.server_id).toSorted()).toEqual([null, server.id].toSorted());
  });

  test('§4 public_ipv4 {reuse: true} takes a free address of the project, and a new one only when none is free', async ({
    api,
  }) => {
    const free = (await api.post('/ips', {})).data;
    const first = await api.server({ name: 'a', public_ipv4: { reuse: true } });
    expect(first.ipv4).toBe(free.address);
    expect((await api.get('/ips')).data).toHaveLength(1);
    const second = await api.server({ name: 'b', public_ipv4: { reuse: true } });
    expect(second.ipv4).not.toBe(free.address);
    expect((await api.get('/ips')).data).toHaveLength(2);
  });

  test('§2 ips are the addresses of the server, and ipv4 is the primary one', async ({ api }) => {
    const answer = await api.post('/servers', await api.serverBody({ public_ipv4: { new: true } }));
    const [ip] = answer.data.ips;
    expect(answer.data.ips).toHaveLength(1);
    expect(ip).toMatchObject({ address: answer.data.ipv4, primary: true, server_id: answer.data.id });
  });

  test('§7 server_type_not_found: the type does not exist', async ({ api }) => {
    const answer = await api.post('/servers', await api.serverBody({ server_type_id: 987_654 }));
    expect([answer.status, answer.code]).toEqual([404, 'server_type_not_found']);
  });

  test('§7 image_not_supported: an entry of type useriso is refused with 422', async ({ api }) => {
    const iso = await api.iso();
    const type = await api.serverType('sliders');
    const entries = (await api.get(`/server-types/${type.id}/images`)).data;
    expect(entries).toContainEqual(expect.objectContaining({ id: iso.id, type: 'useriso' }));
    const answer = await api.post('/servers', await api.serverBody({ image: iso.id }));
    expect([answer.status, answer.code]).toEqual([422, 'image_not_supported']);
  });

  test('§4 an image that the type’s list does not hold is refused', async ({ api }) => {
    const answer = await api.post('/servers', await api.serverBody({ image: 'no-such-image' }));
    expect([404, 422]).toContain(answer.status);
  });

  test('§4 image is an id from the type’s own image list: another type’s is refused', async ({ api }) => {
    const [sliders, fixed] = [await api.serverType('sliders'), await api.serverType('fixed')];
    const own = (await api.get(`/server-types/${sliders.id}/images`)).data.map((entry) => entry.id);
    const foreign = await api.osImage(fixed.id);
    if (own.includes(foreign)) return;
    expect([404, 422]).toContain(
      (await api.post('/servers', await api.serverBody({ image: foreign }))).status,
    );
  });

  test('§4 ssh_keys is an array of integers', async ({ api }) => {
    for (const keys of ['1', 1, ['1'], [1.5], [null]]) {
      const answer = await api.post('/servers', await api.serverBody({ ssh_keys: keys }));
      expect([keys, answer.status, answer.code]).toEqual([keys, 422, 'invalid_request']);
    }
    expect((await api.post('/servers', await api.serverBody({ ssh_keys: [] }))).status).toBe(202);
  });

  test('§4.3 types are strict in every field of the body', async ({ api }) => {
    const wrong: Record<string, unknown> = {
      name: 7,
      server_type_id: '1',
      image: 1,
      cores: '2',
      memory_mb: 2048.5,
      disk_gb: true,
      plan_id: 'p',
      gpu_package: 1,
      public_ipv4: true,
      gpus: '1',
      disk_type: 5,
    };
    for (const [field, value] of Object.entries(wrong)) {
      const answer = await api.post('/servers', await api.serverBody({ [field]: value }));
      expect([field, answer.status, answer.code]).toEqual([field, 422, 'invalid_request']);
      expect(answer.invalidParams).toContain(field);
    }
  });

  test('§4.3 a boolean accepts only true or false: public_ipv4.new', async ({ api }) => {
    for (const value of [1, 'true', null, 'yes']) {
      const answer = await api.post('/servers', await api.serverBody({ public_ipv4: { new: value } }));
      expect([value, answer.status, answer.code]).toEqual([value, 422, 'invalid_request']);
    }
    expect((await api.get('/ips')).data).toEqual([]);
  });

  test('§4.3 unknown fields inside public_ipv4 are refused', async ({ api }) => {
    const answer = await api.post(
      '/servers',
      await api.serverBody({ public_ipv4: { new: true, colour: 'red' } }),
    );
    expect([answer.status, answer.code]).toEqual([422, 'invalid_request']);
  });

  test('§2 deleting answers server_id and billable_ips, the addresses that stay', async ({ api }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const bare = await api.server({ name: 'bare' });
    const answer = await api.delete(`/servers/${server.id}`);
    expect(answer.status).toBe(202);
    expect(answer.data.server_id).toBe(server.id);
    expect(answer.data.billable_ips).toHaveLength(1);
    expect(JSON.stringify(answer.data.billable_ips)).toContain(server.ipv4);
    const without = await api.delete(`/servers/${bare.id}`);
    expect(without.data.billable_ips).toEqual([]);
  });

  test('§7 server_not_found on every path under a server', async ({ api }) => {
    const network = await api.network('backend');
    const answers = [
      await api.delete('/servers/987654'),
      await api.get('/servers/987654/network-interfaces'),
      await api.post('/servers/987654/network-interfaces', { network_id: network.id }),
      await api.get('/servers/987654/firewall'),
      await api.put('/servers/987654/firewall', { enabled: false, policy_in: 'drop', rules: [] }),
      await api.get('/servers/987654/backups'),
      await api.post('/servers/987654/backups'),
      await api.get('/servers/987654/backup-policy'),
    ];
    expect(answers.map((answer) => [answer.status, answer.code])).toEqual(
      answers.map(() => [404, 'server_not_found']),
    );
  });

  test('§4 a deleted server is not found once its task is done', async ({ api, server }) => {
    await api.finish(await api.delete(`/servers/${server.id}`));
    const answer = await api.delete(`/servers/${server.id}`);
    expect([answer.status, answer.code]).toEqual([404, 'server_not_found']);
  });

  test('§4 PUT /servers/{id}/iso inserts an ISO, on graphics-card types too', async ({ api }) => {
    const iso = await api.iso();
    const plain = await api.server({ name: 'plain' });
    const gpu = await api.gpuServer({ name: 'gpu' });
    expect((await api.insertIso(plain.id, iso.id)).status).toBeLessThan(300);
    expect((await api.insertIso(gpu.id, iso.id)).status).toBeLessThan(300);
  });

  test('§7 server_type_not_supported: an image of a packaged graphics-card server', async ({ api }) => {
    const gpu = await api.gpuServer();
    const refused = await api.takeImage(gpu.id);
    expect(refused.code).toBe('server_type_not_supported');
    const plain = await api.server();
    expect((await api.takeImage(plain.id)).status).toBeLessThan(300);
  });
});
