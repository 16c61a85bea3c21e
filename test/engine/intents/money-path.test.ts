import { describe, expect, test } from 'vitest';
import type { HttpResponse } from '../../../src/core/transport.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { expectInvariants, isProbe, isSpare } from '../../support/invariants.ts';
import { type Rig, rig, type Sent } from '../../support/rig.ts';
import { executed, gpu, head, hour, ips } from '../shop.ts';

/** An answer in place of the API's, or `undefined`: the request goes to the API. */
type Meddling = (
  request: Pick<Sent, 'method' | 'path' | 'body' | 'key'>,
) => Promise<HttpResponse | undefined>;

function meddled(meddle: Meddling): Rig {
  return rig({
    wrap: (inner) => ({
      close: () => inner.close(),
      async send(request, options) {
        const { method, body, headers, url } = request;
        const path = new URL(url).pathname.slice('/v1'.length);
        const answer = await meddle({ method, path, body, key: headers['idempotency-key'] });
        return answer ?? inner.send(request, options);
      },
    }),
  });
}

function refusal(status: number, code: string, parameters: readonly string[] = []): HttpResponse {
  const invalid_params = parameters.map((name) => ({ name, reason: 'no' }));
  return {
    status,
    headers: { 'content-type': 'application/problem+json', 'x-request-id': 'req_1' },
    body: JSON.stringify({ status, code, title: 'no', request_id: 'req_1', invalid_params }),
  };
}

describe('src/engine/intents: a purchase whose answer is missing', () => {
  test('settle.ts: a machine that was suspended after the observation observes again before it records a second send', async () => {
    let isAwake = true;
    const played = meddled(async ({ method, path }) => {
      if (method === 'GET' && path === '/project' && isAwake && played.writes().length > 0) {
        isAwake = false;
        played.clock.jump(10 * 60_000);
      }
      return undefined;
    });
    played.emulator.setFaults([
      faultRule(
        { path: 'create_network', nth: 1 },
        { do: 'answer', status: 409, code: 'server_busy', retryAfter: 90 },
      ),
    ]);

    const report = await played.apply(`${head}networks:\n  backend: {cidr: 10.20.0.0/24}\n`);

    expect(report.outcome).toBe('converged');
    expect(isAwake).toBe(false);
    const [intent] = await played.store.intents({ limit: 1 });
    expect(intent?.sends).toBe(2);
  });

  test('record.ts: a later refusal does not hide that a server error may have had its effect', async () => {
    let fresh = 3;
    let conflicts = 1;
    const played = meddled(async (request) => {
      if (request.method === 'GET' || isSpare(request)) return undefined;
      if (isProbe(request))
        return fresh-- > 0 ? refusal(422, 'invalid_request', ['vdcsync_probe']) : undefined;
      return played.writes().some((each) => isProbe(each) && !isSpare(each)) && conflicts-- > 0
        ? refusal(409, 'odd')
        : undefined;
    });
    played.emulator.setFaults([
      faultRule(
        { path: 'create_server', nth: 1 },
        { do: 'answer', status: 500, effect: 'done', stored: false },
      ),
    ]);

    const report = await played.apply(gpu);

    expect([fresh < 0, conflicts]).toEqual([true, 0]);
    expect(report.blocked).toMatchObject([{ key: 'servers.gpu', code: 'outcome_unknown' }]);
    expect(executed(played, 'server')).toBe(1);
    await expectInvariants(played);
  });

  test('evidence.ts: an address is not taken by one creation while another one may have made it', async () => {
    const played = rig();
    const lost = { do: 'answer', status: 500, stored: false } as const;
    played.emulator.setFaults([faultRule({ path: 'allocate_ip', nth: 1 }, lost)]);
    void played.clock.sleep(10_000).then(() => played.emulator.mutate({ do: 'add_ip' }));
    const first = await played.apply(ips('a').replace('exclusive: true', 'exclusive: false'));
    expect(first.blocked).toMatchObject([{ key: 'ips.a', code: 'outcome_unknown' }]);
    const [colleagues] = played.emulator.world.projects[0]?.ips ?? [];
    played.emulator.mutate({ do: 'delete_ip', id: Number(colleagues?.id) });
    played.emulator.setFaults([faultRule({ path: 'allocate_ip', nth: 1 }, { ...lost, effect: 'done' })]);

    const { blocked } = await played.apply(ips('a', 'b'));

    expect(blocked).toMatchObject([{ key: 'ips.a' }, { key: 'ips.b', code: 'outcome_unknown' }]);
    expect(await played.store.bindings()).toEqual([]);
  });

  test.each(['the same', "another project's"])('write-slot.ts: a probe under %s token', async (token) => {
    const projects = [
      { id: 4711, name: 'shop' },
      { id: 4712, name: 'other' },
    ];
    const isSwapped = token !== 'the same';
    const played: Rig = rig({
      emulator: { projects },
      token: () => played.emulator.tokens(isSwapped && played.writes().length > 0 ? 4712 : 4711).readWrite,
    });
    played.emulator.setFaults([faultRule({ path: 'create_server', nth: 1 }, { do: 'reset' })]);

    const ended = await played.apply(gpu).catch((error: Error) => error);

    const probes = played.emulator.requests.filter(({ method }) => method !== 'GET');
    expect(probes.filter(({ project }) => project === 4712)).toEqual([]);
    expect(ended).toMatchObject(isSwapped ? { name: 'FenceError' } : { outcome: 'converged' });
  });

  test('ask-key.ts: a refusal that comes after the key has expired shows nothing', async () => {
    let probes = 0;
    let resends = 0;
    const played = meddled(async (request) => {
      if (request.method === 'GET' || isSpare(request)) return undefined;
      if (!isProbe(request)) return probes > 0 && resends++ === 0 ? refusal(409, 'odd') : undefined;
      probes += 1;
      if (probes === 2) played.clock.jump(23 * hour);
      return refusal(422, 'odd');
    });
    played.emulator.setFaults([
      faultRule({ path: 'create_server', nth: 1 }, { do: 'reset', effect: 'done' }),
    ]);

    const { blocked } = await played.apply(gpu);

    expect([probes, resends]).toEqual([2, 1]);
    expect(blocked).toMatchObject([{ key: 'servers.gpu', code: 'key_too_old' }]);
    expect(executed(played, 'server')).toBe(1);
  });
});
