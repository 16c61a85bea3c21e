import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildWrite } from '../../src/api/writes.ts';
import type { WriteName, WriteRequest } from '../../src/core/ports.ts';
import { type ApiProfile, documentedProfile } from '../../src/core/profile.ts';
import { type HttpResponse, TransportError } from '../../src/core/transport.ts';
import { answer, baseUrl, problem, proxyPage, rig } from './support.ts';

const key = 'vdcsync-0123456789';
const createServer: WriteRequest = {
  name: 'create_server',
  path: {},
  body: { name: 'web-1', server_type_id: 1 },
};
const aTask = { id: 't-1', status: 'pending', is_terminal: false, poll: '/v1/tasks/t-1', created_at: 'x' };

async function send(
  response: () => HttpResponse | Promise<HttpResponse>,
  request: WriteRequest = createServer,
) {
  const { client, clock, sent } = rig(response);
  const result = await clock.run(client.writes.send(request, key));
  return { result, sent };
}

describe('src/api/writes.ts', () => {
  type Case = [what: string, response: () => HttpResponse | Promise<HttpResponse>, result: object];
  const data = { id: 5 };
  const problemType = { 'content-type': 'application/problem+json' };
  const answered = (more: object) => ({ type: 'answer', ...more });
  const ambiguous = (status: number) => ({ type: 'ambiguous', status });
  const malformed = (why: string) => answered({ malformed: why });
  const fails = (...why: ConstructorParameters<typeof TransportError>) =>
    Promise.reject(new TransportError(...why));
  const classification: readonly Case[] = [
    [
      '202 with a task',
      () => answer(202, { data, task: aTask }, { 'x-request-id': 'r' }),
      answered({ status: 202, requestId: 'r', replayed: false, data, task: { id: 't-1', terminal: false } }),
    ],
    ['task null', () => answer(201, { data, task: null }), answered({ task: null })],
    ['an answer without a task', () => answer(202, { data }), answered({ task: 'missing' })],
    [
      'a task without an id',
      () => answer(202, { data, task: { status: 'pending' } }),
      answered({ task: 'missing' }),
    ],
    [
      'a replayed 2xx',
      () => answer(202, { data, task: aTask }, { 'idempotency-replayed': 'true' }),
      answered({ replayed: true }),
    ],
    ['a cut-off 2xx', () => answer(202, '{"data": {'), malformed('the body is not JSON')],
    ['a 2xx without a body', () => answer(204, ''), malformed('the body is empty')],
    ['2xx without data', () => answer(202, { task: aTask }), malformed('data: missing')],
    ['a 2xx without the id', () => answer(202, { data: {}, task: null }), malformed('data.id: missing')],
    ["a proxy's 200 page", () => proxyPage(200), ambiguous(200)],
    [
      'an HTML page with status 200 and a request id',
      () => answer(200, '<p>', { 'content-type': 'text/html' }),
      ambiguous(200),
    ],
    ['302', () => answer(302, '', { location: '/v1/servers/1' }), ambiguous(302)],
    ['307', () => answer(307, '{}', { location: 'https://x' }), ambiguous(307)],
    ["a proxy's 502 page", () => proxyPage(502), ambiguous(502)],
    ['a cut-off 503', () => answer(503, '{"code"', problemType), ambiguous(503)],
    [
      'a problem without X-Request-Id',
      () => ({ status: 422, headers: problemType, body: '{"code":"invalid_request"}' }),
      ambiguous(422),
    ],
    ['a 503 of the API', () => problem(503, 'unavailable'), answered({ status: 503, code: 'unavailable' })],
    [
      '409 with Retry-After',
      () => problem(409, 'server_busy', { 'retry-after': '3' }),
      answered({ status: 409, code: 'server_busy', retryAfterMs: 3_000 }),
    ],
    [
      'a problem of plain JSON with a code',
      () => answer(409, { code: 'no_gpu_capacity' }),
      answered({ status: 409, code: 'no_gpu_capacity' }),
    ],
    ['plain JSON without a code', () => answer(409, { message: 'no' }), ambiguous(409)],
    [
      'a problem without a code',
      () => answer(409, { title: 'Conflict' }, { 'content-type': 'application/problem+json; charset=utf-8' }),
      answered({ status: 409, code: null, title: 'Conflict' }),
    ],
    [
      'a replayed 429',
      () => problem(429, 'rate_limited', { 'retry-after': '60', 'idempotency-replayed': 'true' }),
      answered({ status: 429, replayed: true }),
    ],
    [
      'a validation failure',
      () =>
        answer(
          422,
          { code: 'invalid_request', invalid_params: [{ name: 'name', reason: 'too\u001b[31m long' }] },
          problemType,
        ),
      answered({ code: 'invalid_request', invalidParams: [{ name: 'name', reason: 'too [31m long' }] }),
    ],
    [
      'a refused connection',
      () => fails('connect ECONNREFUSED', 'none', 'ECONNREFUSED'),
      { type: 'unsent', reason: 'connect ECONNREFUSED' },
    ],
    ['a reset', () => fails('reset', 'unknown', 'ECONNRESET'), { type: 'ambiguous', reason: 'reset' }],
    ['a fault of the transport itself', () => Promise.reject(new Error('bug')), { type: 'ambiguous' }],
  ];

  test.each(classification)('%s', async (_what, response, expected) => {
    const { result, sent } = await send(response);
    expect(result).toMatchObject(expected);
    expect(sent).toHaveLength(1);
    if (result.type === 'answer') expect(result.malformed === undefined).toBe(!('malformed' in expected));
  });

  test('requires no task and no id where the API document shows none', async () => {
    const released = await send(() => answer(200, { data: { deleted: 4 } }), {
      name: 'release_ip',
      path: { id: 4 },
    });
    expect(released.result).toEqual({
      type: 'answer',
      status: 200,
      requestId: expect.any(String),
      replayed: false,
      data: { deleted: 4 },
    });
    const network = await send(() => answer(202, { data: null, task: aTask }), {
      name: 'create_network',
      path: {},
      body: { name: 'n', cidr: '10.0.0.0/24' },
    });
    expect(network.result).toMatchObject({ data: null, task: { id: 't-1' } });
    expect(network.result).not.toHaveProperty('malformed');
  });

  test('sends the key, the exact bytes of the body, and a content type only with a body', async () => {
    const withBody = await send(() => answer(202, { data: { id: 1 }, task: null }));
    expect(withBody.sent[0]).toMatchObject({
      method: 'POST',
      url: `${baseUrl}/servers`,
      body: '{"name":"web-1","server_type_id":1}',
      headers: { 'idempotency-key': key, 'content-type': 'application/json' },
    });
    const bodiless = await send(() => answer(200, { data: { id: 'b' } }), {
      name: 'take_backup',
      path: { server_id: 3 },
    });
    expect(bodiless.sent[0]?.url).toBe(`${baseUrl}/servers/3/backups`);
    expect(bodiless.sent[0]?.headers).not.toHaveProperty('content-type');
    expect(bodiless.sent[0]).not.toHaveProperty('body');
  });

  test('an invalid key, token or request is unsent', async () => {
    const { client, sent } = rig(() => answer(200, {}));
    expect(await client.writes.send(createServer, 'short')).toMatchObject({ type: 'unsent' });
    expect(await client.writes.send(createServer, 'with\nbreak-in-it')).toMatchObject({ type: 'unsent' });
    expect(await client.writes.send({ name: 'create_server', path: {} }, key)).toMatchObject({
      type: 'unsent',
    });
    expect(await client.writes.send({ name: 'release_ip', path: { id: '..' } }, key)).toMatchObject({
      type: 'unsent',
    });
    const noToken = rig(() => answer(200, {}), {
      token: () => {
        throw new Error('the token file is gone');
      },
    });
    expect(await noToken.client.writes.send(createServer, key)).toEqual({
      type: 'unsent',
      reason: 'the token file is gone',
    });
    expect([...sent, ...noToken.sent]).toHaveLength(0);
  });

  test('never throws, and is conclusive only with a request id, for any answer', async () => {
    const response = fc.record({
      status: fc.integer({ min: 200, max: 599 }),
      headers: fc.record(
        {
          'x-request-id': fc.constantFrom('r', '', ' '),
          'content-type': fc.constantFrom('application/json', 'application/problem+json;x', 'text/html', ';'),
          'retry-after': fc.constantFrom('0', '5', '-1', 'soon', '1e9', 'Thu, 01 Jan 2026 00:00:00 GMT'),
          'idempotency-replayed': fc.constantFrom('true', 'false', ''),
          date: fc.constantFrom('Thu, 01 Jan 2026 00:00:00 GMT', 'never'),
        },
        { requiredKeys: [] },
      ),
      body: fc.oneof(
        fc.json(),
        fc.string(),
        fc
          .record({ data: fc.jsonValue(), task: fc.jsonValue() }, { requiredKeys: [] })
          .map((each) => JSON.stringify(each)),
        fc
          .record(
            { code: fc.jsonValue(), detail: fc.jsonValue(), invalid_params: fc.jsonValue() },
            { requiredKeys: [] },
          )
          .map((each) => JSON.stringify(each)),
      ),
    });
    await fc.assert(
      fc.asyncProperty(response, async ({ status, headers, body }) => {
        const plain = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
        const { result, sent } = await send(() => ({ status, headers: plain, body }));
        expect(sent).toHaveLength(1);
        expect(result.type).not.toBe('unsent');
        expect(result).toMatchObject({ status });
        if (result.type !== 'answer') return;
        expect(result.requestId).toBe('r');
        expect(status < 300 || status >= 400).toBe(true);
        expect(result.code === undefined).toBe(status < 300);
      }),
      { numRuns: 500 },
    );
  });

  test('never reports a write as unsent after an answer has arrived', async () => {
    const logger = {
      debug: () => {
        throw new Error('the log is full');
      },
      warn: () => {},
    };
    const { client, clock } = rig(() => answer(201, { data: { id: 1 } }), { logger });
    expect(await clock.run(client.writes.send(createServer, key))).toMatchObject({ type: 'ambiguous' });
  });

  test('a new 429 closes the whole bucket, even from a proxy; a replayed 429 closes nothing', async () => {
    const replayed = rig(() => problem(429, 'x', { 'retry-after': '60', 'idempotency-replayed': 'true' }));
    await replayed.clock.run(replayed.client.writes.send(createServer, key));
    await replayed.clock.run(replayed.client.writes.room());
    expect(replayed.clock.monotonic()).toBe(0);

    const proxied = rig(() => ({ status: 429, headers: { 'retry-after': '17' }, body: 'slow down' }));
    const result = await proxied.clock.run(proxied.client.writes.send(createServer, key));
    expect(result).toMatchObject({ type: 'ambiguous', status: 429 });
    await proxied.clock.run(proxied.client.writes.room());
    expect(proxied.clock.monotonic()).toBe(17_000);
  });

  test('a write whose answer was lost keeps its slot until the write can no longer arrive', async () => {
    const { client, clock } = rig(
      () => Promise.reject(new TransportError('time-out', 'unknown', 'TIMEOUT')),
      { profile: { limits: { windowMs: 60_000, reads: 60, writes: 1 } } },
    );
    await clock.run(client.writes.send(createServer, key));
    await clock.run(client.writes.room());
    expect(clock.monotonic()).toBeGreaterThan(90_000);
  });

  test('sends at most twenty writes a minute', async () => {
    const { client, clock, sent } = rig(() => answer(201, { data: { id: 1 } }));
    const request: WriteRequest = { name: 'allocate_ip', path: {} };
    await clock.run(
      Promise.all(Array.from({ length: 41 }, (_, i) => client.writes.send(request, `${key}-${i}`))),
    );
    expect(sent.filter(({ at }) => at === 0)).toHaveLength(20);
    expect(sent.filter(({ at }) => at <= 60_000)).toHaveLength(20);
    expect(sent.filter(({ at }) => at <= 120_000)).toHaveLength(40);
    expect(client.counts().writes).toBe(41);
  });

  test('a write that is no longer valid is not sent and takes no slot', async () => {
    const { client, clock, sent } = rig(() => answer(201, { data: { id: 5 }, task: null }));
    const send = (mayGo: () => boolean) => client.writes.send(createServer, key, undefined, mayGo);
    for (let n = 0; n < 20; n++) expect(await clock.run(send(() => false))).toMatchObject({ type: 'unsent' });
    expect(sent).toEqual([]);
    await clock.run(send(() => true));
    expect([sent.length, clock.monotonic()]).toEqual([1, 0]);
  });
});

