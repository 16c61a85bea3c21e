import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../src/cli/settings/profile.ts';
import type { OperationTemplate } from '../../src/core/profile.ts';
import type { HttpRequest, HttpResponse, Transport } from '../../src/core/transport.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import { loadProfile as loadEmulatorProfile } from '../../src/emulator/profile.ts';
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
  // What they did all the same would hold the next purchase otherwise.
  const known = head.replace('{', '{unmanaged: ignore, ');
  const ips = `${known}ips:\n  one: {}\n  two: {}\n`;
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

    const { blocked } = await played.apply(`${known}ips:\n  one: {}\n`);

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

/** The oldest a key was when it was sent once more, in hours. */
function oldestResend(played: Rig): number {
  const first = new Map<string | undefined, number>();
  const ages = played.writes().map(({ key, at }) => {
    if (!first.has(key)) first.set(key, at);
    return (at - (first.get(key) ?? at)) / hour;
  });
  return Math.max(...ages);
}

describe('engine: the age of a key', () => {
  const busy = faultRule(
    { path: 'allocate_ip', nth: 1, times: 8 },
    { do: 'answer', status: 409, code: 'busy' },
  );
  const ip = `${head}ips:\n  one: {}\n`;

  test('is taken when its turn has come and there is room', async () => {
    const played = rig();
    played.emulator.setFaults([busy]);
    await played.apply(ip);
    await played.clock.run(played.clock.sleep(22.8 * hour - played.clock.monotonic()));
    played.restart();
    played.emulator.setFaults([
      faultRule({ path: 'create_network', nth: 1 }, { do: 'answer', status: 429, retryAfter: 3600 }),
    ]);
    const halt = new AbortController();
    const closed = played.apply(`${ip}networks:\n  n: {cidr: 10.20.0.0/24}\n`, { halt: halt.signal });
    await played.clock.run(played.clock.sleep(30_000).then(() => halt.abort(new Error('killed'))));
    await closed.catch(() => undefined);
    played.restart();

    const report = await played.apply(ip);

    expect(report.outcome).toBe('converged');
    expect(oldestResend(played)).toBeLessThan(23);
    await expectInvariants(played);
  });

  test("is the API's own where our clock was set back", async () => {
    const played = rig();
    played.emulator.setFaults([busy]);
    await played.apply(ip);
    await played.clock.run(played.clock.sleep(30 * hour));
    played.clock.jump(-10 * hour);
    played.restart();

    await played.apply(ip);

    expect(oldestResend(played)).toBeLessThan(23);
  });
});

describe('engine: absence', () => {
  const server = `${head}servers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}}\n`;

  test('is two looks a minute apart, also where the clock leaps at each of two restarts', async () => {
    const played = rig({ emulator: { readings: { staleReadsMs: 55_000 } } });
    await played.apply(head);
    await played.clock.run(played.clock.sleep(2 * minute));
    played.emulator.setFaults([
      faultRule({ path: 'create_server', nth: 1 }, { do: 'answer', status: 500, effect: 'done' }),
    ]);
    for (let kill = 0; kill < 2; kill++) {
      const halt = new AbortController();
      const run = played.apply(server, { halt: halt.signal }).catch(() => undefined);
      await played.clock.run(played.clock.sleep(2_000).then(() => halt.abort(new Error('killed'))));
      await run;
      played.clock.jump(2 * hour);
      played.restart();
    }

    const report = await played.apply(server);

    expect(report.outcome).toBe('converged');
    expect(played.emulator.world.executions.filter(({ kind }) => kind === 'server')).toHaveLength(1);
    await expectInvariants(played);
  });

  test.each([
    1, 2, 3, 4, 5, 6,
  ])('of a network whose deletion failed is not believed of one short list (the %i.)', async (nth) => {
    const played = rig();
    await played.apply(`${head}networks:\n  backend: {cidr: 10.20.0.0/24}\n`);
    played.emulator.mutate({ do: 'fail_next_task' });
    played.emulator.setFaults([faultRule({ path: 'list_networks', nth }, { do: 'truncate_list', keep: 1 })]);

    const report = await played.apply(head);

    const alive = played.emulator.world.projects[0]?.networks.some(({ name }) => name === 'backend');
    const bound = (await played.store.bindings()).length > 0;
    expect(bound, JSON.stringify(report)).toBe(alive);
    await expectInvariants(played);
  });
});

describe('engine: an API profile that changes while a write waits', () => {
  const server = (cores: number) =>
    `${head}servers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}}\n`;

  test('no key stands for two requests', async () => {
    const text = readFileSync(new URL('../../examples/profile.yaml', import.meta.url), 'utf8');
    const profile = loadProfile(text, 'profile.yaml');
    const operations: Record<string, OperationTemplate> = { ...profile.operations };
    const played = rig({
      profile: { ...profile, operations },
      emulator: { profile: loadEmulatorProfile(text) },
    });
    await played.apply(server(1));
    played.emulator.setFaults([
      faultRule(
        { path: '/servers/*/resources', nth: 1, times: 12 },
        { do: 'answer', status: 409, code: 'busy' },
      ),
    ]);
    await played.apply(server(2));

    operations.resize_server = {
      method: 'POST',
      path: '/servers/{server_id}/resize',
      body: { cpu: '{cores}' },
    };
    played.restart();
    await played.apply(server(2)).catch(() => undefined);

    expect(played.writes().at(-1)?.path).toBe('/servers/2001/resize');
    await expectInvariants(played);
  });
});
