import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type Answer, type Contract, open } from '../contract.ts';

/** Polls in real time; a thousand times faster, a task of a minute takes 60 ms. */
async function succeeded(api: Contract, answer: Answer): Promise<void> {
  for (let polls = 0; polls < 1_000; polls += 1) {
    const task = (await api.get(`/tasks/${answer.task?.id}`)).data;
    if (task.is_terminal) return expect(task.status).toBe('succeeded');
    await sleep(10);
  }
  throw new Error('The task did not end');
}

describe('the emulator on the system’s clock, a thousand times faster', () => {
  test('§4 the life of a server: created, attached, backed up, deleted, its address released', async () => {
    const api = await open({ speed: 1_000 });
    const network = await api.post('/networks', { name: 'backend', cidr: '10.20.0.0/24' });
    await succeeded(api, network);
    const backend = await api.networkNamed('backend');
    const created = await api.post('/servers', await api.serverBody({ public_ipv4: { new: true } }));
    await succeeded(api, created);
    const path = `/servers/${created.data.id}`;
    await succeeded(api, await api.post(`${path}/network-interfaces`, { network_id: backend?.id }));
    await api.put(`${path}/firewall`, { enabled: true, policy_in: 'drop', rules: [] });
    await api.post(`${path}/backups`);
    await expect
      .poll(async () => (await api.backups(created.data.id))[0]?.status, { interval: 10 })
      .toBe('available');
    await succeeded(api, await api.delete(path));
    const [ip] = (await api.get('/ips')).data;
    expect(ip).toMatchObject({ address: created.data.ipv4, server_id: null });
    expect((await api.delete(`/ips/${ip?.id}`)).status).toBe(200);
    await succeeded(api, await api.delete(`/networks/${backend?.id}`));
  });
});
