import { describe, expect, test } from 'vitest';
import { TransportError } from '../../src/core/transport.ts';
import { type FaultAction, faultRule } from '../../src/emulator/faults.ts';
import { loadFaults } from '../../src/emulator/faults-file.ts';
import { settled, sliderServer, stage } from './support.ts';

function request(emulator: ReturnType<typeof stage>['emulator'], body = '{}') {
  const headers = {
    authorization: `Bearer ${emulator.tokens().readWrite}`,
    'content-type': 'application/json',
    'idempotency-key': 'key-00001',
  };
  return { method: 'POST', url: 'http://emulator/v1/ips', headers, body };
}

describe('src/emulator/faults.ts', () => {
  test.each([
    [{ do: 'reset' }, 0, 'unknown', 'ECONNRESET'],
    [{ do: 'reset', effect: 'done' }, 1, 'unknown', 'ECONNRESET'],
    [{ do: 'truncate' }, 1, 'unknown', 'ECONNRESET'],
    [{ do: 'refuse' }, 0, 'none', 'ECONNREFUSED'],
  ] as const)('%j breaks the in-process exchange', async (action, ips, effect, code) => {
    const { emulator } = stage({ faults: [faultRule({ nth: 1 }, action)] });
    const send = () => emulator.transport().send(request(emulator), { timeoutMs: 1000 });
    await expect(send()).rejects.toMatchObject({ effect, code });
    expect(emulator.world.projects[0]?.ips).toHaveLength(ips);
    expect((await send()).headers['idempotency-replayed']).toBe(ips === 1 ? 'true' : undefined);
    expect(emulator.world.projects[0]?.ips).toHaveLength(1);
  });

  test('a slow answer times out on the clock of the caller, after its effect', async () => {
    const { clock, emulator } = stage({ faults: [faultRule({ nth: 1 }, { do: 'slow', ms: 5000 })] });
    const sent = emulator.transport().send(request(emulator), { timeoutMs: 1000 });
    const failed = expect(sent).rejects.toMatchObject({ effect: 'unknown', code: 'ETIMEDOUT' });
    await clock.advance(1000);
    await failed;
    expect(emulator.world.projects[0]?.ips).toHaveLength(1);
  });

  test('a signal ends the wait, but not the work', async () => {
    const { emulator } = stage({ faults: [faultRule({ nth: 1 }, { do: 'slow', ms: 5000 })] });
    const stop = new AbortController();
    const sent = emulator.transport().send(request(emulator), { timeoutMs: 10_000, signal: stop.signal });
    await settled();
    stop.abort();
    await expect(sent).rejects.toBeInstanceOf(TransportError);
    expect(emulator.world.projects[0]?.ips).toHaveLength(1);
  });

  test('a late request has its effect after its client has disconnected', async () => {
    const { call, clock, emulator } = stage({ faults: [faultRule({ nth: 1 }, { do: 'late', ms: 90_000 })] });
    await expect(call('POST', '/ips', {}, { key: 'key-00001' })).rejects.toThrow('reset');
    await clock.advance(89_999);
    expect((await call('GET', '/ips')).body.data).toHaveLength(0);
    await clock.advance(1);
    expect((await call('GET', '/ips')).body.data).toHaveLength(1);
    expect(emulator.requests.map(({ delivery }) => delivery)).toEqual(['reset', 'answer', 'late', 'answer']);
  });

  test("a proxy's page has no request id and is not JSON", async () => {
    const { call, emulator } = stage({ faults: [faultRule({ nth: 1 }, { do: 'html', effect: 'done' })] });
    const page = await call('POST', '/ips', {});
    expect(page.status).toBe(502);
    expect(page.headers['x-request-id']).toBeUndefined();
    expect(page.headers['content-type']).toBe('text/html');
    expect(emulator.world.projects[0]?.ips).toHaveLength(1);
  });

  test.each([
    [{ do: 'malformed' }, 201],
    [{ do: 'redirect' }, 302],
    [{ do: 'answer', status: 418, code: 'brand_new', retryAfter: 7 }, 418],
    [{ do: 'stored_429', retryAfter: 3 }, 429],
  ] as [FaultAction, number][])('%j is sent as an answer', async (action, status) => {
    const { call } = stage({ faults: [faultRule({ nth: 1 }, action)] });
    expect((await call('POST', '/ips', {}, { key: 'key-00001' })).status).toBe(status);
  });

  test('a stored 429 is always replayed', async () => {
    const { call, clock } = stage({ faults: [faultRule({ nth: 1 }, { do: 'stored_429' })] });
    await call('POST', '/ips', {}, { key: 'key-00001' });
    await clock.advance(120_000);
    const again = await call('POST', '/ips', {}, { key: 'key-00001' });
    expect(again.status).toBe(429);
    expect(again.headers['idempotency-replayed']).toBe('true');
  });

  test('stale reads show the past, truncated lists show a part, decorated answers show extra fields', async () => {
    const { call, clock } = stage({
      faults: [
        faultRule({ path: 'list_ips', nth: 1 }, { do: 'stale', ms: 30_000 }),
        faultRule({ path: '/server-*', nth: 1 }, { do: 'truncate_list', keep: 1 }),
        faultRule({ path: 'create_network' }, { do: 'omit_task' }),
        faultRule({ path: '/ips/*' }, { do: 'decorate', fields: { colour: 'red' } }),
      ],
    });
    await clock.advance(60_000);
    const ip = (await call('POST', '/ips', {})).body.data;
    expect((await call('GET', '/ips')).body.data).toHaveLength(0);
    expect((await call('GET', '/ips')).body.data).toHaveLength(1);
    expect((await call('GET', '/server-types')).body.data).toHaveLength(1);
    expect((await call('POST', '/networks', { name: 'a', cidr: '10.1.0.0/24' })).body).toEqual({
      data: null,
    });
    expect((await call('GET', `/ips/${ip.id}`)).body.data).toEqual({ ...ip, colour: 'red' });
  });

  test('staleReadsMs makes every read show the past, and tasks advance in the past too', async () => {
    const { call, clock } = stage({ readings: { staleReadsMs: 10_000 } });
    await clock.advance(60_000);
    const { data, task } = (await call('POST', '/servers', await sliderServer(call))).body;
    expect((await call('GET', `/servers/${data.id}/firewall`)).status).toBe(404);
    await clock.advance(45_000);
    expect((await call('GET', `/servers/${data.id}/firewall`)).status).toBe(200);
    await clock.advance(10_000);
    expect((await call('GET', `/tasks/${task.id}`)).body.data.status).toBe('succeeded');
  });

  test('the seed decides which rules with a probability apply', async () => {
    const outcome = async (seed: string) => {
      const { call } = stage({
        seed,
        faults: [faultRule({ probability: 0.5 }, { do: 'answer', status: 503 })],
      });
      const statuses = [];
      for (let read = 0; read < 40; read += 1) statuses.push((await call('GET', '/project')).status);
      return statuses;
    };
    const one = await outcome('one');
    expect(await outcome('one')).toEqual(one);
    expect(await outcome('two')).not.toEqual(one);
    expect(new Set(one)).toEqual(new Set([200, 503]));
  });
});

