import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import { settled, stage } from './support.ts';

const key = 'key-00001';
/** An unknown field, and a documented field of a wrong type. */
const probe = { surprise: 1, server_type_id: 'three' };

function stageWith(readings: Partial<Readings>) {
  const made = stage({ readings });
  const addresses = () => made.emulator.world.projects[0]?.ips.length;
  const send = async (body: unknown, path = '/ips') => {
    const { status, headers, body: answer } = await made.call('POST', path, body, { key });
    return {
      status,
      code: answer.code as string | undefined,
      replayed: headers['idempotency-replayed'] === 'true',
    };
  };
  return { ...made, send, addresses };
}

describe('src/emulator/pipeline.ts: the body and the key', () => {
  test.each([
    ['malformed JSON', '{', {}, 400],
    ['a form', 'a=1', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
  ])('refuses %s before the key is read, whether the refusal is stored or not', async (_what, body, headers, status) => {
    for (const bodyCheck of ['beforeKey', 'beforeKeyUnstored'] as const) {
      const { call } = stageWith({ bodyCheck });
      const answers = [
        await call('POST', '/ips', body, { key, headers }),
        await call('POST', '/ips', body, { key, headers }),
      ];
      expect(answers.map((each) => each.status)).toEqual([status, status]);
      expect(answers[1]?.headers['idempotency-replayed'] === 'true').toBe(bodyCheck === 'beforeKey');
    }
  });

  test('stores a refusal that depends on more than the body, wherever the body is checked', async () => {
    const { send } = stageWith({ bodyCheck: 'beforeKeyUnstored' });
    const unknown = { server_type_id: 987 };
    expect((await send(unknown)).status).toBe(404);
    expect((await send(unknown)).replayed).toBe(true);
  });
});

describe('src/emulator/pipeline.ts: a key in flight', () => {
  const late = (holdsKey: boolean) =>
    faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'late', ms: 5_000, holdsKey });
  const lose = async (readings: Partial<Readings>, holdsKey = true) => {
    const made = stage({ readings, faults: [late(holdsKey)] });
    await expect(made.call('POST', '/ips', {}, { key })).rejects.toThrow('reset');
    return { ...made, addresses: () => made.emulator.world.projects[0]?.ips.length };
  };

  test.each([
    ['conflict', undefined],
    ['conflictRetryAfter', '5'],
  ] as const)('%s: the original and a probe get 409 until the first request is done', async (inFlightKey, seconds) => {
    for (const bodyCheck of ['afterKey', 'beforeKey'] as const) {
      const { call, clock, addresses } = await lose({ inFlightKey, bodyCheck });
      for (const body of [{}, probe]) {
        const refused = await call('POST', '/ips', body, { key });
        expect([refused.status, refused.headers['retry-after']]).toEqual([409, seconds]);
      }
      await clock.advance(5_000);
      const again = await call('POST', '/ips', {}, { key });
      expect([again.status, again.headers['idempotency-replayed']]).toEqual([201, 'true']);
      expect(addresses()).toBe(1);
    }
  });

  test('a probe waits for the first request with the reading `wait`', async () => {
    const { call, clock } = await lose({ inFlightKey: 'wait' });
    const answer = call('POST', '/ips', probe, { key });
    await settled();
    await clock.advance(5_000);
    expect((await answer).body.code).toBe('idempotency_key_reused');
  });

  test('with `beforeKeyUnstored`, refuses an invalid body at once while the key is in flight', async () => {
    const { call, clock, addresses } = await lose({ bodyCheck: 'beforeKeyUnstored' });
    expect((await call('POST', '/ips', probe, { key })).status).toBe(422);
    await clock.advance(5_000);
    expect(addresses()).toBe(1);
  });

  test('a request that has not arrived holds no key: a stored probe blocks the request', async () => {
    for (const [bodyCheck, bought] of [
      ['afterKey', 0],
      ['beforeKey', 0],
      ['beforeKeyUnstored', 1],
    ] as const) {
      const { call, clock, addresses } = await lose({ bodyCheck }, false);
      expect((await call('POST', '/ips', probe, { key })).status).toBe(422);
      await clock.advance(5_000);
      expect(addresses()).toBe(bought);
    }
  });
});

describe('src/emulator/pipeline.ts: refusals and keys', () => {
  test('402 before the key hides a stored success and refuses a probe, but not a write without spending', async () => {
    const { call, send, emulator } = stageWith({ paymentCheck: 'beforeKey' });
    const bought = await call('POST', '/ips', {}, { key });
    emulator.mutate({ do: 'set_standing', standing: 'suspended' });
    expect([(await send({})).status, (await send(probe)).status]).toEqual([402, 402]);
    expect((await call('POST', '/networks', { name: 'a', cidr: '10.1.0.0/24' })).status).toBe(202);
    expect((await call('DELETE', `/ips/${bought.body.data.id}`)).status).toBe(200);
    emulator.mutate({ do: 'set_standing', standing: 'active' });
    expect((await send({})).replayed).toBe(true);
  });

  test('a stored 401 does not replace a stored success', async () => {
    const { call, emulator } = stageWith({ stored401: true });
    await call('POST', '/ips', {}, { key });
    const token = emulator.tokens().member;
    emulator.mutate({ do: 'revoke_token', token });
    await call('POST', '/ips', {}, { key, token });
    expect((await call('POST', '/ips', {}, { key })).status).toBe(201);
  });
});
