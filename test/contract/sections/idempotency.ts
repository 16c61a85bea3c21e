import { describe, expect } from 'vitest';
import { type Contract, open, test, writes } from '../contract.ts';
import type { DocumentedOperation } from '../document.ts';

const HOUR_MS = 3_600_000;

/** A write that succeeds, for each operation of the document. */
async function validWrite(
  api: Contract,
  operation: DocumentedOperation,
): Promise<[path: string, body?: unknown]> {
  const path = await api.existing(operation.path);
  switch (operation.id) {
    case 'POST /isos':
      return [path, { url: 'https://images.example/other.iso' }];
    case 'POST /networks':
      return [path, { name: 'backend', cidr: '10.0.0.0/24' }];
    case 'POST /servers':
      return [path, await api.serverBody()];
    case 'POST /servers/{id}/network-interfaces':
      return [path, { network_id: (await api.network('backend')).id }];
    case 'PUT /servers/{id}/firewall':
      return [path, { enabled: false, policy_in: 'drop', rules: [] }];
    case 'PUT /servers/{id}/iso':
      return [path, { iso_id: (await api.iso()).id }];
    case 'POST /server-images':
      return [path, { server_id: (await api.server()).id, name: 'image' }];
    default:
      return [path];
  }
}

describe('§8 idempotency', () => {
  test.each(
    writes,
  )('§4.4 every write operation accepts the optional header Idempotency-Key: $id', async (operation) => {
    const api = await open();
    const [path, json] = await validWrite(api, operation);
    const send = () => api.send(operation.method, path, { json, key: 'one-key-for-one-write' });
    const first = await send();
    const second = await send();
    expect([first.status < 300, first.replayed, second.status, second.replayed]).toEqual([
      true,
      false,
      first.status,
      true,
    ]);
    expect(second.data).toEqual(first.data);
  });

  test('§8.1 the same key and body replays the response with Idempotency-Replayed: true', async ({ api }) => {
    const first = await api.post('/ips', {}, { key: 'take-one-address' });
    const second = await api.post('/ips', {}, { key: 'take-one-address' });
    expect([first.replayed, second.replayed]).toEqual([false, true]);
    expect([second.status, second.data, second.headers.location]).toEqual([
      201,
      first.data,
      first.headers.location,
    ]);
    expect((await api.get('/ips')).data).toHaveLength(1);
  });

  test('§4 without a key every write is its own', async ({ api }) => {
    await api.post('/ips', {});
    await api.post('/ips', {});
    expect((await api.get('/ips')).data).toHaveLength(2);
  });

  test('§8.2 the same key with a different body is refused, and nothing is done', async ({ api }) => {
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

  test('§5.5 what a token may not do is not replayed to it', async ({ api }) => {
    const { read, member } = api.tokens;
    const ip = (await api.post('/ips', {}, { key: 'bought-by-another' })).data;
    const peek = await api.post('/ips', {}, { key: 'bought-by-another', token: read });
    expect([peek.status, peek.code, peek.replayed]).toEqual([403, 'insufficient_scope', false]);
    await api.delete(`/ips/${ip.id}`, { key: 'released-by-another' });
    const gone = await api.delete(`/ips/${ip.id}`, { key: 'released-by-another', token: member });
    expect([gone.status, gone.code, gone.replayed]).toEqual([403, 'insufficient_privileges', false]);
    expect((await api.post('/ips', {}, { key: 'bought-by-another' })).replayed).toBe(true);
  });

  test('§8 the key is kept per project: another token of the project gets the replay', async ({ api }) => {
    const first = await api.post('/ips', {}, { key: 'shared-by-tokens' });
    const second = await api.post('/ips', {}, { key: 'shared-by-tokens', token: api.tokens.member });
    expect([second.status, second.replayed, second.data]).toEqual([201, true, first.data]);
  });

  test('§8 the key is kept per project: another project does not see it', async ({ api }) => {
    await api.post('/ips', {}, { key: 'one-key-two-projects' });
    const other = await api.post('/ips', {}, { key: 'one-key-two-projects', token: api.otherProjectToken });
    expect([other.status, other.replayed]).toEqual([201, false]);
  });

  test('§8 a key is retained for 24 hours, and not longer', async ({ api }) => {
    const first = await api.post('/ips', {}, { key: 'kept-for-a-day' });
    api.advance(24 * HOUR_MS - 60_000);
    expect((await api.post('/ips', {}, { key: 'kept-for-a-day' })).replayed).toBe(true);
    api.advance(2 * 60_000);
    const late = await api.post('/ips', {}, { key: 'kept-for-a-day' });
    expect([late.status, late.replayed]).toEqual([201, false]);
    expect(late.data.id).not.toBe(first.data.id);
  });

  test('§8.3 responses of 5xx are not stored', async ({ api }) => {
    for (const status of [500, 503]) {
      const key = `after-a-${status}`;
      api.failNextRequest(status);
      expect((await api.post('/ips', {}, { key })).status).toBe(status);
      const answer = await api.post('/ips', {}, { key });
      expect([answer.status, answer.replayed]).toEqual([201, false]);
    }
  });

  test('§8.3 a 5xx that had its effect is not stored either: the resource is read first, then a new key', async ({
    api,
  }) => {
    api.failNextRequest(500, 'done');
    expect((await api.post('/ips', {}, { key: 'lost-its-answer' })).status).toBe(500);
    expect((await api.get('/ips')).data).toHaveLength(1);
    const again = await api.post('/ips', {}, { key: 'lost-its-answer' });
    expect([again.status, again.replayed]).toEqual([201, false]);
  });

  test('§8.4 other refusals are stored under the key: 422', async ({ api }) => {
    const body = { name: 'b'.repeat(31), cidr: '10.0.0.0/24' };
    const first = await api.post('/networks', body, { key: 'refused-once' });
    const second = await api.post('/networks', body, { key: 'refused-once' });
    expect([first.status, first.replayed, second.status, second.replayed]).toEqual([422, false, 422, true]);
    expect(second.problem?.invalid_params).toEqual(first.problem?.invalid_params);
  });

  // An unknown field and a wrong type: refused under every reading (§4.3), so that only the key decides what is answered.
  const unfit = { surprise: 1, server_type_id: 'three' };

  test.each([
    ['afterKey', [422, 422], [false, true], 0],
    ['beforeKey', [422, 422], [false, true], 0],
    ['beforeKeyUnstored', [422, 422], [false, false], 1],
  ] as const)('§8.4 (A55) a refusal of the body is stored, or comes before its key: %s', async (bodyCheck, statuses, replays, bought) => {
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
  ] as const)('§8.1 (A55) a refused body leaves the stored response as it is: %s', async (bodyCheck) => {
    const api = await open({ readings: { bodyCheck } });
    const first = await api.post('/ips', {}, { key: 'bought-first' });
    for (let time = 0; time < 3; time += 1) {
      const refused = await api.post('/ips', unfit, { key: 'bought-first' });
      expect([refused.status, refused.replayed]).toEqual([422, false]);
    }
    const again = await api.post('/ips', {}, { key: 'bought-first' });
    expect([again.replayed, again.data.id]).toEqual([true, first.data.id]);
  });

  test.each([
    ['afterKey', 403],
    ['beforeKey', 201],
  ] as const)('§8.4 (A56) a 403 is stored, or comes before its key: %s', async (scopeCheck, expected) => {
    const api = await open({ readings: { scopeCheck } });
    await api.post('/ips', {}, { key: 'read-only-token', token: api.tokens.read });
    expect((await api.post('/ips', {}, { key: 'read-only-token' })).status).toBe(expected);
  });

  test.each([
    ['afterKey', 402],
    ['beforeKey', 201],
  ] as const)('§8.4 (A57) a 402 is stored, or comes before its key: %s', async (paymentCheck, expected) => {
    const api = await open({ readings: { paymentCheck } });
    api.standing('unpaid');
    await api.post('/ips', {}, { key: 'unpaid-at-first' });
    api.standing('active');
    expect((await api.post('/ips', {}, { key: 'unpaid-at-first' })).status).toBe(expected);
  });

  test.each([
    [false, 201],
    [true, 401],
  ] as const)('§8.4 (A58) a 401 to a revoked token is stored: %s', async (stored401, expected) => {
    const api = await open({ readings: { stored401 } });
    api.emulator.mutate({ do: 'revoke_token', token: api.tokens.member });
    await api.post('/ips', {}, { key: 'revoked-token', token: api.tokens.member });
    expect((await api.post('/ips', {}, { key: 'revoked-token' })).status).toBe(expected);
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

  test('§8.1 a replay has no effect: an older firewall is not put back', async ({ api }) => {
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
