import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import type { ApplyReport } from '../../src/core/progress.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import { memoryState } from '../../src/state/memory.ts';
import { expectFixedPoint, expectInvariants } from '../support/invariants.ts';
import { applyWithHelp } from '../support/operator.ts';
import { load, type Rig, rig } from '../support/rig.ts';
import { virtualClock } from '../support/virtual-clock.ts';

const hour = 3_600_000;
const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';
const ips = (...names: string[]) =>
  `${head}ips:\n${names.map((name) => `  ${name}: {server_type_id: 3}\n`).join('')}`;
const server = (more = '') =>
  `${head}servers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}${more}}\n`;
const gpu = `${head}servers:\n  gpu: {server_type: gpu-fixed, image: ubuntu-24.04, gpu_package: [l40s-2, l40s-1]}\n`;
const shop = `${server(', network_interfaces: [backend], firewall: {enabled: true, policy_in: drop, rules: []}')}networks:
  backend: {cidr: 10.20.0.0/24}
ips:
  one: {server_type_id: 3}
  two: {server_type_id: 3}
`;

function executed({ emulator }: Rig, kind: string): number {
  return emulator.world.executions.filter((each) => each.kind === kind).length;
}

async function converges(played: Rig, spec: string): Promise<void> {
  const { reports } = await applyWithHelp(played, spec);
  expect(reports.at(-1)?.outcome, JSON.stringify(reports.at(-1)?.blocked)).toBe('converged');
  expectFixedPoint(await played.plan(spec));
  await expectInvariants(played);
}

describe('engine: the token', () => {
  test("exchanged for another project's at any request: nothing is written there, and the run ends", async () => {
    const projects = [
      { id: 4711, name: 'shop' },
      { id: 4712, name: 'other' },
    ];
    const count = rig({ emulator: { projects } });
    await count.apply(shop);
    for (let at = 2; at <= count.sent.length; at++) {
      let asked = 0;
      let swapped = true;
      const played: Rig = rig({
        emulator: { projects },
        token: () => played.emulator.tokens(swapped && played.sent.length >= at ? 4712 : 4711).readWrite,
      });
      asked = played.sent.length;
      await played.apply(shop).catch((error: Error) => expect(error.name).toBe('FenceError'));

      const foreign = played.emulator.requests.filter(
        ({ project, method }) => project === 4712 && method !== 'GET',
      );
      expect({ at, foreign }).toEqual({ at, foreign: [] });
      expect(played.sent.length).toBeGreaterThan(asked);
      swapped = false;
      played.restart();
      await converges(played, shop);
    }
  });

  test('revoked in mid-run: nothing more is sent, and the next run goes on', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'create_network', nth: 1 }, { do: 'answer', status: 401, code: 'unauthorized' }),
    ]);

    const report = await played.apply(shop);

    expect(report.outcome).toBe('blocked');
    const left = report.results.filter(({ outcome }) => outcome !== 'done');
    expect(new Set(left.map(({ code }) => code))).toEqual(new Set(['unauthorized']));
    expect(played.writes().at(-1)?.path).toBe('/networks');
    await converges(played, shop);
  });
});

