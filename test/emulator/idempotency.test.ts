import { describe, expect, test } from 'vitest';
import { stage } from './support.ts';

const HOUR = 3_600_000;

describe('src/emulator/idempotency.ts', () => {
  test.each([422, 409, 400] as const)('a key used for another body is refused with %s', async (status) => {
    const { call, emulator } = stage({ readings: { reusedKeyStatus: status } });
    await call('POST', '/ips', {}, { key: 'key-00001' });
    const other = await call('POST', '/ips', { server_type_id: 8 }, { key: 'key-00001' });
    expect(other.status).toBe(status);
    expect(emulator.world.projects[0]?.ips).toHaveLength(1);
  });

  test('a reading decides whether method and path are part of the match', async () => {
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

  test('with `retentionFrom: last`, a key is kept for 24 hours from its last use', async () => {
    const { call, clock, emulator } = stage({ readings: { retentionFrom: 'last' } });
    await call('POST', '/ips', {}, { key: 'key-00001' });
    for (let day = 0; day < 3; day += 1) {
      await clock.advance(23 * HOUR);
      await call('POST', '/ips', {}, { key: 'key-00001' });
    }
    expect(emulator.world.projects[0]?.ips).toHaveLength(1);
  });

  test.each([
    [false, 201],
    [true, 429],
  ])('stores a 429 only with the reading `stored429`: %s', async (stored429, later) => {
    const { call, clock } = stage({ readings: { stored429 } });
    for (let write = 0; write < 20; write += 1) await call('POST', '/ips', {});
    expect((await call('POST', '/ips', {}, { key: 'key-00001' })).status).toBe(429);
    await clock.advance(60_000);
    expect((await call('POST', '/ips', {}, { key: 'key-00001' })).status).toBe(later);
  });

  test('a reading decides whether replays use budget', async () => {
    for (const replaysCost of [true, false]) {
      const { call } = stage({ readings: { replaysCost } });
      const statuses = [];
      for (let write = 0; write < 25; write += 1) {
        statuses.push((await call('POST', '/ips', {}, { key: 'key-00001' })).status);
      }
      expect(statuses.filter((status) => status === 201)).toHaveLength(replaysCost ? 20 : 25);
    }
  });
});
