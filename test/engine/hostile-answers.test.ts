import { describe, expect, test } from 'vitest';
import type { HttpRequest, HttpResponse } from '../../src/core/transport.ts';
import { expectInvariants, isProbe } from '../support/invariants.ts';
import { resolving } from '../support/resolve.ts';
import { around, type Rig, rig } from '../support/rig.ts';

const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';
const one = `${head}ips:\n  one: {}\n`;

/** An API whose answers are changed; `undefined`: the answer is passed on. */
const answering = (change: (request: HttpRequest, answer: HttpResponse) => HttpResponse | undefined): Rig =>
  rig({
    wrap: around(async (request, send) => {
      const answer = await send();
      return change(request, answer) ?? answer;
    }),
  });

/** An API whose answers to writes have these data. */
const accepting = (data: object): Rig =>
  answering(({ method }, answer) => {
    if (method !== 'POST') return undefined;
    const body = JSON.parse(answer.body) as { data: object };
    return { ...answer, body: JSON.stringify({ ...body, data: { ...body.data, ...data } }) };
  });

const problem = (status: number, body: object, headers: Readonly<Record<string, string>>): HttpResponse => ({
  status,
  headers: { 'x-request-id': 'req_1', 'content-type': 'application/problem+json', ...headers },
  body: JSON.stringify({ status, ...body }),
});

describe('src/engine: an answer that repeats the token', () => {
  test('is passed on without the token', async () => {
    const played = answering(({ method, headers: { authorization } }) => {
      const body = { code: 'invalid_request', detail: `unexpected header: ${authorization}` };
      return method === 'GET' ? undefined : problem(422, body, { 'x-request-id': `req ${authorization}` });
    });

    const report = await played.apply(one);

    const { store, events } = played;
    const kept = [await store.journal({ limit: 1_000 }), await store.openIntents(), await store.bindings()];
    const all = JSON.stringify([report, events, kept]);
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
  ])('%s: the other operations continue, and a command settles the write', async (name, id, where) => {
    const everywhere = name.includes('list');
    const played = answering(({ url, method }, answer) => {
      if (!where.test(url) || (method === 'GET' && !everywhere)) return undefined;
      return { ...answer, body: answer.body.replaceAll('"uiso-1"', JSON.stringify(id)) };
    });

    const report = await played.apply(spec);

    expect(report.results.find(({ key }) => key === 'ips.one')?.outcome).toBe('done');
    const asked = report.blocked.find(({ key }) => key === 'isos.rescue');
    const remedies = resolving(expect.stringContaining('--abandon'));
    if (everywhere) expect(asked).toMatchObject({ code: 'key_not_answered', remedies });
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
  const address = '9.9.9.9 | vdcsync destroy --yes';

  test('in a list: the list is refused by its path, nothing is bought, and no message shows the command', async () => {
    const body = JSON.stringify({ data: [{ id: 9, address, server_id: null, primary: false }] });
    const played = answering(({ method, url }, answer) =>
      method === 'GET' && url.endsWith('/ips') ? { ...answer, body } : undefined,
    );

    const failed = await played.apply(one).catch((error: Error) => error.message);

    expect(failed).toMatch(/^the answer to GET \/ips .*data\.0\.address: this text is not an IPv4 address$/);
    expect(played.writes()).toEqual([]);
  });

  test('in the answer to a purchase: the address comes from the list instead', async () => {
    const played = accepting({ address });

    expect((await played.apply(one)).outcome).toBe('converged');
    expect(JSON.stringify(await played.store.bindings())).not.toContain('destroy');
    await expectInvariants(played);
  });
});

describe('src/engine: a read with a Retry-After of a day', () => {
  test('waits ten minutes', async () => {
    let refused = false;
    const played = answering(({ url }) => {
      if (refused || !url.endsWith('/ips')) return undefined;
      refused = true;
      return problem(503, { code: 'unavailable', title: 'later' }, { 'retry-after': '86400' });
    });

    await played.plan(one);

    expect(played.clock.monotonic()).toBe(600_000);
  });
});

describe('src/engine: an invalid id in an answer', () => {
  const spec = `${head}ips: {one: {}}\nservers: {web: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}}}\n`;

  test.each([0, -1, 1.5, '../ips/5001', ' ', true])('%j has no effect, and reads decide', async (id) => {
    const played = accepting({ id });

    expect((await played.apply(spec)).outcome).toBe('converged');
    expect(played.sent.filter(({ path }) => /NaN|\/0|\/-1/.test(path))).toEqual([]);
    expect(played.project.ips).toHaveLength(2);
  });
});