describe('engine: reads that fail', () => {
  test('for good, inside one operation: it is told, the others go on, the intent stays open', async () => {
    const played = rig();
    const spec = `${shop}isos:\n  rescue: {url: "https://mirror.example.com/rescue.iso"}\n`;
    played.emulator.setFaults([
      faultRule({ path: 'read_iso', nth: 1, times: 1000 }, { do: 'answer', status: 500 }),
    ]);

    const outcome = await played.apply(spec).catch((error: Error) => error);

    const results = played.events.flatMap((event) => (event.type === 'ended' ? [event.result] : []));
    expect(results.find(({ key }) => key === 'ips.one')?.outcome).toBe('done');
    expect(results.find(({ key }) => key === 'isos.rescue')).toMatchObject({
      outcome: 'unresolved',
      code: 'read_failed',
    });
    expect(outcome).toBeDefined();
    played.emulator.setFaults([]);
    await converges(played, spec);
    expect(executed(played, 'iso')).toBe(1);
  });

  test('for good, of a write that the file asks for no more: what could not be read is told, with the ways out', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'read_iso', nth: 1, times: 1000 }, { do: 'answer', status: 500 }),
    ]);
    await played.apply(`${head}isos:\n  rescue: {url: "https://mirror.example.com/rescue.iso"}\n`);

    const { outcome, blocked } = await played.apply(head);

    expect(outcome).toBe('blocked');
    expect(blocked).toMatchObject([{ key: 'isos.rescue', verb: 'create', code: 'read_failed' }]);
    expect(blocked[0]?.reason).toMatch(
      /^a read failed, so nothing is known: GET \/isos\/uiso-\d+ answered 500/,
    );
    expect(blocked[0]?.resolve).toContain('vdcsync apply (once the cause is gone) | ');
    expect(blocked[0]?.resolve).toContain('vdcsync resolve isos.rescue --abandon');
    played.emulator.setFaults([]);
    await converges(played, head);
  });

  test('of one purchase in doubt: another that waits for its end does not wait for ever', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'answer', status: 503 }),
      faultRule({ path: 'read_project', nth: 2 }, { do: 'answer', status: 404 }),
    ]);

    const { blocked, results } = await played.apply(ips('one', 'two'));

    const [unread, waiting] = results;
    expect(unread).toMatchObject({ outcome: 'unresolved', code: 'read_failed' });
    expect(waiting).toMatchObject({ outcome: 'blocked', code: 'unresolved_create' });
    expect(blocked.find(({ key }) => key === waiting?.key)?.resolve).toBe(
      'vdcsync apply (once the cause is gone)',
    );
    await converges(played, ips('one', 'two'));
    expect(executed(played, 'ip')).toBe(2);
  });

  test('of one purchase that waits for a person: a plan holds back another as an apply does, and what needs it', async () => {
    const played = rig();
    const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
    const web = (address: string) => `  ${address}: {${size}, public_ipv4: {ip: ${address}}}\n`;
    const spec = `${ips('one', 'two')}servers:\n${web('one')}${web('two')}`.replace('exclusive: true, ', '');
    const lost = { path: 'allocate_ip', nth: 1 };
    played.emulator.setFaults([faultRule(lost, { do: 'reset', effect: 'done', stored: false })]);

    const report = await played.apply(spec);
    played.restart();
    const plan = await played.plan(spec);

    const codes = (of: Plan) => of.blocked.map(({ key, code }) => `${key} ${code}`);
    expect(codes(plan)).toEqual([
      'ips.one outcome_unknown',
      'ips.two unresolved_create',
      'servers.one dependency_blocked',
      'servers.two dependency_blocked',
    ]);
    expect(codes(report.plan)).toEqual(codes(plan));
    expect([plan.operations, report.plan.operations]).toEqual([[], []]);
    await converges(played, spec);
    expect(executed(played, 'ip')).toBe(2);
  });

  test('of evidence: conclude nothing', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'reset', effect: 'done' }),
      faultRule({ path: 'list_ips', nth: 2, times: 8 }, { do: 'answer', status: 503 }),
    ]);

    await applyWithHelp(played, ips('web')).catch(() => undefined);
    played.emulator.setFaults([]);

    await converges(played, ips('web'));
    expect(executed(played, 'ip')).toBe(1);
  });

  test('stale by up to a minute, from the first request to the last: everything is still made once', async () => {
    const played = rig({ emulator: { readings: { staleReadsMs: 55_000 } } });

    await converges(played, shop);

    expect(played.emulator.billed()).toHaveLength(4);
    expect(executed(played, 'network')).toBe(1);
  });

  test('stale, and the answer lost: the first look that misses it is not believed', async () => {
    const played = rig({ emulator: { readings: { staleReadsMs: 59_000 } } });
    played.emulator.setFaults([faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'late', ms: 20_000 })]);

    await converges(played, ips('web'));

    expect(executed(played, 'ip')).toBe(1);
  });

  test('lists that end early do not make anything gone, nor made again', async () => {
    const played = rig();
    await played.apply(shop);
    const before = played.emulator.billed().length;
    played.emulator.setFaults([
      faultRule({ path: 'list_ips', nth: 1, times: 1 }, { do: 'truncate_list', keep: 0 }),
    ]);

    await converges(played, shop);

    expect(played.emulator.billed()).toHaveLength(before);
  });
});