describe('src/emulator/faults-file.ts', () => {
  test('a file contains rules, or rules and readings', () => {
    const rule = '{when: {method: POST, path: "/servers/**", times: 2}, then: {do: reset, effect: done}}';
    expect(loadFaults(`- ${rule}`).faults).toHaveLength(1);
    const file = loadFaults(`readings: {stored429: true, pageSize: 3}\nfaults:\n  - ${rule}\n`);
    expect(file.readings).toEqual({ stored429: true, pageSize: 3 });
    expect(file.faults[0]?.when).toEqual({ method: 'POST', path: '/servers/**', times: 2 });
    expect(loadFaults('')).toEqual({ faults: [], readings: {}, durations: {} });
  });

  test.each([
    ['- {when: {}, then: {do: explode}}', /faults\[0\]\.then\.do/],
    ['- {when: {pathh: /ips}, then: {do: reset}}', /faults\[0\]\.when.*pathh/],
    ['- {when: {nth: 0}, then: {do: reset}}', /faults\[0\]\.when\.nth/],
    ['readings: {stored430: true}', /readings\.stored430: unknown reading/],
    ['readings: {stored429: maybe}', /readings\.stored429: must be false or true/],
    ['fautls: []', /fautls/],
    ['- [', /line/],
  ])('reports %j with its position', (text, message) => {
    expect(() => loadFaults(text)).toThrow(message);
  });
});
