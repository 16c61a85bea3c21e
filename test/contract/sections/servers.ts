import { describe, expect } from 'vitest';
import { open, test } from '../contract.ts';

describe('§4 /servers', () => {
  test.each([
    ['sliders', 'serverBody'],
    ['plans', 'planBody'],
    ['fixed', 'gpuBody'],
  ] as const)('§3 the creation answers 202 with the id at once, status `creating` and power false: %s', async (_mode, body) => {
    const api = await open();
    const answer = await api.post('/servers', await api[body]({ name: 'web-1' }));
    const { id } = answer.data;
    expect(answer.status).toBe(202);
    expect(answer.data).toMatchObject({ name: 'web-1', status: 'creating', power: false });
    expect(answer.task).toMatchObject({ is_terminal: false });
    // §4.8: a Location is the path of the created resource.
    expect(answer.headers.location ?? `/v1/servers/${id}`).toMatch(new RegExp(`/v1/servers/${id}$`));
    await api.finish(answer);
    expect((await api.get(`/servers/${id}/firewall`)).status).toBe(200);
  });

  test('§4 public_ipv4 {new: true} always allocates a new address; §2 ipv4 is the primary address of the ips', async ({
    api,
  }) => {
    const free = (await api.post('/ips', {})).data;
    const server = await api.server({ public_ipv4: { new: true } });
    expect(server.ipv4).not.toBe(free.address);
    expect(server.ips).toMatchObject([{ address: server.ipv4, primary: true, server_id: server.id }]);
    const ips = (await api.get('/ips')).data;
    expect(ips.map((ip) => ip.server_id).toSorted()).toEqual([null, server.id].toSorted());
  });

  test('§4 public_ipv4 {reuse: true} takes a free address of the project, or a new address if no address is free', async ({
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

  test('§4 an image from outside the type’s list of OS entries and own ISOs gets 422 image_not_supported (§7)', async ({
    api,
  }) => {
    const [sliders, fixed] = [await api.serverType('sliders'), await api.serverType('fixed')];
    const list = async () => (await api.get(`/server-types/${sliders.id}/images`)).data;
    expect(new Set((await list()).map(({ type }) => type))).toEqual(new Set(['os']));
    const iso = await api.iso();
    expect(await list()).toContainEqual(expect.objectContaining({ id: iso.id, type: 'useriso' }));
    const answer = await api.post('/servers', await api.serverBody({ image: iso.id }));
    expect([answer.status, answer.code]).toEqual([422, 'image_not_supported']);
    for (const image of ['no-such-image', await api.osImage(fixed.id)]) {
      expect([404, 422]).toContain((await api.post('/servers', await api.serverBody({ image }))).status);
    }
  });

  test('§2 DELETE answers server_id and the remaining billable_ips; then the server is not found', async ({
    api,
  }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const bare = await api.server({ name: 'bare' });
    const answer = await api.delete(`/servers/${server.id}`);
    expect([answer.status, answer.data.server_id]).toEqual([202, server.id]);
    expect(answer.data.billable_ips).toHaveLength(1);
    expect(JSON.stringify(answer.data.billable_ips)).toContain(server.ipv4);
    expect((await api.delete(`/servers/${bare.id}`)).data.billable_ips).toEqual([]);
    await api.finish(answer);
    const again = await api.delete(`/servers/${server.id}`);
    expect([again.status, again.code]).toEqual([404, 'server_not_found']);
  });

  test('§4 PUT /servers/{id}/iso works for GPU types too; §7 an image of a GPU server: server_type_not_supported', async ({
    api,
  }) => {
    const gpu = await api.gpuServer();
    expect((await api.insertIso(gpu.id, (await api.iso()).id)).status).toBeLessThan(300);
    expect((await api.takeImage(gpu.id)).code).toBe('server_type_not_supported');
  });
});