describe('engine: the clock', () => {
  test.each([
    ['back', -25 * hour],
    ['forward', 25 * hour],
  ])('set %s a day while a task runs and while an answer is lost: bought once', async (_way, ms) => {
    for (const fault of [undefined, { do: 'reset', effect: 'done' } as const, { do: 'reset' } as const]) {
      for (const moment of [1_000, 30_000, 61_000, 100_000]) {
        const played = rig();
        if (fault !== undefined)
          played.emulator.setFaults([faultRule({ path: 'create_server', nth: 1 }, fault)]);
        void played.clock.sleep(moment).then(() => played.clock.jump(ms));

        await converges(played, shop);

        expect(executed(played, 'server'), `${moment}`).toBe(1);
        expect(played.clock.monotonic(), 'no wait that the clock made endless').toBeLessThan(4 * hour);
      }
    }
  });

  test('a key of 23 h is not sent again, though nothing is to be seen', async () => {
    const played = rig();
    played.emulator.setFaults([faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'reset' })]);
    const stop = new AbortController();
    void played.clock.sleep(70_000).then(() => stop.abort());
    await played.apply(ips('web'), { stop: stop.signal });
    await played.clock.advance(24 * hour);
    played.restart();

    const report = await played.apply(ips('web'));

    expect(report.blocked).toMatchObject([{ key: 'ips.web', code: 'key_too_old' }]);
    expect(played.writes()).toHaveLength(1);
    await converges(played, ips('web'));
    expect(executed(played, 'ip')).toBe(1);
  });
});

describe('engine: keys used before', () => {
  const state = () => memoryState({ createdAt: virtualClock().now(), lineage: 'another' });

  test('by a state that was lost: what is alive is adopted, not bought again', async () => {
    const played = rig();
    const spec = `${ips('web').replace('exclusive: true', 'exclusive: true, unmanaged: ignore')}`;
    await played.apply(spec);
    played.restart(state());

    const report = await played.apply(spec);

    expect(report.outcome).toBe('converged');
    expect(played.emulator.billed()).toHaveLength(1);
  });

  test('by a state that was lost, and dead since: the next incarnation is made', async () => {
    const played = rig();
    const spec = ips('web');
    await played.apply(spec);
    const [address] = played.emulator.world.projects[0]?.ips ?? [];
    played.emulator.mutate({ do: 'delete_ip', id: address?.id ?? 0 });
    const fresh = state();
    played.restart(fresh);

    const report = await played.apply(spec);

    expect(report.outcome).toBe('converged');
    expect(played.emulator.billed()).toHaveLength(1);
    expect(executed(played, 'ip')).toBe(2);
    expect(await fresh.incarnation('ips.web' as never)).toBe(1);
  });

  test('by a state that was lost, with another body: blocked, and nothing is bought beside it', async () => {
    const played = rig();
    await played.apply(server().replace('exclusive: true', 'unmanaged: ignore'));
    played.restart(state());

    const report = await played.apply(
      server().replace('exclusive: true', 'unmanaged: ignore').replace('cores: 1', 'cores: 2'),
    );

    expect(report.outcome).toBe('blocked');
    expect(executed(played, 'server')).toBe(1);
    expect(report.blocked[0]?.resolve).toContain('vdcsync resolve servers.web --adopt');
  });
});

