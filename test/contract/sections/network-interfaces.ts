import { describe, expect } from 'vitest';
import { test } from '../contract.ts';

describe('§4 /servers/{id}/network-interfaces', () => {
  test('§4 POST answers the interface and a task; §2 the platform sets the name; §4.1 an empty list is an array', async ({
    api,
    server,
  }) => {
    const path = `/servers/${server.id}/network-interfaces`;
    expect((await api.get(path)).data).toEqual([]);
    const ids = [];
    for (const name of ['one', 'two']) {
      const network = await api.network(name);
      const answer = await api.post(path, { network_id: network.id });
      expect([200, 201, 202]).toContain(answer.status);
      expect(answer.data).toMatchObject({ public: false, network_id: network.id });
      await api.finish(answer);
      const cards = (await api.get(path)).data;
      expect(cards).toContainEqual(expect.objectContaining({ id: answer.data.id, network_id: network.id }));
      ids.push(answer.data.id);
    }
    expect(ids.every((id) => /^net\d+$/.test(id))).toBe(true);
    expect(new Set(ids).size).toBe(2);
  });

  test('§2 a server with a public address has a public interface with the address', async ({ api }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const cards = (await api.get(`/servers/${server.id}/network-interfaces`)).data;
    const card = cards.find((candidate) => candidate.public);
    expect(card).toMatchObject({ id: 'net0' });
    expect(JSON.stringify(card)).toContain(server.ipv4);
  });
});
