import { describe, expect, test } from 'vitest';
import { type HttpResponse, TransportError } from '../../../src/core/transport.ts';
import { type FaultAction, faultRule } from '../../../src/emulator/faults.ts';
import type { Readings } from '../../../src/emulator/readings.ts';
import { memoryState } from '../../../src/state/memory.ts';
import { crashable } from '../../support/crashable.ts';
import { drawn } from '../../support/drawn.ts';
import { expectFixedPoint, expectInvariants, isProbe, isSpare } from '../../support/invariants.ts';
import { resolving } from '../../support/resolve.ts';
import { type Rig, rig, type Sent } from '../../support/rig.ts';
import { virtualClock } from '../../support/virtual-clock.ts';
import { executed, gpu, head, hour, ips, server } from '../shop.ts';

const network = `${head}networks:\n  backend: {cidr: 10.20.0.0/24}\n`;
const specs = [
  ['a network', network, 'create_network', 'network'],
  ['an address', ips('web'), 'allocate_ip', 'ip'],
  ['a server that no read shows', gpu, 'create_server', 'server'],
] as const;

/** When the API looks at bodies, and whether it stores their refusals. */
const bodyChecks = ['afterKey', 'beforeKey', 'beforeKeyUnstored'] as const;

/** The creation's first send comes out so. */
function disturbed(path: string, action: FaultAction, readings: Partial<Readings> = {}): Rig {
  const played = rig({ emulator: { readings } });
  played.emulator.setFaults([faultRule({ path, nth: 1 }, action)]);
  return played;
}

/** A letter for each send, another one for another key, and `?` for each probe; calibrations are left out. */
function sends(played: Rig): string {
  const letters = new Map<string, string>();
  const shown = played.writes().filter((each) => !isSpare(each));
  return shown
    .map((each) => {
      const { key = '' } = each;
      letters.set(key, letters.get(key) ?? 'abcdef'.charAt(letters.size));
      return isProbe(each) ? '?' : letters.get(key);
    })
    .join('');
}

async function expectMadeOnce(played: Rig, spec: string, kind: string): Promise<void> {
  const report = await played.apply(spec);
  expect(report.blocked).toEqual([]);
  expect(report.outcome).toBe('converged');
  expect(executed(played, kind)).toBe(1);
  await expectInvariants(played);
  expectFixedPoint(await played.plan(spec));
}