describe('engine: capacity', () => {
  test('the next preference has a key of its own; with none left the list begins anew after a pause', async () => {
    const played = rig();
    for (const name of ['l40s-2', 'l40s-1'])
      played.emulator.mutate({ do: 'set_capacity', package: name, capacity: 0 });
    void played.clock
      .sleep(hour)
      .then(() => played.emulator.mutate({ do: 'set_capacity', package: 'l40s-2', capacity: 1 }));

    const report = await played.apply(gpu);

    expect(report.outcome).toBe('converged');
    expect(played.emulator.world.projects[0]?.servers.map(({ gpuPackage }) => gpuPackage)).toEqual([
      'l40s-2',
    ]);
    expect(played.clock.monotonic()).toBeLessThan(hour + 20 * 60_000);
    expect(played.writes().length).toBeLessThan(60);
    await expectInvariants(played);
  });

  test('none for a day: blocked, and the next run tries again', async () => {
    const played = rig();
    for (const name of ['l40s-2', 'l40s-1'])
      played.emulator.mutate({ do: 'set_capacity', package: name, capacity: 0 });

    const report = await played.apply(gpu);

    expect(report.blocked).toMatchObject([{ key: 'servers.gpu', code: 'no_gpu_capacity' }]);
    expect(played.clock.monotonic()).toBeLessThan(25 * hour);
    played.emulator.mutate({ do: 'set_capacity', package: 'l40s-1', capacity: 1 });
    await converges(played, gpu);
    expect(executed(played, 'server')).toBe(1);
  });
});

describe('engine: a project that changes in mid-run', () => {
  test('suspended: what spends is held, what does not goes on, and later the rest', async () => {
    const played = rig();
    await played.apply(`${head}ips:\n  old: {server_type_id: 3}\n`);
    played.emulator.setFaults([
      faultRule({ path: 'create_server', nth: 1 }, { do: 'standing', standing: 'suspended' }),
    ]);

    const report = await played.apply(shop);

    expect(report.outcome).toBe('blocked');
    expect(played.emulator.billed().some(({ kind }) => kind === 'server')).toBe(false);
    expect(report.results.find(({ key }) => key === 'ips.old')?.outcome).toBe('done');
    expect(played.writes().filter(({ path }) => path === '/servers')).toHaveLength(1);
    played.emulator.mutate({ do: 'set_standing', standing: 'active' });
    await converges(played, shop);
  });

  test.each([
    ['a stranger allocates an address', { do: 'add_ip' }],
    ['a stranger makes a server', { do: 'add_server', name: 'stranger' }],
    ['a stranger makes a network of that name', { do: 'add_network', name: 'backend', cidr: '10.20.0.0/24' }],
  ] as const)('%s at any request: ours are bought once, and theirs is left alone', async (_name, mutation) => {
    const spec = shop.replace('exclusive: true', 'exclusive: false');
    const requests = rig();
    await requests.apply(spec);
    for (let at = 1; at <= requests.sent.length; at += 3) {
      const played: Rig = rig({
        wrap: (inner) => ({
          close: () => inner.close(),
          async send(request, options) {
            if (played.sent.length === at) played.emulator.mutate(mutation);
            return inner.send(request, options);
          },
        }),
      });

      await applyWithHelp(played, spec);

      await expectInvariants(played);
      expect(executed(played, 'server'), `${at}`).toBeLessThanOrEqual(1);
      expect(executed(played, 'ip'), `${at}`).toBeLessThanOrEqual(2);
      expect(played.writes().every(({ method }) => method !== 'DELETE')).toBe(true);
    }
  });

  test('the server goes while its card and firewall are made: it is made again, once', async () => {
    const requests = rig();
    await requests.apply(shop);
    for (let at = 12; at <= requests.sent.length; at += 2) {
      const played: Rig = rig({
        wrap: (inner) => ({
          close: () => inner.close(),
          async send(request, options) {
            const [made] = played.emulator.world.projects[0]?.servers ?? [];
            if (played.sent.length === at && made !== undefined)
              played.emulator.mutate({ do: 'delete_server', id: made.id });
            return inner.send(request, options);
          },
        }),
      });

      await applyWithHelp(played, shop);
      await converges(played, shop);

      expect(played.emulator.world.projects[0]?.servers, `${at}`).toHaveLength(1);
    }
  });

  test('another client uses up the same token: its 429s are waited out, and everything is made once', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule(
        { method: 'POST', probability: 0.5, times: 10 },
        { do: 'answer', status: 429, retryAfter: 30 },
      ),
      faultRule(
        { method: 'GET', probability: 0.2, times: 20 },
        { do: 'answer', status: 429, retryAfter: 10 },
      ),
    ]);

    await converges(played, shop);

    expect(played.emulator.billed()).toHaveLength(4);
  });
});

