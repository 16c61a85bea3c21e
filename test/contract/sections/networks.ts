import { describe, expect } from 'vitest';
import { open, test } from '../contract.ts';

const backend = { name: 'backend', cidr: '10.20.0.0/24' };

describe('§4 /networks', () => {
  test('§2 each project has one default network', async ({ api }) => {
    const networks = (await api.get('/networks')).data;
    expect(networks.filter((network) => network.is_default)).toHaveLength(1);
  });

  test('§3.5 a new network exists only after its task completes; the answer to the creation has no id', async ({
    api,
  }) => {
    const answer = await api.post('/networks', backend);
    expect([answer.status, answer.data]).toEqual([202, null]);
    expect(answer.headers.location).toBeUndefined();
    expect(await api.networkNamed('backend')).toBeUndefined();
    await api.finish(answer);
    expect(await api.networkNamed('backend')).toMatchObject({
      ...backend,
      is_default: false,
      server_count: 0,
    });
  });

  test('§4 POST and DELETE may finish inside the request: 201 (Network, Location) and 200, with task null', async () => {
    const api = await open({ readings: { networkCreate: 'sync', networkDelete: 'sync' } });
    const created = await api.post('/networks', backend);
    expect([created.status, created.task]).toEqual([201, null]);
    expect(created.headers.location).toMatch(new RegExp(`/networks/${created.data.id}$`));
    expect(await api.networkNamed('backend')).toMatchObject({ id: created.data.id });
    const deleted = await api.delete(`/networks/${created.data.id}`);
    expect([deleted.status, deleted.task]).toEqual([200, null]);
    expect(await api.networkNamed('backend')).toBeUndefined();
  });

  test('§4 GET /networks: skip_vm_count takes any value', async ({ api }) => {
    for (const value of ['1', 'true', '', 'anything']) {
      expect((await api.get(`/networks?skip_vm_count=${value}`)).status).toBe(200);
    }
  });

  test('§2 server_count counts attached servers; §3.1 a used network gets 409; §8.3 the same key works later', async ({
    api,
  }) => {
    const network = await api.network('backend');
    const server = await api.server();
    await api.attach(server.id, network.id);
    const remove = () => api.delete(`/networks/${network.id}`, { key: 'delete-backend' });
    expect((await remove()).status).toBe(409);
    expect(await api.networkNamed('backend')).toMatchObject({ id: network.id, server_count: 1 });
    await api.finish(await api.delete(`/servers/${server.id}`));
    expect(await api.networkNamed('backend')).toMatchObject({ server_count: 0 });
    const answer = await remove();
    expect([answer.status, answer.replayed]).toEqual([202, false]);
    await api.finish(answer);
    expect(await api.networkNamed('backend')).toBeUndefined();
    expect((await api.delete(`/networks/${network.id}`)).status).toBe(404);
  });
});
