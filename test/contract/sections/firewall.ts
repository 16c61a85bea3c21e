import { describe, expect } from 'vitest';
import { type Data, test } from '../contract.ts';

const https = {
  direction: 'in',
  action: 'accept',
  enabled: true,
  protocol: 'tcp',
  destination_port: '80,443',
  description: 'web',
};
const ssh = { ...https, destination_port: '22', description: 'ssh' };

describe('§4 /servers/{id}/firewall', () => {
  test('§4 a new server has disabled, policy_in drop, policy_out accept, empty rules', async ({
    api,
    server,
  }) => {
    const answer = await api.get(`/servers/${server.id}/firewall`);
    expect(answer.data).toMatchObject({ enabled: false, policy_in: 'drop', policy_out: 'accept', rules: [] });
  });

  test('§4 PUT answers the firewall object, and it is read back', async ({ api }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const body = { enabled: true, policy_in: 'drop', rules: [https, ssh] };
    const answer = await api.put(`/servers/${server.id}/firewall`, body);
    expect(answer.status).toBe(200);
    expect(answer.data).toMatchObject(body);
    expect((await api.get(`/servers/${server.id}/firewall`)).data).toEqual(answer.data);
  });

  test('§4 the whole state is sent and replaces the stored one; §2 rules are ordered', async ({ api }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const path = `/servers/${server.id}/firewall`;
    await api.put(path, { enabled: true, policy_in: 'drop', rules: [https, ssh] });
    await api.put(path, { enabled: true, policy_in: 'accept', rules: [ssh, https] });
    const swapped = (await api.get(path)).data;
    expect(swapped.policy_in).toBe('accept');
    expect(swapped.rules.map(({ description }: Data) => description)).toEqual(['ssh', 'web']);
    await api.put(path, { enabled: false, policy_in: 'drop', rules: [] });
    expect((await api.get(path)).data).toMatchObject({ enabled: false, rules: [] });
  });

  test('§3.4 enabling on a server with no public card is 409 firewall_no_public_iface; reading always works', async ({
    api,
    server,
  }) => {
    const path = `/servers/${server.id}/firewall`;
    const answer = await api.put(path, { enabled: true, policy_in: 'drop', rules: [https] });
    expect([answer.status, answer.code]).toEqual([409, 'firewall_no_public_iface']);
    expect((await api.get(path)).data).toMatchObject({ enabled: false, rules: [] });
  });

  test('§3.4 reading a firewall works also while the server is created or deleted', async ({ api }) => {
    const created = await api.post('/servers', await api.serverBody());
    const path = `/servers/${created.data.id}/firewall`;
    expect((await api.get(path)).data).toMatchObject({ enabled: false, rules: [] });
    await api.finish(created);
    await api.delete(`/servers/${created.data.id}`);
    expect((await api.get(path)).status).toBe(200);
  });

  test('§3.4 without a public card, only enabling is refused: a disabled one is stored', async ({
    api,
    server,
  }) => {
    const path = `/servers/${server.id}/firewall`;
    expect((await api.put(path, { enabled: false, policy_in: 'drop', rules: [ssh] })).status).toBe(200);
    expect((await api.get(path)).data.rules).toHaveLength(1);
  });

  test('§2 any other name than description for the note on a rule is an unknown field', async ({ api }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    for (const name of ['comment', 'note', 'name', 'desc']) {
      const { description, ...rule } = ssh;
      const body = { enabled: true, policy_in: 'drop', rules: [https, { ...rule, [name]: description }] };
      const answer = await api.put(`/servers/${server.id}/firewall`, body);
      expect([name, answer.status, answer.code]).toEqual([name, 422, 'invalid_request']);
      expect(answer.invalidParams.join()).toContain(name);
    }
  });

  test('§4.3 types are strict: enabled accepts only true or false, strings are strings', async ({ api }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const path = `/servers/${server.id}/firewall`;
    const base = { enabled: false, policy_in: 'drop', rules: [] };
    for (const [field, value] of [
      ['enabled', 1],
      ['enabled', 'true'],
      ['enabled', null],
      ['policy_in', 7],
      ['rules', {}],
      ['rules', 'none'],
    ]) {
      const answer = await api.put(path, { ...base, [String(field)]: value });
      expect([field, value, answer.status, answer.invalidParams]).toEqual([field, value, 422, [field]]);
    }
    for (const rule of [{ ...ssh, enabled: 1 }, { ...ssh, destination_port: 22 }, 'accept all', null]) {
      expect((await api.put(path, { ...base, rules: [rule] })).code).toBe('invalid_request');
    }
    expect((await api.put(path, { ...base, colour: 'red' })).invalidParams).toEqual(['colour']);
  });
});