describe('src/engine/intents/ask-key.ts', () => {
  const lost = { do: 'reset' } as const;
  const done = { do: 'reset', effect: 'done' } as const;

  test.each([
    ['afterKey', lost, 'a??b'],
    ['beforeKey', lost, 'a??b'],
    ['beforeKeyUnstored', lost, 'aa'],
    ['afterKey', done, 'a?a'],
    ['beforeKey', done, 'a???a'],
  ] as const)('%s, %j: the row of the table', async (bodyCheck, action, follows) => {
    for (const [name, spec, path, kind] of specs) {
      const played = disturbed(path, action, { bodyCheck });
      await expectMadeOnce(played, spec, kind);
      expect(sends(played), name).toBe(follows);
    }
  });

  test.each([
    ['a network', network, 'create_network', 'a'],
    ['an address', ips('web'), 'allocate_ip', 'a'],
    ['a server that no read shows', gpu, 'create_server', 'aa'],
  ] as const)('%s under a key that cannot be fenced: lists decide, then the original bytes', async (_name, spec, path, follows) => {
    const played = disturbed(path, done, { bodyCheck: 'beforeKeyUnstored' });
    expect((await played.apply(spec)).outcome).toBe('converged');
    expect(played.emulator.world.executions).toHaveLength(1);
    expect(sends(played)).toBe(follows);
  });

  const reuses = [
    { reusedKeyStatus: 422, reusedKeyCode: 'idempotency_key_reused' },
    { reusedKeyStatus: 422, reusedKeyCode: 'invalid_request' },
    { reusedKeyStatus: 409, reusedKeyCode: 'conflicting_request' },
    { reusedKeyStatus: 400, reusedKeyCode: 'conflicting_request' },
  ] as const satisfies readonly Partial<Readings>[];

  test.each(
    reuses,
  )('however a used key is refused (%j), the stored answer is found under it', async (reuse) => {
    for (const bodyCheck of bodyChecks) {
      for (const [, spec, path, kind] of specs)
        await expectMadeOnce(disturbed(path, done, { ...reuse, bodyCheck }), spec, kind);
    }
  });

  test.each([
    'conflict',
    'conflictRetryAfter',
    'wait',
  ] as const)('a request that is still worked on is waited for, and no other is sent (%s)', async (inFlightKey) => {
    for (const bodyCheck of bodyChecks) {
      for (const [, spec, path, kind] of specs) {
        const played = disturbed(path, { do: 'late', ms: 200_000 }, { inFlightKey, bodyCheck });
        await expectMadeOnce(played, spec, kind);
        expect(sends(played)).not.toContain('b');
      }
    }
  });

  test.each(bodyChecks)('an original that arrives after all is carried out once (%s)', async (bodyCheck) => {
    for (const ms of [45_000, 70_000, 200_000, 3_600_000]) {
      for (const [, spec, path, kind] of specs) {
        const played = disturbed(path, { do: 'late', ms, holdsKey: false }, { bodyCheck });
        await expectMadeOnce(played, spec, kind);
        await played.clock.advance(2 * hour);
        expect(executed(played, kind), `${ms}`).toBe(1);
      }
    }
  });

  test('an original that arrives behind the fence is refused', async () => {
    const played = disturbed('create_server', { do: 'late', ms: 200_000, holdsKey: false });
    await expectMadeOnce(played, gpu, 'server');
    await played.clock.advance(hour);
    expect(sends(played)).toBe('a??b');
    const [first] = played.writes();
    expect(played.emulator.world.executions.map(({ idempotencyKey }) => idempotencyKey)).not.toContain(
      first?.key,
    );
  });

  test.each(bodyChecks)('a process that dies at any moment goes on asking (%s)', async (bodyCheck) => {
    for (const action of drawn([lost, done, { do: 'late', ms: 65_000, holdsKey: false } as const])) {
      for (const [spec, path, kind] of [
        [ips('web'), 'allocate_ip', 'ip'],
        [gpu, 'create_server', 'server'],
      ] as const) {
        for (const when of ['before', 'after'] as const) {
          for (let moment = 1, alive = false; !alive; moment++) {
            const death = crashable();
            const store = memoryState({ createdAt: virtualClock().now(), lineage: 'test' });
            const played = rig({
              store: death.store(store),
              wrap: death.transport,
              emulator: { readings: { bodyCheck } },
            });
            played.emulator.setFaults([faultRule({ path, nth: 1 }, action)]);
            death.dieAt(moment, when);
            alive = await played.apply(spec).then(
              () => true,
              () => false,
            );
            death.dieAt(undefined, when);
            played.restart();

            const report = await played.apply(spec);

            const at = `${action.do} ${kind} ${when} ${moment}`;
            expect(report.blocked, at).toEqual([]);
            expect(report.outcome, at).toBe('converged');
            await played.clock.advance(hour);
            expect(executed(played, kind), at).toBe(1);
            await expectInvariants({ emulator: played.emulator, store, sent: played.sent });
          }
        }
      }
    }
  });

  /** The answer to the creation is lost, and the first probe is answered so. */
  function probed(path: string, effect: 'none' | 'done', answer: () => HttpResponse): Rig {
    let isFirst = true;
    const played = rig({
      wrap: (inner) => ({
        ...inner,
        async send(request, options) {
          const key = request.headers['idempotency-key'];
          if (!isFirst || !isProbe({ body: request.body }) || isSpare({ key }))
            return inner.send(request, options);
          isFirst = false;
          return answer();
        },
      }),
    });
    played.emulator.setFaults([faultRule({ path, nth: 1 }, { do: 'reset', effect })]);
    return played;
  }

  const problem =
    (status: number, code: string, more: Record<string, string> = {}) =>
    () => ({
      status,
      headers: { 'content-type': 'application/problem+json', 'x-request-id': 'req_1', ...more },
      body: JSON.stringify({ status, code, title: 'no', request_id: 'req_1' }),
    });

  test.each([
    ['429', problem(429, 'rate_limited', { 'retry-after': '20' })],
    ['500', problem(500, 'internal_error')],
    ['503', problem(503, 'unavailable')],
    ['504', problem(504, 'gateway_timeout')],
    ['409', problem(409, 'odd')],
    ['404', problem(404, 'not_found')],
    ["a proxy's page", () => ({ status: 502, headers: { 'content-type': 'text/html' }, body: '<html>' })],
    ['a redirect', () => ({ status: 302, headers: { location: '/' }, body: '' })],
    [
      'a lost answer',
      () => {
        throw new TransportError('the connection was reset', 'unknown', 'ECONNRESET');
      },
    ],
    [
      'no connection',
      () => {
        throw new TransportError('refused', 'none', 'ECONNREFUSED');
      },
    ],
  ] as const)('a probe that meets %s tells nothing, and is sent again', async (_name, answer) => {
    for (const effect of ['none', 'done'] as const) {
      for (const [, spec, path, kind] of specs)
        await expectMadeOnce(probed(path, effect, answer), spec, kind);
    }
  });

  test.each([
    [401, 'unauthorized'],
    [402, 'payment_required'],
    [403, 'insufficient_privileges'],
  ])('a probe that is refused with %i leaves the question open', async (status, code) => {
    for (const effect of ['none', 'done'] as const) {
      for (const [, spec, path, kind] of specs) {
        const played = probed(path, effect, problem(status, code));

        const report = await played.apply(spec);

        expect(report.blocked).toMatchObject([{ code }]);
        const [intent] = await played.store.openIntents();
        expect(intent).toMatchObject({ phase: 'unknown', unconfirmed: expect.anything() });
        await expectMadeOnce(played, spec, kind);
      }
    }
  });

  test.each([
    ['409', (each: Pick<Sent, 'key'>) => !isSpare(each), problem(409, 'odd')],
    ['500', () => true, problem(500, 'internal_error')],
    ['404 to calibrations', isSpare, problem(404, 'not_found')],
  ] as const)('where probes meet %s for half an hour, the run goes on without the creation', async (_name, of, answer) => {
    for (const effect of ['none', 'done'] as const) {
      let isOver = false;
      const played = rig({
        wrap: (inner) => ({
          ...inner,
          async send(request, options) {
            const probe = { body: request.body, key: request.headers['idempotency-key'] };
            return isOver || !isProbe(probe) || !of(probe) ? inner.send(request, options) : answer();
          },
        }),
      });
      played.emulator.setFaults([faultRule({ path: 'create_server', nth: 1 }, { do: 'reset', effect })]);

      const { blocked } = await played.apply(gpu);

      expect(blocked).toMatchObject([{ key: 'servers.gpu', code: 'key_not_answered' }]);
      expect(played.clock.monotonic()).toBeLessThan(hour);
      expect(played.writes().length).toBeLessThan(50);
      isOver = true;
      await expectMadeOnce(played, gpu, 'server');
    }
  });

  test('each process asks for half an hour, whatever the one before it heard', async () => {
    let left = Number.POSITIVE_INFINITY;
    const played = rig({
      wrap: (inner) => ({
        ...inner,
        async send(request, options) {
          const probe = { body: request.body, key: request.headers['idempotency-key'] };
          return isProbe(probe) && left-- > 0
            ? problem(500, 'internal_error')()
            : inner.send(request, options);
        },
      }),
    });
    played.emulator.setFaults([faultRule({ path: 'create_server', nth: 1 }, { do: 'reset' })]);
    expect((await played.apply(gpu)).blocked).toMatchObject([{ code: 'key_not_answered' }]);
    played.restart();
    left = 2;

    await expectMadeOnce(played, gpu, 'server');
  });

  test('a key that is too old is not asked, and its creation is blocked', async () => {
    const played = disturbed('create_server', lost);
    const halt = new AbortController();
    void played.clock.sleep(30_000).then(() => halt.abort(new Error('killed')));
    await played.apply(gpu, { halt: halt.signal }).catch(() => undefined);
    await played.clock.advance(23 * hour);
    played.restart();

    const report = await played.apply(gpu);

    expect(report.blocked).toMatchObject([{ key: 'servers.gpu', code: 'key_too_old' }]);
    expect(played.writes()).toHaveLength(1);
  });

  test('under a key that cannot be fenced, an entry that is refused from then on is told, and not sent for ever', async () => {
    for (const [, spec, path] of specs) {
      const played = rig({ emulator: { readings: { bodyCheck: 'beforeKeyUnstored' } } });
      const refusing = { do: 'answer', status: 422, code: 'image_not_supported', stored: false } as const;
      played.emulator.setFaults([
        faultRule({ path, nth: 1 }, lost),
        // Two calibrations are refused before anything else is looked at.
        faultRule({ path, nth: 1, times: 99 }, refusing),
      ]);

      const { blocked } = await played.apply(spec);

      expect(blocked).toMatchObject([
        { code: 'outcome_unknown', remedies: resolving(expect.stringContaining('--absent')) },
      ]);
      expect(sends(played).length).toBeLessThanOrEqual(3);
    }
  });

  test.each(
    bodyChecks,
  )('an entry that the API refuses is told, and nothing is bought (%s)', async (bodyCheck) => {
    const played = rig({ emulator: { readings: { bodyCheck, sizeBounds: 'on' } } });
    played.emulator.setFaults([faultRule({ path: 'create_server', nth: 1 }, lost)]);

    const report = await played.apply(server().replace('cores: 1', 'cores: 10000'));

    expect(report.blocked).toMatchObject([
      {
        key: 'servers.web',
        remedies: resolving(expect.stringMatching(/^correct `cores` at vdcsync\.yaml:/)),
      },
    ]);
    expect(executed(played, 'server')).toBe(0);
    expect((await played.apply(server())).outcome).toBe('converged');
    expect(executed(played, 'server')).toBe(1);
  });
});
