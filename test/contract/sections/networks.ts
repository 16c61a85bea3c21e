import { describe, expect } from 'vitest';
import { open, test } from '../contract.ts';

describe('§4 /networks', () => {
  test('§2 each project has one default network', async ({ api }) => {
    const networks = (await api.get('/networks')).data;
    expect(networks.filter((network) => network.is_default)).toHaveLength(1);
  });

  test('§3.5 a new network does not exist until its task completes; the creation answer carries no identifier', async ({
    api,
  }) => {
    const answer = await api.post('/networks', { name: 'backend', cidr: '10.20.0.0/24' });
    expect([answer.status, answer.data]).toEqual([202, null]);
    expect(answer.headers.location).toBeUndefined();
    expect(await api.networkNamed('backend')).toBeUndefined();
    await api.finish(answer);
    expect(await api.networkNamed('backend')).toMatchObject({
      cidr: '10.20.0.0/24',
      is_default: false,
      server_count: 0,
    });
  });

  test('§4 POST /networks may answer 201 with the Network, task null and Location', async () => {
    const api = await open({ readings: { networkCreate: 'sync' } });
    const answer = await api.post('/networks', { name: 'backend', cidr: '10.20.0.0/24' });
    expect([answer.status, answer.task]).toEqual([201, null]);
    expect(answer.headers.location).toMatch(new RegExp(`/networks/${answer.data.id}$`));
    expect(await api.networkNamed('backend')).toMatchObject({ id: answer.data.id });
  });

  test('§4 POST /networks: name and cidr are both required', async ({ api }) => {
    expect((await api.post('/networks', { name: 'backend' })).invalidParams).toEqual(['cidr']);
    expect((await api.post('/networks', { cidr: '10.20.0.0/24' })).invalidParams).toEqual(['name']);
    expect((await api.post('/networks', {})).invalidParams.toSorted()).toEqual(['cidr', 'name']);
    expect((await api.post('/networks')).status).toBe(422);
  });

  test('§8 network name has 1 to 30 characters, measured after trimming (§4.3)', async ({ api }) => {
    expect((await api.post('/networks', { name: 'n', cidr: '10.1.0.0/24' })).status).toBe(202);
    expect((await api.post('/networks', { name: `  ${'n'.repeat(30)} `, cidr: '10.2.0.0/24' })).status).toBe(
      202,
    );
    for (const name of ['', '  ', 'n'.repeat(31)]) {
      const answer = await api.post('/networks', { name, cidr: '10.3.0.0/24' });
      expect([name, answer.status, answer.invalidParams]).toEqual([name, 422, ['name']]);
    }
  });

  test('§4 a network name holds letters, digits, space, underscore, dot and hyphen', async ({ api }) => {
    expect((await api.post('/networks', { name: 'Az 09_.-', cidr: '10.1.0.0/24' })).status).toBe(202);
    for (const name of ['a/b', 'a:b', 'a,b', 'ü?', 'a\nb', 'a+b']) {
      const answer = await api.post('/networks', { name, cidr: '10.3.0.0/24' });
      expect([name, answer.status, answer.invalidParams]).toEqual([name, 422, ['name']]);
    }
  });

  test('§4 a cidr is four dot-separated groups of 1 to 3 digits, a slash, then 1 or 2 digits; 9 to 18 characters', async ({
    api,
  }) => {
    expect((await api.post('/networks', { name: 'short', cidr: '10.0.0.0/8' })).status).toBe(202);
    expect((await api.post('/networks', { name: 'shortest', cidr: ' 1.0.0.0/8 ' })).status).toBe(202);
    expect((await api.post('/networks', { name: 'longest', cidr: '192.168.100.100/32' })).status).toBe(202);
    for (const cidr of [
      '1.0.0.0/',
      '1.0.0/8',
      '10.0.0.0',
      '10.0.0.0/244',
      '1000.0.0.0/24',
      '10.0.0.0.0/24',
      'a.b.c.d/24',
      '::1/128',
    ]) {
      const answer = await api.post('/networks', { name: 'wrong', cidr });
      expect([cidr, answer.status, answer.invalidParams]).toEqual([cidr, 422, ['cidr']]);
    }
  });

  test('§4 GET /networks: skip_vm_count takes any value', async ({ api }) => {
    for (const value of ['1', 'true', '', 'anything']) {
      expect((await api.get(`/networks?skip_vm_count=${value}`)).status).toBe(200);
    }
  });

  test('§2 server_count counts the attached servers', async ({ api }) => {
    const network = await api.network('backend');
    const server = await api.server();
    await api.attach(server.id, network.id);
    expect(await api.networkNamed('backend')).toMatchObject({ server_count: 1 });
    await api.finish(await api.delete(`/servers/${server.id}`));
    expect(await api.networkNamed('backend')).toMatchObject({ server_count: 0 });
  });

  test('§4 DELETE /networks/{id} answers a task; the network is gone when it is done', async ({ api }) => {
    const network = await api.network('backend');
    const answer = await api.delete(`/networks/${network.id}`);
    expect(answer.status).toBe(202);
    await api.finish(answer);
    expect(await api.networkNamed('backend')).toBeUndefined();
    expect((await api.delete(`/networks/${network.id}`)).status).toBe(404);
  });

  test('§4.5 DELETE /networks/{id} may finish inside the request: 200 with task null', async () => {
    const api = await open({ readings: { networkDelete: 'sync' } });
    const network = await api.network('backend');
    const answer = await api.delete(`/networks/${network.id}`);
    expect([answer.status, answer.task]).toEqual([200, null]);
    expect(await api.networkNamed('backend')).toBeUndefined();
  });

  test('§3.1 a network with servers on it cannot be deleted; without them the same key goes through (§8.3)', async ({
    api,
  }) => {
    const network = await api.network('backend');
    const server = await api.server();
    await api.attach(server.id, network.id);
    const refused = await api.delete(`/networks/${network.id}`, { key: 'delete-backend' });
    expect(refused.status).toBe(409);
    expect(await api.networkNamed('backend')).toMatchObject({ id: network.id });
    await api.finish(await api.delete(`/servers/${server.id}`));
    const answer = await api.delete(`/networks/${network.id}`, { key: 'delete-backend' });
    expect([answer.status, answer.replayed]).toEqual([202, false]);
  });

  test('§7 DELETE /networks/{id} of an unknown network is not found', async ({ api }) => {
    expect((await api.delete('/networks/987654')).status).toBe(404);
  });
});