describe('engine: the file changes', () => {
  test('under a refusal of what it said: the new entry is sent under a new key', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule(
        { path: 'create_server', nth: 1 },
        { do: 'answer', status: 422, code: 'invalid_request', stored: true },
      ),
    ]);
    const first = await played.apply(server());

    const same = await played.apply(server());
    await converges(played, server().replace('cores: 1', 'cores: 2'));

    expect([first.blocked[0]?.code, same.blocked[0]?.code]).toEqual(['invalid_request', 'invalid_request']);
    expect(played.writes()).toHaveLength(2);
    expect(new Set(played.writes().map(({ key }) => key)).size).toBe(2);
  });

  test('while a write waits: the new entry is sent, and the old one never', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'create_server', nth: 1, times: 1 }, { do: 'answer', status: 409, code: 'odd' }),
    ]);
    const stop = new AbortController();
    void played.clock.sleep(2_000).then(() => stop.abort());
    await played.apply(server(), { stop: stop.signal });

    await converges(played, server().replace('cores: 1', 'cores: 2'));

    const cores = played.writes().map(({ body }) => (JSON.parse(body ?? '{}') as { cores?: number }).cores);
    expect(cores).toEqual([1, 2]);
  });

  test('and the entry leaves it while its write waits: nothing is made', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'create_server', nth: 1 }, { do: 'answer', status: 409, code: 'odd' }),
    ]);
    const stop = new AbortController();
    void played.clock.sleep(2_000).then(() => stop.abort());
    await played.apply(server(), { stop: stop.signal });

    await converges(played, head);

    expect(played.emulator.billed()).toEqual([]);
  });
});

describe('engine: what a failed task left', () => {
  test('is not an address that the file took meanwhile', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'answer', status: 409, code: 'odd' }),
      faultRule({ path: 'create_server', nth: 1 }, { do: 'task', outcome: 'fail', leaves: 'nothing' }),
    ]);
    const spec = `${server()}ips:\n  one: {server_type_id: 3}\n`;

    const report = await played.apply(spec);

    expect(report.blocked).toEqual([]);
    expect(played.emulator.billed()).toHaveLength(3);
    await converges(played, spec);
  });
});

describe('engine: a download that always fails', () => {
  test('is tried a bounded number of times in a run, and told', async () => {
    const played = rig();
    const spec = `${head}isos:\n  rescue: {url: "https://mirror.example.com/missing.iso"}\n`;

    const report = await played.apply(spec);

    expect(report.outcome).not.toBe('converged');
    expect(report.results.length).toBeLessThan(12);
    expect(played.emulator.world.projects[0]?.isos.length).toBeLessThanOrEqual(1);
    await expectInvariants(played);
  });
});

