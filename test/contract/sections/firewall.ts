import { describe, expect } from 'vitest';
import { type Data, test } from '../contract.ts';
import { rule as https } from '../valid-write.ts';

const ssh = { ...https, destination_port: '22', description: 'ssh' };

describe('§4 /servers/{id}/firewall', () => {
  test('§4 PUT sends the whole firewall, which replaces the stored firewall and is read back; §2 rules are ordered', async ({
    api,
  }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const path = `/servers/${server.id}/firewall`;
    const body = { enabled: true, policy_in: 'drop', rules: [https, ssh] };
    const answer = await api.put(path, body);
    expect(answer.status).toBe(200);
    expect(answer.data).toMatchObject(body);
    expect((await api.get(path)).data).toEqual(answer.data);
    await api.put(path, { enabled: true, policy_in: 'accept', rules: [ssh, https] });
    const swapped = (await api.get(path)).data;
    expect(swapped.policy_in).toBe('accept');
    expect(swapped.rules.map(({ description }: Data) => description)).toEqual(['ssh', 'web']);
    await api.put(path, { enabled: false, policy_in: 'drop', rules: [] });
    expect((await api.get(path)).data).toMatchObject({ enabled: false, rules: [] });
  });

  test('§4 defaults of a new server; §3.4 no public interface: only enabling gets 409 firewall_no_public_iface', async ({
    api,
    server,
  }) => {
    const path = `/servers/${server.id}/firewall`;
    const initial = { enabled: false, policy_in: 'drop', policy_out: 'accept', rules: [] };
    expect((await api.get(path)).data).toMatchObject(initial);
    const answer = await api.put(path, { enabled: true, policy_in: 'drop', rules: [https] });
    expect([answer.status, answer.code]).toEqual([409, 'firewall_no_public_iface']);
    expect((await api.get(path)).data).toMatchObject(initial);
    expect((await api.put(path, { enabled: false, policy_in: 'drop', rules: [ssh] })).status).toBe(200);
    expect((await api.get(path)).data.rules).toHaveLength(1);
  });

  test('§3.4 a firewall can be read while its server is created or deleted', async ({ api }) => {
    const created = await api.post('/servers', await api.serverBody());
    const path = `/servers/${created.data.id}/firewall`;
    expect((await api.get(path)).data).toMatchObject({ enabled: false, rules: [] });
    await api.finish(created);
    await api.delete(`/servers/${created.data.id}`);
    expect((await api.get(path)).status).toBe(200);
  });
});
