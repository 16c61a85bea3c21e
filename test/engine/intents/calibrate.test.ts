import { describe, expect, test } from 'vitest';
import type { HttpResponse } from '../../../src/core/transport.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import type { Readings } from '../../../src/emulator/readings.ts';
import { expectInvariants, isProbe, isSpare } from '../../support/invariants.ts';
import { type Rig, rig } from '../../support/rig.ts';
import { executed, gpu, ips } from '../shop.ts';

interface Options {
  readonly readings?: Partial<Readings>;
  readonly effect?: 'none' | 'done';
  /** Changes the answer to the nth calibration. */
  readonly tamper?: (nth: number, answer: HttpResponse) => HttpResponse;
}

const lose = (played: Rig, path: string, effect: 'none' | 'done' = 'none') =>
  played.emulator.setFaults([faultRule({ path, nth: 1 }, { do: 'reset', effect })]);

/** The answer to the first purchase of an address is lost. */
function played({ readings = {}, effect = 'none', tamper = (_nth, answer) => answer }: Options = {}): Rig {
  let nth = 0;
  const made = rig({
    emulator: { readings },
    wrap: (inner) => ({
      ...inner,
      async send(request, options) {
        const answer = await inner.send(request, options);
        if (!isSpare({ key: request.headers['idempotency-key'] })) return answer;
        nth += 1;
        return tamper(nth, answer);
      },
    }),
  });
  lose(made, 'allocate_ip', effect);
  return made;
}

const behaviourOf = async ({ store }: Rig) =>
  ((await store.note('key_behaviour')) as { readonly allocate_ip?: unknown } | undefined)?.allocate_ip;
const spares = (of: Rig) => of.writes().filter(isSpare);
const probes = (of: Rig) => of.writes().filter((each) => isProbe(each) && !isSpare(each));

const replayed = { 'idempotency-replayed': 'true' };
function withoutReplay({ headers, ...answer }: HttpResponse): HttpResponse {
  const { 'idempotency-replayed': _replayed, ...others } = headers;
  return { ...answer, headers: others };
}
/** Of two calibrations, the same answer of each; the first may be of fewer requests. */
const inBoth =
  (which: number, change: (answer: HttpResponse) => HttpResponse) => (nth: number, answer: HttpResponse) =>
    nth === which || nth === 2 * which ? change(answer) : answer;
const problem = (status: number, code: string, more: Record<string, string> = {}): HttpResponse => ({
  status,
  headers: { 'content-type': 'application/problem+json', 'x-request-id': 'req_1', ...more },
  body: JSON.stringify({ status, code, title: 'no', request_id: 'req_1' }),
});

describe('src/engine/intents/calibrate.ts', () => {
  test('four refused requests under one spare key, once for each operation and state', async () => {
    const world = played();
    await world.apply(ips('one'));
    world.restart();
    lose(world, 'allocate_ip');
    await world.apply(ips('one', 'two'));

    expect(spares(world)).toHaveLength(4);
    expect(new Set(spares(world).map(({ key }) => key)).size).toBe(1);
    expect(spares(world).map(({ body }) => JSON.parse(body ?? ''))).toEqual(
      [1, 1, 2, 1].map((probe) => ({ server_type_id: { probe }, vdcsync_probe: probe })),
    );
    expect(executed(world, 'ip')).toBe(2);

    lose(world, 'create_server');
    await world.apply(
      gpu.replace('servers:', 'ips: {one: {server_type_id: 3}, two: {server_type_id: 3}}\nservers:'),
    );
    expect(spares(world).filter(({ path }) => path === '/servers')).toHaveLength(4);
    await expectInvariants(world);
  });

  test.each([
    [{}, { storesRefusals: true, reuse: { status: 422, code: 'idempotency_key_reused' } }],
    [
      { reusedKeyStatus: 409, reusedKeyCode: 'conflicting_request' },
      { storesRefusals: true, reuse: { status: 409, code: 'conflicting_request' } },
    ],
    [{ bodyCheck: 'beforeKey' }, { storesRefusals: true }],
    [{ bodyCheck: 'beforeKeyUnstored' }, { storesRefusals: false, deviation: 'not_replayed' }],
  ] as const satisfies readonly (readonly [
    Partial<Readings>,
    object,
  ])[])('%j: the behaviour that the API shows', async (readings, behaviour) => {
    const world = played({ readings });
    expect((await world.apply(ips('web'))).outcome).toBe('converged');
    expect(await behaviourOf(world)).toEqual(behaviour);
  });

  const deviations = {
    'the first refusal does not name the field of the probe': inBoth(1, () =>
      problem(422, 'invalid_request'),
    ),
    'the first refusal is replayed': inBoth(1, (answer) => ({
      ...answer,
      headers: { ...answer.headers, ...replayed },
    })),
    'the first request is accepted': inBoth(1, () => ({
      status: 202,
      headers: { 'content-type': 'application/json', 'x-request-id': 'req_1' },
      body: JSON.stringify({ data: { id: 5 } }),
    })),
    'the second refusal is fresh': inBoth(2, withoutReplay),
    'another body is replayed': inBoth(3, (answer) => ({
      ...answer,
      headers: { ...answer.headers, ...replayed },
    })),
    'the first refusal is gone after another body': inBoth(4, withoutReplay),
  };

  test.each(
    Object.entries(deviations),
  )('where %s, no key is probed, and it is bought once', async (_name, tamper) => {
    for (const effect of ['none', 'done'] as const) {
      const world = played({ effect, tamper });

      expect((await world.apply(ips('web'))).outcome).toBe('converged');

      expect(await behaviourOf(world)).toMatchObject({ storesRefusals: false });
      expect(probes(world)).toEqual([]);
      const requests = world.writes().filter((each) => !isProbe(each));
      expect(new Set(requests.map(({ key }) => key)).size).toBe(1);
      expect(executed(world, 'ip')).toBe(1);
      await expectInvariants(world);
    }
  });
});
