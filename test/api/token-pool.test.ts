import { describe, expect, test } from 'vitest';
import type { HttpRequest, HttpResponse } from '../../src/core/transport.ts';
import { answer, ok, problem, rig } from './support.ts';

const [one, two, three] = ['token-one', 'token-two', 'token-three'] as const;
const secretOf = ({ headers }: HttpRequest) => (headers.authorization ?? '').slice('Bearer '.length);
const allocate = { name: 'allocate_ip', path: {}, body: {} } as const;
const network = { name: 'create_network', path: {}, body: { name: 'a', cidr: '10.0.0.0/24' } } as const;

type Own = Readonly<Record<string, (request: HttpRequest) => HttpResponse | undefined>>;

/** A service of project 4711 that knows these tokens; `own` comes before its usual answers. */
function pool(tokens: readonly string[], own: Own = {}, projects: Readonly<Record<string, number>> = {}) {
  const held = { tokens };
  const warnings: string[] = [];
  const logged: object[] = [];
  const made = rig(
    (request) => {
      const secret = secretOf(request);
      const special = own[secret]?.(request);
      if (special !== undefined) return special;
      if (request.method !== 'GET') return answer(201, { data: { id: 1, address: '192.0.2.1' }, task: null });
      const path = new URL(request.url).pathname.slice('/v1'.length);
      if (path === '/project') return ok({ id: projects[secret] ?? 4711, name: 'shop', status: 'Active' });
      return ok([]);
    },
    {
      token: () => held.tokens,
      projectId: 4711,
      logger: {
        debug: () => {},
        warn: (fields, message) => {
          warnings.push(message);
          logged.push(fields);
        },
      },
    },
  );
  const used = (method: string, path: string) =>
    made.sent.filter((each) => each.method === method && each.url.endsWith(path)).map(secretOf);
  let nth = 0;
  const write = async (request: typeof allocate | typeof network = allocate) => {
    nth += 1;
    await made.client.writes.room();
    return made.client.writes.send(request, `key-number-${nth}`, made.client.writes.token());
  };
  const run = <Result>(work: () => Promise<Result>) => made.clock.run(work());
  return { ...made, held, warnings, logged, used, write, run };
}

