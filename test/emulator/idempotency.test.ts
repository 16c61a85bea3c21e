import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { settled, sliderServer, stage } from './support.ts';

const HOUR = 3_600_000;
const DEFAULT_PROJECTS_AND_STAGING = [
  { id: 4711, name: 'shop' },
  { id: 4712, name: 'staging' },
];

describe('src/emulator/idempotency.ts', () => {
  test('the same key and body replay the first answer and buy nothing', async () => {
    const { call, emulator } = stage();
    const first = await call('POST', '/ips', { server_type_id: 3 }, { key: 'key-00001' });
    const again = await call('POST', '/ips', '{ "server_type_id" : 3 }', { key: 'key-00001' });
    expect(again.status).toBe(201);
    expect(again.body).toEqual(first.body);
    expect(again.headers['idempotency-replayed']).toBe('true');
    expect(again.headers.location).toBe(first.headers.location);
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    expect(emulator.world.projects[0]?.ips).toHaveLength(1);
    expect(emulator.world.executions).toMatchObject([{ kind: 'ip', idempotencyKey: 'key-00001' }]);
  });

  test.each([422, 409, 400] as const)('a key used for another body is refused with %s', async (status) => {
    const { call, emulator } = stage({ readings: { reusedKeyStatus: status } });
    await call('POST', '/ips', {}, { key: 'key-00001' });
    const other = await call('POST', '/ips', { server_type_id: 8 }, { key: 'key-00001' });
    expect(other.status).toBe(status);
    expect(emulator.world.projects[0]?.ips).toHaveLength(1);
  });

  test('method and path are part of the match, or are not', async () => {
    const strict = stage();
    await strict.call('POST', '/ips', {}, { key: 'key-00001' });
    const body = { name: 'a', cidr: '10.1.0.0/24' };
    expect((await strict.call('POST', '/networks', body, { key: 'key-00001' })).status).toBe(422);
    const loose = stage({ readings: { keyMatches: 'body' } });
    await loose.call('POST', '/ips', {}, { key: 'key-00001' });
    const replayed = await loose.call('POST', '/servers/1/backups', {}, { key: 'key-00001' });
    expect(replayed.status).toBe(201);
    expect(replayed.headers['idempotency-replayed']).toBe('true');
  });

  test.each([
    'short-7',
    'x'.repeat(256),
    'tab\tinside',
    'ünprintable',
  ])('the key %j is refused', async (key) => {
    const { call, emulator } = stage();
    const refused = await call('POST', '/ips', {}, { key });
    expect(refused.status).toBe(422);
    expect(refused.body.invalid_params[0].name).toBe('Idempotency-Key');
    expect(emulator.world.projects[0]?.ips).toHaveLength(0);
  });

  test('a key is kept for 24 hours, from its first use', async () => {
    const { call, clock, emulator } = stage();
    await call('POST', '/ips', {}, { key: 'key-00001' });
    await clock.forward(24 * HOUR - 1);
    expect((await call('POST', '/ips', {}, { key: 'key-00001' })).headers['idempotency-replayed']).toBe(
      'true',
    );
    await clock.forward(1);
    expect(
      (await call('POST', '/ips', {}, { key: 'key-00001' })).headers['idempotency-replayed'],
    ).toBeUndefined();
    expect(emulator.world.projects[0]?.ips).toHaveLength(2);
  });

  test('a key is kept for 24 hours from its last use where the reading says so', async () => {
    const { call, clock, emulator } = stage({ readings: { retentionFrom: 'last' } });
    await call('POST', '/ips', {}, { key: 'key-00001' });
    for (let day = 0; day < 3; day += 1) {
      await clock.forward(23 * HOUR);
      await call('POST', '/ips', {}, { key: 'key-00001' });
    }
    expect(emulator.world.projects[0]?.ips).toHaveLength(1);
  });

  test('refusals are stored: 402, 403, 404, 415 and 422 are replayed', async () => {
    const { call, emulator } = stage();
    emulator.mutate({ do: 'set_standing', standing: 'suspended' });
    const refusals = [
      [402, '/ips', {}, {}],
      [403, '/ips', {}, { token: emulator.tokens().read }],
      [404, '/servers/9/backups', {}, {}],
      [415, '/ips', 'a=1', { headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
      [422, '/ips', { nonsense: 1 }, {}],
    ] as const;
    for (const [status, path, body, options] of refusals) {
      const key = `key-for-${status}`;
      const first = await call('POST', path, body, { ...options, key });
      expect(first.status).toBe(status);
      const again = await call('POST', path, body, { key });
      expect(again.status).toBe(status);
      expect(again.headers['idempotency-replayed']).toBe('true');
      expect(again.body.request_id).toBe(again.headers['x-request-id']);
    }
  });

  test('409 and 5xx are not stored', async () => {
    const { call, clock, emulator } = stage({
      faults: [faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'answer', status: 503 })],
    });
    expect((await call('POST', '/ips', {}, { key: 'key-00001' })).status).toBe(503);
    expect((await call('POST', '/ips', {}, { key: 'key-00001' })).status).toBe(201);
    const body = await sliderServer(call, { public_ipv4: { reuse: true } });
    const server = (await call('POST', '/servers', body)).body.data;
    await clock.forward(45_000);
    const ip = server.ips[0].id;
    expect((await call('DELETE', `/ips/${ip}`, undefined, { key: 'release-1' })).body.code).toBe('ip_in_use');
    await call('DELETE', `/servers/${server.id}`);
    await clock.forward(20_000);
    expect((await call('DELETE', `/ips/${ip}`, undefined, { key: 'release-1' })).body.data).toEqual({
      deleted: ip,
    });
    expect(emulator.billed()).toEqual([]);
  });

  test('a 5xx after the effect is not stored, so the same key buys again', async () => {
    const { call, emulator } = stage({
      faults: [faultRule({ path: '/ips', nth: 1 }, { do: 'answer', status: 500, effect: 'done' })],
    });
    expect((await call('POST', '/ips', {}, { key: 'key-00001' })).status).toBe(500);
    expect((await call('POST', '/ips', {}, { key: 'key-00001' })).status).toBe(201);
    expect(emulator.world.projects[0]?.ips).toHaveLength(2);
  });

  test('a 429 is stored only where the reading says so', async () => {
    for (const stored429 of [false, true]) {
      const { call, clock } = stage({ readings: { stored429 } });
      for (let write = 0; write < 20; write += 1) await call('POST', '/ips', {});
      expect((await call('POST', '/ips', {}, { key: 'key-00001' })).status).toBe(429);
      await clock.forward(60_000);
      expect((await call('POST', '/ips', {}, { key: 'key-00001' })).status).toBe(stored429 ? 429 : 201);
    }
  });

  test('replays cost budget, or do not', async () => {
    for (const replaysCost of [true, false]) {
      const { call } = stage({ readings: { replaysCost } });
      const statuses = [];
      for (let write = 0; write < 25; write += 1) {
        statuses.push((await call('POST', '/ips', {}, { key: 'key-00001' })).status);
      }
      expect(statuses.filter((status) => status === 201)).toHaveLength(replaysCost ? 20 : 25);
    }
  });

  test('keys belong to the project: its tokens share them, other projects do not', async () => {
    const { call, emulator } = stage({ projects: DEFAULT_PROJECTS_AND_STAGING });
    const key = 'key-00001';
    const first = await call('POST', '/ips', {}, { key });
    const member = await call('POST', '/ips', {}, { key, token: emulator.tokens().member });
    expect(member.body).toEqual(first.body);
    const other = await call('POST', '/ips', {}, { key, token: emulator.tokens(4712).readWrite });
    expect(other.headers['idempotency-replayed']).toBeUndefined();
    expect(emulator.world.projects.map((project) => project.ips.length)).toEqual([1, 1]);
  });

  test('a key in flight is refused and not stored, or waited for', async () => {
    const late = faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'late', ms: 5000 });
    const refusing = stage({ faults: [late] });
    await expect(refusing.call('POST', '/ips', {}, { key: 'key-00001' })).rejects.toThrow('reset');
    expect((await refusing.call('POST', '/ips', {}, { key: 'key-00001' })).status).toBe(409);
    await refusing.clock.forward(5000);
    const after = await refusing.call('POST', '/ips', {}, { key: 'key-00001' });
    expect(after.headers['idempotency-replayed']).toBe('true');

    const waiting = stage({ faults: [late], readings: { inFlightKey: 'wait' } });
    await expect(waiting.call('POST', '/ips', {}, { key: 'key-00001' })).rejects.toThrow('reset');
    const answer = waiting.call('POST', '/ips', {}, { key: 'key-00001' });
    await settled();
    expect(waiting.emulator.world.projects[0]?.ips).toHaveLength(0);
    await waiting.clock.forward(5000);
    expect((await answer).headers['idempotency-replayed']).toBe('true');
    expect(waiting.emulator.world.projects[0]?.ips).toHaveLength(1);
  });
});
