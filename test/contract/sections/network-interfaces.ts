import { describe, expect } from 'vitest';
import { test } from '../contract.ts';

describe('§4 /servers/{id}/network-interfaces', () => {
  test('§4 POST answers the card plus a task; the card’s network is a field on the card', async ({ api }) => {
    const network = await api.network('backend');
    const server = await api.server();
    const answer = await api.post(`/servers/${server.id}/network-interfaces`, { network_id: network.id });
    expect([200, 201, 202]).toContain(answer.status);
    expect(answer.data).toMatchObject({ public: false, network_id: network.id });
    await api.finish(answer);
    const cards = (await api.get(`/servers/${server.id}/network-interfaces`)).data;
    expect(cards).toContainEqual(expect.objectContaining({ id: answer.data.id, network_id: network.id }));
  });

  test('§2 cards are named net0, net1, … by the platform', async ({ api, server }) => {
    for (const name of ['one', 'two']) await api.attach(server.id, (await api.network(name)).id);
    const cards = (await api.get(`/servers/${server.id}/network-interfaces`)).data;
    const ids = cards.map((card) => card.id);
    expect(ids.every((id) => /^net\d+$/.test(id))).toBe(true);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBeGreaterThanOrEqual(2);
  });

  test('§2 a server with a public address has a public card that carries it', async ({ api }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const cards = (await api.get(`/servers/${server.id}/network-interfaces`)).data;
    const card = cards.find((candidate) => candidate.public);
    expect(card).toMatchObject({ id: 'net0' });
    expect(JSON.stringify(card)).toContain(server.ipv4);
  });

  test('§4 network_id is an integer, and the only field', async ({ api, server }) => {
    const path = `/servers/${server.id}/network-interfaces`;
    for (const id of ['1', 1.5, true, null]) {
      const answer = await api.post(path, { network_id: id });
      expect([id, answer.status, answer.invalidParams]).toEqual([id, 422, ['network_id']]);
    }
    expect((await api.post(path, { network_id: 1, colour: 'red' })).invalidParams).toContain('colour');
    expect((await api.post(path, {})).status).toBe(422);
  });

  test('§7 a card in a network that does not exist is refused', async ({ api, server }) => {
    const answer = await api.post(`/servers/${server.id}/network-interfaces`, { network_id: 987_654 });
    expect([404, 422]).toContain(answer.status);
  });

  test('§4.1 an empty collection is an array: a server without any card', async ({ api, server }) => {
    expect((await api.get(`/servers/${server.id}/network-interfaces`)).data).toEqual([]);
  });
});
