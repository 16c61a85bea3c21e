import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../../src/cli/settings/profile.ts';
import type { OperationTemplate } from '../../../src/core/profile.ts';
import type { HttpRequest, HttpResponse, Transport } from '../../../src/core/transport.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { loadProfile as loadEmulatorProfile } from '../../../src/emulator/profile.ts';
import { expectInvariants, isProbe } from '../../support/invariants.ts';
import { resolveOf } from '../../support/resolve.ts';
import { type Rig, rig } from '../../support/rig.ts';

const minute = 60_000;
const hour = 60 * minute;
const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';

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

/** The oldest a key was when it was sent once more, in hours. */
function oldestResend(played: Rig): number {
  const first = new Map<string | undefined, number>();
  const ages = played.writes().map(({ key, at }) => {
    if (!first.has(key)) first.set(key, at);
    return (at - (first.get(key) ?? at)) / hour;
  });
  return Math.max(...ages);
}

describe('src/engine/intents: answers that are always replays', () => {
  // What they did all the same would hold the next purchase otherwise.
  const known = head.replace('{', '{unmanaged: ignore, ');
  const ips = `${known}ips:\n  one: {}\n  two: {}\n`;
  const refusing = (status: number) =>
    rig({
      wrap: answering((request, answer) =>
        request.method === 'POST' ? problem(status, 'odd', replayed) : answer,
      ),
    });

  test('a refusal: after a handful of keys an operator is asked', async () => {
    const played = refusing(422);

    const { blocked } = await played.apply(ips);

    expect(blocked.map(({ key, code }) => `${key} ${code}`)).toEqual(['ips.one odd', 'ips.two odd']);
    expect(resolveOf(blocked[0])).toContain('vdcsync resolve ips.one --absent');
    expect(new Set(played.writes().map(({ key }) => key)).size).toBe(10);
  });

  test.each([401, 402, 403])('a %i holds what it speaks for', async (status) => {
    const played = refusing(status);

    const report = await played.apply(ips);

    expect(report.outcome).toBe('blocked');
    expect(played.writes()).toHaveLength(1);
  });

  test('a creation that no read shows is made three times at most, then an operator is asked', async () => {
    const played = rig({
      wrap: answering((request, answer) => {
        if (request.method === 'POST') return { ...answer, headers: { ...answer.headers, ...replayed } };
        return /\/ips\/\d+$/.test(request.url) ? problem(404, 'ip_not_found') : answer;
      }),
    });

    const { blocked } = await played.apply(`${known}ips:\n  one: {}\n`);

    expect(blocked).toMatchObject([{ key: 'ips.one', code: 'not_there' }]);
    expect(blocked[0]?.reason).toContain('5001');
    expect(played.writes().filter((each) => !isProbe(each))).toHaveLength(3);
  });
});

describe('src/engine/intents/question.ts: the age of a key', () => {
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

describe('src/engine/intents/record.ts: the deadline of a refused write', () => {
  test('does not count the time in which no process waited', async () => {
    const limited = faultRule(
      { path: 'allocate_ip', nth: 1, times: 2 },
      { do: 'answer', status: 429, retryAfter: 20 },
    );
    const played = rig();
    played.emulator.setFaults([limited]);
    const halt = new AbortController();
    const stopped = played.apply(`${head}ips:\n  one: {}\n`, { halt: halt.signal });
    await played.clock.run(played.clock.sleep(5_000).then(() => halt.abort(new Error('killed'))));
    await stopped.catch(() => undefined);
    await played.clock.run(played.clock.sleep(3 * hour));
    played.restart();

    const report = await played.apply(`${head}ips:\n  one: {}\n`);

    expect(report.outcome).toBe('converged');
    await expectInvariants(played);
  });

  test('ends a run that the API limits for longer, and the next run sends the write', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'allocate_ip', nth: 1, times: 60 }, { do: 'answer', status: 429, retryAfter: 60 }),
    ]);

    const limited = await played.apply(`${head}ips:\n  one: {}\n`);
    played.emulator.setFaults([]);
    const later = await played.apply(`${head}ips:\n  one: {}\n`);

    expect(limited.blocked.map(({ code }) => code)).toEqual(['rate_limit_exceeded']);
    expect(later.outcome).toBe('converged');
    await expectInvariants(played);
  });
});

describe('src/engine/intents/settle.ts: an API profile that changes while a write waits', () => {
  const server = (cores: number) =>
    `${head}servers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}}\n`;

  test('no key stands for two requests', async () => {
    const text = readFileSync(new URL('../../../examples/profile.yaml', import.meta.url), 'utf8');
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
