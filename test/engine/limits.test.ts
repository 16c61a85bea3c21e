import { describe, expect, test } from 'vitest';
import type { HttpRequest, HttpResponse, Transport } from '../../src/core/transport.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import { expectInvariants } from '../support/invariants.ts';
import { type Rig, rig } from '../support/rig.ts';

const minute = 60_000;
const hour = 60 * minute;

const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';

describe('engine: a write budget that is closed for long', () => {
  const networks = `${head}networks:\n  aa: {cidr: 10.20.0.0/24}\n  bb: {cidr: 10.21.0.0/24}\n`;

  /** What stood under both ids is taken away behind our back, and the ids are given to others. @assumption A17 */
  async function handOver({ emulator, clock }: Rig): Promise<void> {
    await clock.sleep(1_500_000);
    for (const id of [32, 33]) emulator.mutate({ do: 'delete_network', id });
    (emulator.world as { nextId: { network: number } }).nextId.network = 32;
    emulator.mutate({ do: 'add_network', name: 'theirs', cidr: '10.99.0.0/24' });
    emulator.mutate({ do: 'add_network', name: 'theirs too', cidr: '10.98.0.0/24' });
  }

  const closing = faultRule({ method: 'DELETE', nth: 1 }, { do: 'answer', status: 429, retryAfter: 3000 });

  test.each([
    ['a write that waits to be begun', [closing]],
    [
      'a write that waits to be sent again',
      [
        closing,
        faultRule({ method: 'DELETE', nth: 1 }, { do: 'answer', status: 409, code: 'busy', retryAfter: 60 }),
      ],
    ],
  ])('%s is decided on what is there once it opens again', async (_name, faults) => {
    const played = rig({ emulator: { readings: { reuseIds: true } } });
    await played.apply(networks);
    played.emulator.setFaults(faults);

    const [report] = await Promise.all([played.apply(head), handOver(played)]);

    const left = played.emulator.world.projects[0]?.networks.map(({ name }) => name);
    expect(left, JSON.stringify(report)).toEqual(expect.arrayContaining(['theirs', 'theirs too']));
    await expectInvariants(played);
  });
});

/** Changes what the service answers. */
function answering(change: (request: HttpRequest, answer: HttpResponse) => HttpResponse) {
  return (inner: Transport): Transport => ({
    close: () => inner.close(),
    send: async (request, options) => change(request, await inner.send(request, options)),
  });
}

function problem(status: number, code: string, headers: Record<string, string> = {}): HttpResponse {
  return {
    status,
    headers: { 'x-request-id': 'req_1', 'content-type': 'application/problem+json', ...headers },
    body: JSON.stringify({ type: 'about:blank', title: 'no', status, code, request_id: 'req_1' }),
  };
}

const replayed = { 'idempotency-replayed': 'true' };

describe('engine: answers that are always replays', () => {
  const ips = `${head}ips:\n  one: {}\n  two: {}\n`;
  const refusing = (status: number) =>
    rig({
      wrap: answering((request, answer) =>
        request.method === 'POST' ? problem(status, 'odd', replayed) : answer,
      ),
    });

  test('a refusal: after a handful of keys a person is asked', async () => {
    const played = refusing(422);

    const { blocked } = await played.apply(ips);

    expect(blocked.map(({ key, code }) => `${key} ${code}`)).toEqual(['ips.one odd', 'ips.two odd']);
    expect(blocked[0]?.resolve).toContain('vdcsync resolve ips.one --absent');
    expect(new Set(played.writes().map(({ key }) => key)).size).toBe(10);
  });

  test.each([401, 402, 403])('a %i holds what it speaks for', async (status) => {
    const played = refusing(status);

    const report = await played.apply(ips);

    expect(report.outcome).toBe('blocked');
    expect(played.writes()).toHaveLength(1);
  });

  test('a creation that no read shows is made three times at most, then a person is asked', async () => {
    const played = rig({
      wrap: answering((request, answer) => {
        if (request.method === 'POST') return { ...answer, headers: { ...answer.headers, ...replayed } };
        return /\/ips\/\d+$/.test(request.url) ? problem(404, 'ip_not_found') : answer;
      }),
    });

    const { blocked } = await played.apply(`${head}ips:\n  one: {}\n`);

    expect(blocked).toMatchObject([{ key: 'ips.one', code: 'not_there' }]);
    expect(blocked[0]?.reason).toContain('5001');
    expect(played.writes()).toHaveLength(3);
  });
});

describe('engine: a GPU package without capacity', () => {
  const gpu = (packages: string) =>
    `${head}servers:\n  gpu: {server_type: gpu-fixed, image: ubuntu-24.04, gpu_package: ${packages}}\n`;

  test.each([
    ['a single one', 'l40s-2', 1],
    ['each of a list', '[l40s-2, l40s-1]', 2],
  ])('%s is tried again after 1 to 15 minutes, for a day', async (_name, packages, count) => {
    const played = rig();
    for (const name of ['l40s-2', 'l40s-1'])
      played.emulator.mutate({ do: 'set_capacity', package: name, capacity: 0 });

    const report = await played.apply(gpu(packages));

    expect(report.blocked).toMatchObject([{ key: 'servers.gpu', code: 'no_gpu_capacity' }]);
    expect(report.durationMs).toBeGreaterThan(24 * hour);
    expect(report.durationMs).toBeLessThan(24.5 * hour);
    const rounds = played.writes().filter((_, index) => index % count === 0);
    const waits = rounds.slice(1).map(({ at }, index) => (at - (rounds[index]?.at ?? 0)) / minute);
    for (const [index, least] of [1, 2, 4, 8, 15, 15].entries()) {
      expect(waits[index]).toBeGreaterThanOrEqual(least);
      expect(waits[index]).toBeLessThan(least * 1.1 + 0.5);
    }
    expect(rounds.length).toBeLessThan(105);
    await expectInvariants(played);
  });
});