describe('engine: stop and halt', () => {
  test.each([
    'stop',
    'halt',
  ] as const)('%s at any time: the run ends, leaves nothing running, and the next one converges', async (signal) => {
    for (let ms = 0; ms < 120_000; ms += 7_300) {
      const played = rig();
      played.emulator.setFaults([
        faultRule({ path: 'allocate_ip', nth: 1 }, { do: 'reset' }),
        faultRule({ path: 'create_network', nth: 1, times: 3 }, { do: 'answer', status: 409, code: 'odd' }),
        faultRule({ path: 'list_ips', nth: 3, times: 2 }, { do: 'answer', status: 503 }),
      ]);
      const controller = new AbortController();
      let endedAt = Number.POSITIVE_INFINITY;
      void played.clock.sleep(ms).then(() => controller.abort());

      const report = await played.apply(shop, { [signal]: controller.signal }).catch((error: unknown) => {
        expect(error).toBe(controller.signal.reason);
        return undefined;
      });

      endedAt = played.clock.monotonic();
      const sent = played.sent.length;
      if (controller.signal.aborted) {
        if (report !== undefined) expect(report.outcome).toBe('stopped');
        const graceMs = signal === 'halt' ? 31_000 : 120_000;
        expect(endedAt - ms, `${signal} at ${ms}`).toBeLessThan(graceMs);
        expect(played.clock.sleeping, `${signal} at ${ms}: no work is left running`).toBe(0);
        await played.clock.advance(hour);
        expect(played.sent.length).toBe(sent);
      }
      played.restart();
      await converges(played, shop);
      expect(executed(played, 'server')).toBe(1);
    }
  });

  test('a state that cannot be written ends the run with its error, and nothing goes on', async () => {
    const inner = memoryState({ createdAt: virtualClock().now(), lineage: 'test' });
    let full = false;
    const store = new Proxy(inner, {
      get(target, name) {
        const member = target[name as keyof typeof inner] as (...given: unknown[]) => Promise<unknown>;
        if (member === undefined) return undefined;
        return async (...given: unknown[]) => {
          if (full && name === 'updateIntent') throw new Error('the disk is full');
          return member.apply(target, given);
        };
      },
    });
    const played = rig({ store });
    void played.clock.sleep(1_500).then(() => {
      full = true;
    });

    await expect(played.apply(shop)).rejects.toThrow('the disk is full');

    expect(played.clock.sleeping).toBe(0);
    full = false;
    await converges(played, shop);
  });
});

