import { describe, expect } from 'vitest';
import { test } from '../contract.ts';

describe('§4 /ips', () => {
  test('§4 POST /ips answers 201 with the Ip and a Location that leads to it', async ({ api }) => {
    const answer = await api.post('/ips', {});
    expect(answer.status).toBe(201);
    expect(answer.data).toMatchObject({ server_id: null });
    expect((await api.follow(answer)).data).toEqual(answer.data);
  });

  test('§4 POST /ips: the JSON body is optional', async ({ api }) => {
    expect((await api.post('/ips')).status).toBe(201);
  });

  test('§8 server_type_id on address allocation is an integer, minimum 1', async ({ api }) => {
    for (const id of [0, -1, 1.5, '1', true, null]) {
      const answer = await api.post('/ips', { server_type_id: id });
      expect([id, answer.status, answer.code]).toEqual([id, 422, 'invalid_request']);
      expect(answer.invalidParams).toEqual(['server_type_id']);
    }
  });

  test('§7 server_type_not_found: an address for a type that does not exist', async ({ api }) => {
    const answer = await api.post('/ips', { server_type_id: 987_654 });
    expect([answer.status, answer.code]).toEqual([404, 'server_type_not_found']);
  });

  test('§4 GET /ips lists the addresses; §4.1 an empty collection is an array', async ({ api }) => {
    expect((await api.get('/ips')).data).toEqual([]);
    const taken = (await api.post('/ips', {})).data;
    expect((await api.get('/ips')).data).toEqual([taken]);
  });

  test('§4 GET /ips/{id} answers the Ip; an unknown id is not found (§7, 404)', async ({ api }) => {
    const taken = (await api.post('/ips', {})).data;
    expect((await api.get(`/ips/${taken.id}`)).data).toEqual(taken);
    expect((await api.get('/ips/987654')).status).toBe(404);
  });

  test('§4 GET /ips/{id}: the id is an integer', async ({ api }) => {
    expect([400, 404, 422]).toContain((await api.get('/ips/seven')).status);
  });

  test('§2 DELETE /ips/{id} answers deleted, the released address id; then it is gone', async ({ api }) => {
    const taken = (await api.post('/ips', {})).data;
    const answer = await api.delete(`/ips/${taken.id}`);
    expect([answer.status, answer.data.deleted]).toEqual([200, taken.id]);
    expect((await api.get(`/ips/${taken.id}`)).status).toBe(404);
    expect((await api.get('/ips')).data).toEqual([]);
    expect((await api.delete(`/ips/${taken.id}`)).status).toBe(404);
  });

  test('§3.2 an address attached to a server cannot be released: 409 ip_in_use', async ({ api }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const [ip] = (await api.get('/ips')).data;
    expect(ip).toMatchObject({ server_id: server.id, primary: true, address: server.ipv4 });
    const answer = await api.delete(`/ips/${ip?.id}`);
    expect([answer.status, answer.code]).toEqual([409, 'ip_in_use']);
  });

  test('§3.2 the address leaves the server inside the detaching task: a release before it finishes is 409 ip_in_use, which §8.3 does not store', async ({
    api,
  }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const [ip] = (await api.get('/ips')).data;
    const deletion = await api.delete(`/servers/${server.id}`);
    expect((await api.get(`/tasks/${deletion.task?.id}`)).data.is_terminal).toBe(false);
    const early = await api.delete(`/ips/${ip?.id}`, { key: 'release-of-the-address' });
    expect([early.status, early.code]).toEqual([409, 'ip_in_use']);
    await api.finish(deletion);
    // §8.3: after a 409, the same key.
    expect((await api.delete(`/ips/${ip?.id}`, { key: 'release-of-the-address' })).status).toBe(200);
  });

  test('§1.4 deleting a server does not release its addresses; §2 server_id null means attached to nothing', async ({
    api,
  }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const deletion = await api.delete(`/servers/${server.id}`);
    await api.finish(deletion);
    const [ip, ...others] = (await api.get('/ips')).data;
    expect(others).toEqual([]);
    expect(ip).toMatchObject({ address: server.ipv4, server_id: null });
  });

  test('§1.4 a public address is billed from the moment it is taken, attached or not', async ({ api }) => {
    expect(api.billed()).toEqual([]);
    const ip = (await api.post('/ips', {})).data;
    expect(api.billed()).toContain(`ip ${ip.id}`);
    const server = await api.server({ public_ipv4: { reuse: true } });
    expect(server.ipv4).toBe(ip.address);
    await api.finish(await api.delete(`/servers/${server.id}`));
    expect(api.billed()).toContain(`ip ${ip.id}`);
    await api.delete(`/ips/${ip.id}`);
    expect(api.billed()).toEqual([]);
  });

  test('§4 POST /ips: the pool is the one that serves servers of that type', async ({ api }) => {
    const body = await api.gpuBody({ public_ipv4: { reuse: true } });
    const ip = (await api.post('/ips', { server_type_id: body.server_type_id })).data;
    const server = (await api.post('/servers', body)).data;
    expect(server.ipv4).toBe(ip.address);
  });
});
