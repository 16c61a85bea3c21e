import { describe, expect } from 'vitest';
import { type Contract, open, test, writes } from '../contract.ts';
import { validWrite } from '../valid-write.ts';

const HOUR_MS = 3_600_000;

describe('§8 idempotency', () => {
  test.each(
    writes,
  )('§4.4 writes accept an Idempotency-Key; §8.1 the same key and body only replays the response: $id', async (operation) => {
    const api = await open();
    const [path, json] = await validWrite(api, operation);
    const send = () => api.send(operation.method, path, { json, key: 'one-key-for-one-write' });
    const first = await send();
    const { length } = api.emulator.world.executions;
    const second = await send();
    expect([first.status < 300, first.replayed, second.status, second.replayed]).toEqual([
      true,
      false,
      first.status,
      true,
    ]);
    expect([second.data, second.headers.location]).toEqual([first.data, first.headers.location]);
    expect(api.emulator.world.executions).toHaveLength(length);
  });

  test('§8.2 the same key with a different body is refused without effect', async ({ api }) => {
    await api.post('/networks', { name: 'one', cidr: '10.1.0.0/24' }, { key: 'create-network' });
    const answer = await api.post(
      '/networks',
      { name: 'two', cidr: '10.2.0.0/24' },
      { key: 'create-network' },
    );
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
    expect(answer.replayed).toBe(false);
    api.advance(10 * 60_000);
    expect(await api.networkNamed('two')).toBeUndefined();
    expect(await api.networkNamed('one')).toBeDefined();
  });

  test('§5.5 a token gets no replay of a write that it may not send', async ({ api }) => {
    const { read, member } = api.tokens;
    const ip = (await api.post('/ips', {}, { key: 'bought-by-another' })).data;
    const peek = await api.post('/ips', {}, { key: 'bought-by-another', token: read });
    expect([peek.status, peek.code, peek.replayed]).toEqual([403, 'insufficient_scope', false]);
    await api.delete(`/ips/${ip.id}`, { key: 'released-by-another' });
    const gone = await api.delete(`/ips/${ip.id}`, { key: 'released-by-another', token: member });
    expect([gone.status, gone.code, gone.replayed]).toEqual([403, 'insufficient_privileges', false]);
    expect((await api.post('/ips', {}, { key: 'bought-by-another' })).replayed).toBe(true);
  });

  test('§8 a key belongs to the project: another token of the project gets the replay, another project does not', async ({
    api,
  }) => {
    const key = 'shared-by-tokens';
    const first = await api.post('/ips', {}, { key });
    const second = await api.post('/ips', {}, { key, token: api.tokens.member });
    expect([second.status, second.replayed, second.data]).toEqual([201, true, first.data]);
    const other = await api.post('/ips', {}, { key, token: api.otherProjectToken });
    expect([other.status, other.replayed]).toEqual([201, false]);
  });

  test('§8 a key is kept for 24 hours, and not longer', async ({ api }) => {
    const first = await api.post('/ips', {}, { key: 'kept-for-a-day' });
    api.advance(24 * HOUR_MS - 60_000);
    expect((await api.post('/ips', {}, { key: 'kept-for-a-day' })).replayed).toBe(true);
    api.advance(2 * 60_000);
    const late = await api.post('/ips', {}, { key: 'kept-for-a-day' });
    expect([late.status, late.replayed]).toEqual([201, false]);
    expect(late.data.id).not.toBe(first.data.id);
  });

  test.each([
    [500, 'none', 1],
    [503, 'none', 1],
    [500, 'done', 2],
  ] as const)('§8.3 a %i is not stored: the same key carries out the write again, with the first effect %s', async (status, effect, bought) => {
    const api = await open();
    const take = () => api.post('/ips', {}, { key: 'lost-its-answer' });
    api.failNextRequest(status, effect);
    expect((await take()).status).toBe(status);
    const again = await take();
    expect([again.status, again.replayed]).toEqual([201, false]);
    expect((await api.get('/ips')).data).toHaveLength(bought);
  });

  // An unknown field and a wrong type: refused under every reading (§4.3), so that only the key decides what is answered.
  const unfit = { surprise: 1, server_type_id: 'three' };

  test.each([
    ['afterKey', [422, 422], [false, true], 0],
    ['beforeKey', [422, 422], [false, true], 0],
    ['beforeKeyUnstored', [422, 422], [false, false], 1],
  ] as const)('§8.4 (A55) a refusal of the body is stored, or is sent before the key is read: %s', async (bodyCheck, statuses, replays, bought) => {
    const api = await open({ readings: { bodyCheck } });
    const send = (body: unknown) => api.post('/ips', body, { key: 'refused-first' });
    const answers = [await send(unfit), await send(unfit)];
    expect(answers.map(({ status }) => status)).toEqual(statuses);
    expect(answers.map(({ replayed }) => replayed)).toEqual(replays);
    await send({});
    expect((await api.get('/ips')).data).toHaveLength(bought);
  });

  test.each([
    'afterKey',
    'beforeKey',
    'beforeKeyUnstored',
  ] as const)('§8.1 (A55) a refused body does not change the stored response: %s', async (bodyCheck) => {
    const api = await open({ readings: { bodyCheck } });
    const first = await api.post('/ips', {}, { key: 'bought-first' });
    for (let time = 0; time < 3; time += 1) {
      const refused = await api.post('/ips', unfit, { key: 'bought-first' });
      expect([refused.status, refused.replayed]).toEqual([422, false]);
    }
    const again = await api.post('/ips', {}, { key: 'bought-first' });
    expect([again.replayed, again.data.id]).toEqual([true, first.data.id]);
  });

  const refusals = {
    scopeCheck: (api: Contract) => api.post('/ips', {}, { key: 'refused-once', token: api.tokens.read }),
    paymentCheck: async (api: Contract) => {
      api.standing('unpaid');
      await api.post('/ips', {}, { key: 'refused-once' });
      api.standing('active');
    },
    stored401: (api: Contract) => {
      api.emulator.mutate({ do: 'revoke_token', token: api.tokens.member });
      return api.post('/ips', {}, { key: 'refused-once', token: api.tokens.member });
    },
  };

  test.each([
    ['A56, 403', 'scopeCheck', 'afterKey', 403],
    ['A56, 403', 'scopeCheck', 'beforeKey', 201],
    ['A57, 402', 'paymentCheck', 'afterKey', 402],
    ['A57, 402', 'paymentCheck', 'beforeKey', 201],
    ['A58, 401', 'stored401', false, 201],
    ['A58, 401', 'stored401', true, 401],
  ] as const)('§8.4 (%s) a refusal is stored, or is sent before the key is read: %s %s', async (_number, name, value, expected) => {
    const api = await open({ readings: { [name]: value } });
    await refusals[name](api);
    expect((await api.post('/ips', {}, { key: 'refused-once' })).status).toBe(expected);
  });

  test.each([
    ['7 characters', 'k'.repeat(7), 422],
    ['8 characters', 'k'.repeat(8), 201],
    ['255 characters', 'k'.repeat(255), 201],
    ['256 characters', 'k'.repeat(256), 422],
    ['printable characters', 'a key: {"n": 1} ~!', 201],
    ['a tab inside', 'a key\twith a tab', 422],
    ['a character that is not printable ASCII', 'schl\u0085ssel-1', 422],
  ])('§8 the key has 8 to 255 printable characters: %s', async (_what, key, expected) => {
    const api = await open();
    const answer = await api.post('/ips', {}, { key });
    if (expected === 201) expect(answer.status).toBe(201);
    else expect([400, 422]).toContain(answer.status);
  });

  test('§8.1 a replay has no effect: it does not restore an older firewall', async ({ api }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const path = `/servers/${server.id}/firewall`;
    const open_ = { enabled: false, policy_in: 'accept', rules: [] };
    await api.put(path, open_, { key: 'firewall-first' });
    await api.put(path, { ...open_, policy_in: 'drop' }, { key: 'firewall-second' });
    const replay = await api.put(path, open_, { key: 'firewall-first' });
    expect([replay.status, replay.replayed]).toEqual([200, true]);
    expect((await api.get(path)).data.policy_in).toBe('drop');
  });
});
