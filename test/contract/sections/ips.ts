import { describe, expect } from 'vitest';
import { test } from '../contract.ts';

describe('§4 /ips', () => {
  test('§4 address: allocate (201, Location), list, read, release (§2 deleted); §4.1 an empty list is an array', async ({
    api,
  }) => {
    expect((await api.get('/ips')).data).toEqual([]);
    const answer = await api.post('/ips', {});
    expect([answer.status, answer.data.server_id]).toEqual([201, null]);
    expect((await api.follow(answer)).data).toEqual(answer.data);
    expect((await api.get('/ips')).data).toEqual([answer.data]);
    const path = `/ips/${answer.data.id}`;
    const released = await api.delete(path);
    expect([released.status, released.data.deleted]).toEqual([200, answer.data.id]);
    expect((await api.get('/ips')).data).toEqual([]);
    expect([(await api.get(path)).status, (await api.delete(path)).status]).toEqual([404, 404]);
  });

  test('§3.2 an attached address gets 409 ip_in_use until the deletion task detaches it (§1.4); §8.3 not stored', async ({
    api,
  }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const [ip] = (await api.get('/ips')).data;
    expect(ip).toMatchObject({ server_id: server.id, primary: true, address: server.ipv4 });
    const release = () => api.delete(`/ips/${ip?.id}`, { key: 'release-of-the-address' });
    expect([(await release()).status, (await release()).code]).toEqual([409, 'ip_in_use']);
    const deletion = await api.delete(`/servers/${server.id}`);
    expect((await api.get(`/tasks/${deletion.task?.id}`)).data.is_terminal).toBe(false);
    expect((await release()).code).toBe('ip_in_use');
    await api.finish(deletion);
    expect((await api.get('/ips')).data).toMatchObject([{ address: server.ipv4, server_id: null }]);
    // §8.3: after a 409, the same key.
    expect((await release()).status).toBe(200);
  });

  test('§1.4 a public address is billed from its allocation on, attached or not', async ({ api }) => {
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
});
