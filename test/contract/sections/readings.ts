import { describe, expect, test } from 'vitest';
import { readingValues } from '../../../src/emulator/readings.ts';
import { type Answer, type Contract, open } from '../contract.ts';

/** A number to try where any number will do. */
const SAMPLE: Record<string, number> = {
  minutePhaseMs: 15_000,
  pageSize: 3,
  staleReadsMs: 1,
  taskRetentionMs: 60_000,
};

/** `omitTaskField` plays a breach of §4.5, so its answers must not keep to the document. */
const BREACHES = ['omitTaskField'];

const others = Object.entries(readingValues)
  .filter(([name]) => !BREACHES.includes(name))
  .flatMap(([name, [, ...values]]) =>
    values.map((value) => [name, value === 'number' ? SAMPLE[name] : value] as const),
  );

/** Touches each point that has a reading. Every answer is checked on its way, which is what the tests below are about. */
async function walk(api: Contract): Promise<void> {
  const network = { name: ' backend ', cidr: '10.20.0.7/24' };
  await settled(api, await api.post('/networks', network, { key: 'create-backend' }));
  await api.post('/networks', { ...network, name: 'another' }, { key: 'create-backend' });
  await api.post('/networks', network);
  const networks = (await api.get('/networks?skip_vm_count=1')).data;
  const iso = await api.post('/isos', { url: 'https://images.example/rescue.iso' });
  await settled(api, iso);
  await api.get('/isos');
  await api.post('/servers', await api.serverBody({ ssh_keys: [999] }));
  await api.post('/servers', await api.gpuBody({ gpus: 1 }));
  await api.post('/servers', await api.serverBody({ cores: 10_000 }));
  const server = await api.post('/servers', await api.serverBody({ public_ipv4: { new: true } }));
  const path = `/servers/${server.data.id}`;
  const rule = { direction: 'in', action: 'accept', enabled: true, protocol: 'tcp', destination_port: '22' };
  await api.put(`${path}/firewall`, { enabled: true, policy_in: 'drop', rules: [rule] });
  await settled(api, server);
  await api.get(`${path}/network-interfaces`);
  await api.put(`${path}/firewall`, { enabled: true, policy_in: 'drop', rules: [rule] });
  for (const { id } of [...networks, ...networks]) {
    await settled(api, await api.post(`${path}/network-interfaces`, { network_id: id }));
  }
  for (const { id } of networks) await api.delete(`/networks/${id}`);
  await api.post(`${path}/backups`);
  await settled(api, await api.delete(path));
  await api.get(`${path}/backups`);
  for (const { id } of networks) await settled(api, await api.delete(`/networks/${id}`));
  for (const { id } of (await api.get('/ips')).data) await api.delete(`/ips/${id}`);
  api.failNextTask();
  await settled(api, await api.post('/servers', await api.serverBody({ public_ipv4: { new: true } })));
  await api.delete(`/isos/${iso.data.id}`);
  api.standing('unpaid');
  await api.get('/project');
}

async function settled(api: Contract, { task }: Answer): Promise<void> {
  if (task) await api.get(`/tasks/${task.id}`);
  api.advance(120_000);
  if (task) await api.get(`/tasks/${task.id}`);
}

describe('parts that the API document leaves open (docs/contributing/assumptions.md)', () => {
  test.each(others)('answers match the document with another reading: %s = %s', async (name, value) => {
    const api = await open({ readings: { [name]: value } });
    await walk(api);
  });

  test('§4.5 the check reports an answer without its task field', async () => {
    const api = await open({ readings: { omitTaskField: true } });
    await expect(api.post('/networks', { name: 'backend', cidr: '10.0.0.0/24' })).rejects.toThrow(/task/);
  });
});