describe('src/api/token-pool.ts', () => {
  test('k tokens allow k times the requests of a window, and each token keeps its own limit', async () => {
    const { run, write, used, clock, client } = pool([one, two]);
    await run(async () => {
      for (let at = 0; at < 40; at++) await write();
    });
    expect(clock.monotonic()).toBeLessThan(1_000);
    expect([one, two].map((each) => used('POST', '/ips').filter((secret) => secret === each).length)).toEqual(
      [20, 20],
    );
    await run(() => write());
    expect(clock.monotonic()).toBeGreaterThanOrEqual(60_000);
    const start = clock.monotonic();
    await run(() => Promise.all(Array.from({ length: 110 }, () => client.reads('operation').networks())));
    expect(clock.monotonic() - start).toBeLessThan(1_000);
    expect(client.counts().throttled).toBe(0);
  });

  test('sends only GET /project with a token of an unknown project, and nothing with a token of another project', async () => {
    const { run, write, sent, client, warnings } = pool([one, two, three], {}, { [two]: 815 });
    await run(async () => {
      await client.reads('operation').ips();
      for (let at = 0; at < 45; at++) await write();
    });
    expect(new Set(sent.filter((each) => secretOf(each) === two).map(({ url }) => url.slice(-8)))).toEqual(
      new Set(['/project']),
    );
    for (const secret of [one, three]) {
      const [first] = sent.filter((each) => secretOf(each) === secret);
      expect(first?.url.endsWith('/project')).toBe(true);
    }
    expect(warnings).toEqual(['a token belongs to another project: vdcsync uses the other tokens']);
  });

  test('a write needs a check of its token from the last minute', async () => {
    const { run, write, used, clock } = pool([one, two]);
    await run(() => write());
    await clock.advance(10 * 60_000);
    const before = used('GET', '/project').length;
    await run(() => write());
    expect(used('GET', '/project').length).toBe(before + 1);
  });

  test('drops a revoked token with one warning: reads retry with another token, a write fails for that token alone', async () => {
    let revoked = false;
    const refuse = () => (revoked ? problem(401, 'unauthenticated') : undefined);
    const { run, write, used, client, warnings, logged, clock } = pool([one, two], { [one]: refuse });
    await run(() => write());
    revoked = true;
    const refused = await run(() => write());
    expect(refused).toMatchObject({ status: 401, ofToken: true });
    expect(await run(() => client.reads('operation').ips())).toEqual([]);
    const results = await run(async () => [await write(), await write()]);
    expect(results).toMatchObject([{ status: 201 }, { status: 201 }]);
    expect(used('POST', '/ips')).toEqual([one, one, two, two]);
    // Later it is asked once more, and reported no more.
    await clock.advance(6 * 60_000);
    revoked = false;
    await run(() => client.reads('operation').ips());
    expect(used('GET', '/project').at(-1)).toBe(one);
    expect(warnings).toEqual(['the API refuses a token: vdcsync uses the other tokens']);
    expect(logged).toEqual([{ tokenNumber: 1, tokens: 2 }]);
  });

  test('uses a read-only token for reads, also in the next process, after one attempt to write', async () => {
    const readOnly = ({ method }: HttpRequest) =>
      method === 'GET' ? undefined : problem(403, 'insufficient_scope');
    const first = pool([one, two], { [one]: readOnly });
    expect(await first.run(() => first.write())).toMatchObject({ status: 403, ofToken: true });
    await first.run(async () => {
      for (let at = 0; at < 5; at++) await first.write();
      for (let at = 0; at < 80; at++) await first.client.reads('operation').ips();
    });
    expect(first.used('POST', '/ips').filter((secret) => secret === one)).toHaveLength(1);
    expect(new Set(first.used('GET', '/ips'))).toEqual(new Set([one, two]));
    expect(first.warnings).toEqual(['a token may only read: vdcsync uses it for reads']);
  });

  test('uses a token without permission for one write for the other writes', async () => {
    const noNetworks = ({ method, url }: HttpRequest) =>
      method === 'POST' && url.endsWith('/networks') ? problem(403, 'insufficient_privileges') : undefined;
    const { run, write, used } = pool([one, two], { [one]: noNetworks });
    const results = await run(async () => [await write(network), await write(network), await write()]);
    expect(results).toMatchObject([{ status: 403, ofToken: true }, { status: 201 }, { status: 201 }]);
    expect([used('POST', '/networks'), used('POST', '/ips')]).toEqual([[one, two], [one]]);
  });

  test('a 429 pauses one token until its time has passed; other tokens continue at once', async () => {
    let isFull = true;
    const full = ({ method }: HttpRequest) =>
      method !== 'GET' && isFull ? problem(429, 'rate_limit_exceeded', { 'retry-after': '30' }) : undefined;
    const { run, write, used, clock } = pool([one, two], { [one]: full });
    const results = await run(async () => [await write(), await write(), await write()]);
    expect(results).toMatchObject([{ status: 429, ofToken: true }, { status: 201 }, { status: 201 }]);
    expect(clock.monotonic()).toBeLessThan(1_000);
    isFull = false;
    await clock.advance(31_000);
    await run(() => write());
    expect(used('POST', '/ips')).toEqual([one, two, two, one]);
  });

  test('reports a refusal once the last token is refused', async () => {
    const refuse = ({ url }: HttpRequest) =>
      url.endsWith('/project') ? undefined : problem(401, 'unauthenticated');
    const { run, write, client } = pool([one, two], { [one]: refuse, [two]: refuse });
    expect(await run(() => write())).toMatchObject({ status: 401, ofToken: true });
    expect(await run(() => write())).not.toHaveProperty('ofToken');
    expect(await run(() => write())).toMatchObject({ type: 'unsent' });
    await expect(run(() => client.reads('operation').ips())).rejects.toThrow(/401/);
  });

  test('when every token belongs to another project, reads the project and writes nothing', async () => {
    const { run, write, client } = pool([one, two], {}, { [one]: 815, [two]: 816 });
    expect((await run(() => client.reads('operation').project())).id).toBe(815);
    expect(await run(() => write())).toMatchObject({ type: 'unsent' });
  });

  test('checks an added token first, and stops using a removed token', async () => {
    const { run, write, held, sent, client } = pool([one, two]);
    await run(() => write());
    const before = client.writes.token();
    held.tokens = [two, three];
    expect(client.writes.token()).not.toBe(before);
    expect(await run(() => client.writes.send(allocate, 'key-of-before', before))).toMatchObject({
      type: 'unsent',
    });
    const from = sent.length;
    await run(async () => {
      for (let at = 0; at < 25; at++) await write();
    });
    const since = sent.slice(from);
    expect(since.map(secretOf)).not.toContain(one);
    expect(since.find((each) => secretOf(each) === three)?.url.endsWith('/project')).toBe(true);
  });
});
