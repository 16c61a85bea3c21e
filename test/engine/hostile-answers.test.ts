import { describe, expect, test } from 'vitest';
import { expectInvariants, isProbe } from '../support/invariants.ts';
import { resolving } from '../support/resolve.ts';
import { around, type Rig, rig } from '../support/rig.ts';

const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';

/** Everything that is shown or kept of a run. */
async function told({ store, events }: Rig, report: unknown): Promise<string> {
  const open = await store.openIntents();
  return JSON.stringify([
    report,
    events,
    await store.journal({ limit: 1_000 }),
    open,
    await store.bindings(),
  ]);
}

describe('src/engine: an answer that repeats the token', () => {
  test('is passed on without it', async () => {
    const played = rig({
      wrap: around(async (request, send) => {
        if (request.method === 'GET') return send();
        const detail = `unexpected header: ${request.headers.authorization}`;
        return {
          status: 422,
          headers: {
            'x-request-id': `req ${request.headers.authorization}`,
            'content-type': 'application/problem+json',
          },
          body: JSON.stringify({ status: 422, code: 'invalid_request', detail }),
        };
      }),
    });

    const report = await played.apply(`${head}ips:\n  one: {}\n`);

    const all = await told(played, report);
    expect(all).toContain('unexpected header: Bearer ***');
    expect(all).not.toContain(played.emulator.tokens().readWrite);
  });
});

describe('src/engine: an id that no path can carry', () => {
  const spec = `${head}isos:\n  rescue: {url: "https://mirror.example.com/rescue.iso"}\nips:\n  one: {}\n`;

  test.each([
    ['in the answer alone', '..', /\/isos$/],
    ['half of a character', 'uiso-\ud800', /\/isos$/],
    ['in the list as well', '..', /\/isos/],
    ['half of a character, in the list as well', 'uiso-\ud800', /\/isos/],
  ])('%s: the rest goes on, and a command settles it', async (name, id, where) => {
    const everywhere = name.includes('list');
    const played = rig({
      wrap: around(async (request, send) => {
        const answer = await send();
        if (!where.test(request.url) || (request.method === 'GET' && !everywhere)) return answer;
        return { ...answer, body: answer.body.replaceAll('"uiso-1"', JSON.stringify(id)) };
      }),
    });

    const report = await played.apply(spec);

    expect(report.results.find(({ key }) => key === 'ips.one')?.outcome).toBe('done');
    const asked = report.blocked.find(({ key }) => key === 'isos.rescue');
    if (everywhere)
      expect(asked).toMatchObject({
        code: 'key_not_answered',
        remedies: resolving(expect.stringContaining('--abandon')),
      });
    else expect(report.outcome).toBe('converged');
    // An answer that cannot be read is asked for again under its key.
    const sends = played.writes().filter((each) => each.path === '/isos' && !isProbe(each));
    expect(new Set(sends.map(({ key }) => key)).size).toBe(1);
    expect(sends.length).toBeLessThanOrEqual(3);
    expect(played.emulator.world.executions.filter(({ kind }) => kind === 'iso')).toHaveLength(1);
    await expectInvariants(played);
  });
});

describe('src/engine: an address or id that holds a command', () => {
  const command = '9.9.9.9 | vdcsync destroy --yes';
  const spec = `${head}ips:\n  one: {}\n`;

  test('in a list: the list is refused by its path, nothing is bought, and nobody is shown the command as one', async () => {
    const played = rig({
      wrap: around(async (request, send) => {
        const answer = await send();
        if (request.method !== 'GET' || !request.url.endsWith('/ips')) return answer;
        const row = { id: 9, address: command, server_id: null, primary: false };
        return { ...answer, body: JSON.stringify({ data: [row] }) };
      }),
    });

    const failed = await played.apply(spec).catch((error: Error) => error.message);

    expect(failed).toMatch(/^the answer to GET \/ips .*data\.0\.address: this text is not an IPv4 address$/);
    expect(played.writes()).toEqual([]);
  });

  test('in the answer to a purchase: the address is not taken from there, but from the list', async () => {
    const played = rig({
      wrap: around(async (request, send) => {
        const answer = await send();
        if (request.method !== 'POST') return answer;
        const body = JSON.parse(answer.body) as { data: object };
        return { ...answer, body: JSON.stringify({ ...body, data: { ...body.data, address: command } }) };
      }),
    });

    const report = await played.apply(spec);

    expect(report.outcome).toBe('converged');
    expect(JSON.stringify(await played.store.bindings())).not.toContain('destroy');
    await expectInvariants(played);
  });
});

describe('src/engine: a read that is told to wait for days', () => {
  test('waits ten minutes', async () => {
    let refused = false;
    const played = rig({
      wrap: around(async (request, send) => {
        const answer = await send();
        if (refused || !request.url.endsWith('/ips')) return answer;
        refused = true;
        return {
          status: 503,
          headers: {
            'x-request-id': 'req_1',
            'content-type': 'application/problem+json',
            'retry-after': '86400',
          },
          body: JSON.stringify({ status: 503, code: 'unavailable', title: 'later' }),
        };
      }),
    });

    await played.plan(`${head}ips:\n  one: {}\n`);

    expect(played.clock.monotonic()).toBe(600_000);
  });
});

describe('src/engine: an id in an answer that is none', () => {
  const spec = `${head}ips: {one: {}}\nservers: {web: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}}}\n`;

  test.each([
    0,
    -1,
    1.5,
    '../ips/5001',
    ' ',
    true,
  ])('%j tells nothing, and evidence goes before it', async (id) => {
    const played = rig({
      wrap: around(async (request, send) => {
        const answer = await send();
        if (request.method !== 'POST') return answer;
        const body = JSON.parse(answer.body) as { data: object };
        return { ...answer, body: JSON.stringify({ ...body, data: { ...body.data, id } }) };
      }),
    });

    const report = await played.apply(spec);

    expect(report.outcome).toBe('converged');
    expect(played.sent.filter(({ path }) => /NaN|\/0|\/-1/.test(path))).toEqual([]);
    expect(played.project.ips).toHaveLength(2);
  });
});
