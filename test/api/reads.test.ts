import { describe, expect, test } from 'vitest';
import type { BudgetWait } from '../../src/api/budget.ts';
import { parseBaseUrl } from '../../src/api/client.ts';
import { maxTries } from '../../src/api/reads.ts';
import { ApiProblem, ConfigError } from '../../src/core/errors.ts';
import type { IpId, ServerId, ServerTypeId, TaskId } from '../../src/core/resources.ts';
import { TransportError } from '../../src/core/transport.ts';
import { scaledClock } from '../../src/platform/system.ts';
import { virtualClock } from '../support/virtual-clock.ts';
import { answer, aProject, baseUrl, memory, ok, problem, proxyPage, rig } from './support.ts';

const server = 7 as ServerId;

describe('src/api/reads.ts', () => {
  test('sends the token, the accepted type and the user agent, and no body headers', async () => {
    const { client, clock, sent } = rig(() => ok(aProject));
    expect(await clock.run(client.reads('operation').project())).toEqual(aProject);
    expect(sent[0]).toMatchObject({
      method: 'GET',
      url: `${baseUrl}/project`,
      headers: {
        authorization: 'Bearer secret-token',
        accept: 'application/json, application/problem+json',
        'user-agent': 'vdcsync/1.2.3',
      },
    });
    expect(sent[0]?.headers).not.toHaveProperty('content-type');
    expect(sent[0]).not.toHaveProperty('body');
  });

  test.each([
    ['a lost answer', () => Promise.reject(new TransportError('reset', 'unknown', 'ECONNRESET'))],
    ['a refused connection', () => Promise.reject(new TransportError('refused', 'none', 'ECONNREFUSED'))],
    ['a 503', () => problem(503, 'unavailable')],
    ['a 500', () => problem(500, 'internal')],
    ['a 429', () => problem(429, 'rate_limited', { 'retry-after': '3' })],
    ["a proxy's 502 page", () => proxyPage(502)],
    ["a proxy's 200 page", () => proxyPage(200)],
    ["a proxy's 404 page", () => proxyPage(404)],
    ["a proxy's 401 page", () => proxyPage(401)],
    ['a 404 without X-Request-Id', () => ({ ...problem(404, 'server_not_found'), headers: {} })],
    ['a 404 of plain JSON', () => answer(404, { code: 'server_not_found' })],
    ['truncated JSON', () => answer(200, '{"data": {"id": 4')],
    ['part of a list', () => answer(206, { data: aProject })],
    ['a redirect', () => answer(302, '', { location: 'https://elsewhere.example/' })],
  ])('retries after %s', async (_what, failure) => {
    const { client, clock, sent } = rig((_request, index) => (index === 0 ? failure() : ok(aProject)));
    expect(await clock.run(client.reads('operation').project())).toEqual(aProject);
    expect(sent).toHaveLength(2);
    expect(sent.every((each) => each.url === `${baseUrl}/project`)).toBe(true);
  });

  test('a read that is aborted by its signal rejects with the reason of the signal', async () => {
    const stop = new AbortController();
    const reason = new Error('stopped');
    const { client, clock, sent } = rig(() => {
      stop.abort(reason);
      throw new TransportError('stopped while under way', 'unknown', 'ABORTED');
    });
    await expect(clock.run(client.reads('operation', stop.signal).project())).rejects.toBe(reason);
    expect(sent).toHaveLength(1);
  });

  test('gives up after a limited number of tries, with growing waits', async () => {
    const { client, clock, sent } = rig(() => problem(503, 'unavailable'), { random: () => 1 });
    const failed = clock.run(client.reads('operation').ips());
    await expect(failed).rejects.toMatchObject({ name: 'ApiProblem', status: 503, code: 'unavailable' });
    expect(sent).toHaveLength(maxTries);
    expect(sent.map(({ at }) => at)).toEqual([0, 1_000, 5_000, 21_000, 81_000]);
  });

  test('does not retry once its transport is closed', async () => {
    const { client, clock, sent } = rig(() =>
      Promise.reject(new TransportError('closed', 'unknown', 'CLOSED')),
    );
    await expect(clock.run(client.reads('operation').ips())).rejects.toMatchObject({ code: 'CLOSED' });
    expect(sent).toHaveLength(1);
  });

  test("reports a proxy's answer as no answer, never as a refusal by the API", async () => {
    for (const status of [200, 401, 403, 404, 502]) {
      const { client, clock } = rig(() => proxyPage(status));
      await expect(clock.run(client.reads('operation').findIp(1))).rejects.toBeInstanceOf(TransportError);
    }
  });

  test.each([401, 402, 403, 404, 405, 409, 422])('does not retry the refusal %i', async (status) => {
    const { client, clock, sent } = rig(() => problem(status, 'some_code'));
    await expect(clock.run(client.reads('operation').networks())).rejects.toMatchObject({
      status,
      code: 'some_code',
    });
    expect(sent).toHaveLength(1);
  });

  test('waits for the Retry-After of a 503', async () => {
    const { client, clock, sent } = rig((_request, index) =>
      index === 0 ? problem(503, 'busy', { 'retry-after': '30' }) : ok(aProject),
    );
    await clock.run(client.reads('operation').project());
    expect(sent[1]?.at).toBe(30_000);
  });

  test('reports a resource as not found only for a 404 with the not-found code of the resource', async () => {
    const gone = rig(() => problem(404, 'server_not_found'));
    const reads = gone.client.reads('operation');
    const found = Promise.all([
      reads.findNetworkInterfaces(server),
      reads.findFirewall(server),
      reads.findBackups(server),
      reads.findBackupPolicy(server),
      reads.findIp(1),
      reads.findIso('uiso-1'),
      reads.findTask('t-1' as TaskId),
    ]);
    expect(await gone.clock.run(found)).toEqual(Array(7).fill(undefined));

    const other = rig(() => problem(404, 'backup_policy_not_found'));
    await expect(
      other.clock.run(other.client.reads('operation').findBackupPolicy(server)),
    ).rejects.toMatchObject({ status: 404 });
    expect(await other.clock.run(other.client.reads('operation').findIp(1 as IpId))).toBeUndefined();
  });

  test('logs the path of an undocumented field, and keeps the field', async () => {
    const { client, clock, sent } = rig(() =>
      ok([
        { id: 1, name: 'a', cidr: '10.0.0.0/24', is_default: false },
        { id: 2, name: 'b', is_default: false },
      ]),
    );
    await expect(clock.run(client.reads('operation').networks())).rejects.toThrow(
      /GET \/networks .*data\.1\.cidr/,
    );
    expect(sent).toHaveLength(1);
    for (const body of [{ data: null }, { data: { items: [] } }, {}, [], 'x', null]) {
      const odd = rig(() => answer(200, JSON.stringify(body)));
      await expect(odd.clock.run(odd.client.reads('operation').ips())).rejects.toBeInstanceOf(ApiProblem);
    }
  });

  test.each([
    ['no connection', () => Promise.reject(new TransportError('refused', 'none', 'ECONNREFUSED')), 'refused'],
    ['a page', () => proxyPage(200), 'GET /project: '],
    ['a page without headers', () => ({ status: 404, headers: {}, body: 'Not found' }), 'GET /project: '],
    [
      'the way to one',
      () => ({ status: 302, headers: { location: 'https://login.test/' }, body: '' }),
      'GET /project: ',
    ],
  ])('before the first answer of the API, a request with %s fails within 10 s and names the base URL', async (_name, failure, why) => {
    const { client, clock } = rig(failure);
    const text =
      why === 'refused' ? `no connection to ${baseUrl}: ` : `the service at ${baseUrl} is not the API: `;
    await expect(clock.run(client.reads('operation').project())).rejects.toThrow(text + why);
    expect(clock.monotonic()).toBeLessThan(10_000);
  });

  test.each([
    ['a page', () => proxyPage(200), 'does not come from the API'],
    [
      'no connection',
      () => Promise.reject(new TransportError('refused', 'none', 'ECONNREFUSED')),
      /^refused/,
    ],
  ])('once the API has answered, %s is retried as often as any failure', async (_what, failure, message) => {
    const { client, clock, sent } = rig((_request, index) => (index === 0 ? ok(aProject) : failure()));
    const reads = client.reads('operation');
    await clock.run(reads.project());
    await expect(clock.run(reads.project())).rejects.toThrow(message);
    expect(sent).toHaveLength(1 + maxTries);
  });

  test('builds paths from ids alone, with any characters in the ids', async () => {
    const { client, clock, sent } = rig(() => problem(404, 'task_not_found'));
    await clock.run(client.reads('poll').findTask('../servers/1?x=#' as TaskId));
    expect(sent[0]?.url).toBe(`${baseUrl}/tasks/..%2Fservers%2F1%3Fx%3D%23`);
    await expect(client.reads('poll').findTask('..' as TaskId)).rejects.toBeInstanceOf(TransportError);
    expect(sent).toHaveLength(1);
  });

  test('reads the token for each request, and a new token has its own budget', async () => {
    let token = 'first';
    const { client, clock, sent, memory: memo } = rig(() => ok(aProject), { token: () => token });
    await clock.run(client.reads('operation').project());
    token = 'second';
    await clock.run(client.reads('operation').project());
    expect(sent.map(({ headers }) => headers.authorization)).toEqual(['Bearer first', 'Bearer second']);
    expect(new Set(memo.uses.map(({ bucket }) => bucket)).size).toBe(2);
    expect(JSON.stringify(memo.uses)).not.toMatch(/first|second/);
  });

  test('sends the new token if the token changes while its request waits', async () => {
    let token = 'first';
    const { client, clock, sent } = rig(() => ok(aProject), {
      token: () => token,
      profile: { limits: { windowMs: 60_000, reads: 1, writes: 1 } },
    });
    await clock.run(client.reads('operation').project());
    const waiting = client.reads('operation').project();
    await clock.advance(1_000);
    token = 'second';
    await clock.run(waiting);
    expect(sent.at(-1)?.headers.authorization).toBe('Bearer second');
  });

  test('refuses a token with characters that headers do not allow, without printing the token', async () => {
    const { client, clock, sent } = rig(() => ok(aProject), { token: () => 'canary-secret\n' });
    const failed = clock.run(client.reads('operation').project());
    await expect(failed).rejects.toBeInstanceOf(ConfigError);
    await expect(failed).rejects.not.toThrow(/canary/);
    expect(sent).toHaveLength(0);
  });

  test('a 429 delays every read by Retry-After in real seconds, with a faster clock too', async () => {
    const real = virtualClock();
    const speed = 50;
    const { client, sent } = rig(
      (_request, index) =>
        index === 0 ? problem(429, 'rate_limited', { 'retry-after': '10' }) : ok(aProject),
      { clock: real, scaled: scaledClock(real, speed, real.now()), profile: { timeScale: speed } },
    );
    await real.run(
      Promise.all([
        client.reads('refresh').project(),
        real.sleep(1).then(() => client.reads('poll').project()),
      ]),
    );
    expect(sent.slice(1).map(({ at }) => at)).toEqual([10_000, 10_000]);
    expect(client.counts()).toEqual({ reads: 3, writes: 0, polls: 1, probes: 0, throttled: 1 });
  });

  test('time-outs shrink with a faster API clock, but not below the time that a network needs', async () => {
    const timeouts: number[] = [];
    for (const timeScale of [1, 10, 100]) {
      const { client, clock } = rig(
        (_request, _index, { timeoutMs }) => {
          timeouts.push(timeoutMs, client.requestTimeoutMs);
          return ok(aProject);
        },
        { profile: { timeScale } },
      );
      await clock.run(client.reads('operation').project());
    }
    expect(timeouts).toEqual([30_000, 30_000, 3_000, 30_000, 2_000, 200_000]);
  });

  test('a 429 affects only the requests in flight, and is logged once', async () => {
    const waits: BudgetWait[] = [];
    // What an earlier dry run has left of the minute.
    let left = 10;
    const { client, clock, sent } = rig(
      async () => {
        await clock.sleep(50);
        const second = 59 - Math.floor(clock.monotonic() / 1000);
        if (second <= 0) return ok([]);
        left -= 1;
        return left >= 0 ? ok([]) : problem(429, 'rate_limited', { 'retry-after': String(second) });
      },
      { onWait: (wait) => waits.push(wait) },
    );
    const reads = client.reads('refresh');
    const servers = Array.from({ length: 55 }, (_, at) => reads.findBackups(at as ServerId));
    await clock.run(Promise.all(servers));
    expect(sent.length).toBeLessThanOrEqual(55 + 8);
    expect(waits[0]).toEqual({ of: 'reads', realMs: 59_000, waiting: 37, limited: true });
    expect(waits.filter(({ limited }) => limited)).toHaveLength(1);
  });

  test('logs an exhausted budget once, and does not log short waits', async () => {
    const waits: BudgetWait[] = [];
    const { client, clock } = rig(() => ok(aProject), { onWait: (wait) => waits.push(wait) });
    const reads = client.reads('refresh');
    await clock.run(Promise.all(Array.from({ length: 70 }, () => reads.project())));
    expect(waits).toEqual([{ of: 'reads', realMs: expect.closeTo(60_060, -2), waiting: 10, limited: false }]);
  });

  test('the next process respects a 429; reads and writes have separate budgets', async () => {
    const memo = memory();
    const clock = virtualClock();
    const first = rig(() => problem(429, 'rate_limited', { 'retry-after': '20' }), { memory: memo, clock });
    first.client
      .reads('operation')
      .project()
      .catch(() => {});
    await clock.advance(10);
    const next = rig(() => ok(aProject), { memory: memo, clock });
    await next.client.writes.room();
    expect(clock.monotonic()).toBe(10);
    await clock.run(next.client.reads('operation').project());
    expect(next.sent[0]?.at).toBe(20_000);
  });

  test("takes the API's time from the API's last Date header, and not from a proxy's", async () => {
    const date = 'Thu, 01 Jan 2026 12:00:00 GMT';
    const { client, clock } = rig((_request, index) =>
      index === 0
        ? ok(aProject, { date })
        : { ...proxyPage(502), headers: { date: 'Thu, 01 Jan 2099 12:00:00 GMT' } },
    );
    const reads = client.reads('operation');
    expect(reads.apiNow()).toBeUndefined();
    await clock.run(reads.project());
    await clock.run(reads.project().catch(() => {}));
    expect(reads.apiNow()).toBe(Date.parse(date) + clock.monotonic());
  });

  test('keeps the digits of prices as in the answer', async () => {
    const body = `{"data": {"server_type_id": 3, "pricing_mode": "fixed", "limits": null, "gpu_packages": [
      {"key": "a", "name": "A", "price": 12.10, "backup_price": 0.30000000000000004},
      {"key": "b", "name": "B", "price": 1.5e2, "backup_price": "7.00"},
      {"key": "c", "name": "C", "price": "on request"}]}}`;
    const { client, clock } = rig(() => answer(200, body));
    expect(await clock.run(client.reads('operation').pricing(3 as ServerTypeId))).toEqual({
      gpu_packages: [
        { key: 'a', name: 'A', price: '12.10', backup_price: '0.30000000000000004' },
        { key: 'b', name: 'B', price: '150', backup_price: '7.00' },
        { key: 'c', name: 'C', price: null, backup_price: null },
      ],
    });
  });
});

describe('src/api/client.ts: parseBaseUrl', () => {
  test.each([
    ['https://api.example.com/v1', 'https://api.example.com/v1'],
    ['https://api.example.com/project/v12/', 'https://api.example.com/project/v12'],
    ['http://127.0.0.1:8080/v1', 'http://127.0.0.1:8080/v1'],
    ['http://localhost:1/v1', 'http://localhost:1/v1'],
    ['http://[::1]:1/v2', 'http://[::1]:1/v2'],
  ])('accepts %s', (text, url) => {
    expect(parseBaseUrl(text)).toBe(url);
  });

  test.each([
    'api.example.com/v1',
    'https://api.example.com',
    'https://api.example.com/v1/servers',
    'https://api.example.com/version1',
    'http://api.example.com/v1',
    'http://127.0.0.1.example.com/v1',
    'ftp://localhost/v1',
    'https://user:canary@api.example.com/v1',
    'https://api.example.com/v1?token=canary',
    'https://api.example.com/v1#canary',
  ])('refuses %s', (text) => {
    expect(() => parseBaseUrl(text)).toThrow(ConfigError);
    expect(() => parseBaseUrl(text)).not.toThrow(/canary/);
  });
});