describe('engine: ids that are used again', () => {
  const nets = (...names: string[]) =>
    `${head}networks:\n${names.map((name, at) => `  ${name}: {cidr: 10.2${at}.0.0/24}\n`).join('')}`;

  test('a deletion whose answer was lost is not sent again at what has its id now', async () => {
    const played = rig({ emulator: { readings: { reuseIds: true, networkDelete: 'sync' } } });
    await played.apply(nets('old'));
    played.emulator.setFaults([
      faultRule({ path: 'delete_network', nth: 1 }, { do: 'reset', effect: 'done' }),
    ]);
    void played.clock.sleep(10_000).then(async () => {
      await played.emulator.handle({
        method: 'POST',
        url: 'http://emulator/v1/networks',
        headers: {
          authorization: `Bearer ${played.emulator.tokens().readWrite}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ name: 'stranger', cidr: '10.99.0.0/24' }),
      });
    });

    await played.apply(head);

    expect(played.emulator.world.projects[0]?.networks.map(({ name }) => name)).toContain('stranger');
    expect(played.writes().filter(({ method }) => method === 'DELETE')).toHaveLength(1);
  });
});

describe('engine: a person decides', () => {
  test('a live resource of one key cannot be adopted for another', async () => {
    const played = rig();
    await played.apply(ips('one'));
    const [made] = played.emulator.world.projects[0]?.ips ?? [];

    const said = played.clock.run(
      played.engine.adopt(load(ips('one', 'two')), 'ips.two' as never, String(made?.id)),
    );

    await expect(said).rejects.toThrow('bound to ips.one already');
  });

  const blind = gpu.replace('[l40s-2, l40s-1]', 'l40s-1');

  async function blocked(
    effect: 'none' | 'done',
  ): Promise<{ readonly played: Rig; readonly report: ApplyReport }> {
    const played = rig();
    played.emulator.setFaults([faultRule({ path: 'create_server', nth: 1 }, { do: 'reset', effect })]);
    const report = await played.apply(blind);
    expect(report.blocked).toMatchObject([{ key: 'servers.gpu', code: 'outcome_unknown' }]);
    return { played, report };
  }

  const resolve = (played: Rig, resolution: Parameters<Rig['engine']['resolve']>[2]) =>
    played.clock.run(played.engine.resolve(load(blind), 'servers.gpu' as never, resolution));

  test('--adopt: bound, and bought once', async () => {
    const { played } = await blocked('done');

    await resolve(played, { type: 'adopt', id: '2001' });

    expect((await played.apply(blind)).outcome).toBe('converged');
    expect(executed(played, 'server')).toBe(1);
  });

  test('--adopt of what is not there is refused', async () => {
    const { played } = await blocked('none');

    await expect(resolve(played, { type: 'adopt', id: '2001' })).rejects.toThrow('no server 2001');
  });

  test.each(['absent', 'abandon'] as const)('--%s: the next run makes it under a new key', async (type) => {
    const { played } = await blocked('none');

    await resolve(played, { type });

    expect((await played.apply(blind)).outcome).toBe('converged');
    expect(new Set(played.writes().map(({ key }) => key)).size).toBe(2);
    expect(executed(played, 'server')).toBe(1);
  });

  test('--absent of what reads do show is refused', async () => {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'create_server', nth: 1 }, { do: 'task', outcome: 'stuck' }),
    ]);
    await played.apply(server());

    const said = played.clock.run(
      played.engine.resolve(load(server()), 'servers.web' as never, { type: 'absent' }),
    );

    await expect(said).rejects.toThrow('--adopt 2001');
  });

  test('adopt: binds what somebody else made, and the next run makes no other', async () => {
    const played = rig();
    const made = played.emulator.mutate({ do: 'add_ip' }) as { readonly id: number };

    await played.clock.run(played.engine.adopt(load(ips('web')), 'ips.web' as never, String(made.id)));

    expect((await played.apply(ips('web'))).outcome).toBe('converged');
    expect(played.writes()).toEqual([]);
  });
});

describe('engine: without faults', () => {
  test('what the plan showed is what is done, nothing is blocked, and a plan leaves no trace', async () => {
    const played = rig();
    const before = JSON.stringify([await played.store.info(), await played.store.journal({ limit: 10 })]);
    const plan: Plan = await played.plan(shop);

    expect(
      JSON.stringify([await played.store.info(), await played.store.journal({ limit: 10 })]).replace(
        /"serial":\d+/,
        '',
      ),
    ).toBe(before.replace(/"serial":\d+/, ''));
    const report = await played.apply(shop);

    expect(report.results.map(({ verb, key }) => `${verb}:${key}`).sort()).toEqual(
      plan.operations.map(({ id }) => id).sort(),
    );
    expect(report.blocked).toEqual([]);
    await converges(played, shop);
  });

  test('two runs at once are one after the other', async () => {
    const played = rig();

    await played.clock.run(
      Promise.all([
        played.engine.apply(load(shop), { approve: async () => true }),
        played.engine.apply(load(shop), { approve: async () => true }),
      ]),
    );

    await converges(played, shop);
    expect(executed(played, 'ip')).toBe(2);
  });

  test('the same seed gives the same trace', async () => {
    const traces = await Promise.all(
      [1, 2].map(async () => {
        const played = rig();
        await played.apply(shop);
        return JSON.stringify(played.sent);
      }),
    );

    expect(traces[0]).toBe(traces[1]);
  });
});