describe('src/api/writes.ts: the request', () => {
  const built = (request: WriteRequest, operations: ApiProfile['operations'] = {}) => {
    const { method, path, body } = buildWrite(request, { ...documentedProfile, operations });
    return [method, path, body].filter((each) => each !== undefined).join(' ');
  };

  const documented: readonly [WriteName, WriteRequest['path'], string][] = [
    ['allocate_ip', {}, 'POST /ips {"x":1}'],
    ['release_ip', { id: 4 }, 'DELETE /ips/4'],
    ['add_iso', {}, 'POST /isos {"x":1}'],
    ['delete_iso', { id: 'uiso-12' }, 'DELETE /isos/uiso-12'],
    ['create_network', {}, 'POST /networks {"x":1}'],
    ['delete_network', { id: 4 }, 'DELETE /networks/4'],
    ['create_server', {}, 'POST /servers {"x":1}'],
    ['delete_server', { id: 4 }, 'DELETE /servers/4'],
    ['add_network_interface', { server_id: 4 }, 'POST /servers/4/network-interfaces {"x":1}'],
    ['put_firewall', { server_id: 4 }, 'PUT /servers/4/firewall {"x":1}'],
    ['take_backup', { server_id: 4 }, 'POST /servers/4/backups'],
  ];
  test.each(documented)('%s', (name, path, expected) => {
    expect(built({ name, path, body: { x: 1 } })).toBe(expected);
  });

  test('allocates an address with an empty object when no field is set', () => {
    expect(built({ name: 'allocate_ip', path: {} })).toBe('POST /ips {}');
  });

  test('an id cannot leave its path segment', () => {
    expect(built({ name: 'delete_iso', path: { id: 'a/../b?c#d' } })).toBe('DELETE /isos/a%2F..%2Fb%3Fc%23d');
    expect(() => built({ name: 'delete_iso', path: { id: '' } })).toThrow(/cannot be an id/);
    expect(() => built({ name: 'delete_iso', path: {} })).toThrow(/needs other ids/);
  });

  test('sends an undocumented operation as the profile defines, and none without the profile', () => {
    const removal: WriteRequest = { name: 'remove_network_interface', path: { id: 'net1', server_id: 4 } };
    expect(() => built(removal)).toThrow(/profile/);
    for (const path of [
      '/servers/{server_id}/cards/{id}',
      '/servers/{server}/cards/{card}',
      '/servers/{id}/cards/{nic}',
    ]) {
      expect(built(removal, { remove_network_interface: { method: 'delete', path } })).toBe(
        'DELETE /servers/4/cards/net1',
      );
    }
    const policy: WriteRequest = {
      name: 'update_backup_policy',
      path: { server_id: 4 },
      body: { enabled: true, keep: 3 },
    };
    expect(
      built(policy, { update_backup_policy: { method: 'PUT', path: '/servers/{id}/backup-policy' } }),
    ).toBe('PUT /servers/4/backup-policy {"enabled":true,"keep":3}');
    expect(built(removal, { remove_network_interface: {} })).toBe(
      'DELETE /servers/4/network-interfaces/net1',
    );
    const body = { policy: { on: '{enabled}', keep: '{keep}', mode: 'fixed' } };
    expect(built(policy, { update_backup_policy: { method: 'PUT', path: '/p/{id}', body } })).toBe(
      'PUT /p/4 {"policy":{"on":true,"keep":3,"mode":"fixed"}}',
    );
    for (const template of [
      { method: 'GET', path: '/servers/{id}' },
      { method: 'PUT', path: '//evil.example/{id}' },
      { method: 'PUT', path: 'https://evil.example/{id}' },
      { method: 'PUT', path: '/../{id}' },
      { method: 'PUT', path: '/p/{id}', body: '{nothing}' },
    ]) {
      expect(() => built(policy, { update_backup_policy: template })).toThrow();
    }
  });
});
