import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../../src/cli/settings/profile.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { loadProfile as emulatorProfile } from '../../../src/emulator/profile.ts';
import { resolveOf, resolving, saidBy } from '../../support/resolve.ts';
import { load, type Rig, rig } from '../../support/rig.ts';
import { codes, count, head, project, size, state, web } from './one-server.ts';

const hour = 3_600_000;

/** The state as it is now, as a copy of its file would be. */
async function copied(played: Rig) {
  const copy = state(played, 'test');
  await copy.claimProject(4711);
  const [bindings, claims] = [await played.store.bindings(), await played.store.claims()];
  await copy.change(
    [
      ...bindings.map((binding) => ({ type: 'bind', binding }) as const),
      ...claims.map((claim) => ({ type: 'claim', claim }) as const),
    ],
    played.clock.now(),
  );
  return copy;
}

/** Another copy buys what the file asks for while an operator thinks about the plan. */
async function boughtWhileAsked(played: ReturnType<typeof rig>, spec: ReturnType<typeof load>) {
  const laptop = await copied(played);
  const other = played.engine;
  played.restart(laptop);
  return played.clock.run(
    played.engine.apply(spec, {
      approve: async () => {
        await other.apply(spec, { approve: async () => true });
        // Longer than the keys are kept: the same purchase would be another one.
        await played.clock.sleep(25 * hour);
        return true;
      },
    }),
  );
}

describe('src/engine/claims: a state that is behind the project', () => {
  test.each([
    [true, 'blocked', ['another copy']],
    [false, 'converged', ['another copy', 'web']],
  ])('what comes between the halves of a replacement may be its second one (exclusive: %s)', async (exclusive, outcome, names) => {
    const played = rig();
    const spec = (cores: number) =>
      `settings: {exclusive: ${exclusive}}\n${web.replace('replace: allowed', 'replace: {order: delete_first}').replace('cores: 1', `cores: ${cores}`)}`;
    await played.apply(spec(1));
    void played.clock.sleep(5_000).then(() => {
      played.emulator.mutate({ do: 'add_server', name: 'another copy', public: true });
    });

    const report = await played.apply(spec(2));

    expect([report.outcome, project(played).servers.map(({ name }) => name)]).toEqual([outcome, names]);
    if (!exclusive) return;
    expect(codes(report.plan)).toMatchObject({ 'servers.web': 'unmanaged_resources' });
    const [theirs] = project(played).servers;
    await played.clock.run(played.engine.ignore(load(spec(2)), [String(theirs?.id)]));
    expect((await played.apply(spec(2))).outcome).toBe('converged');
  });

  test('an old copy, put back in time, finds under its keys what was bought since', async () => {
    const played = rig();
    await played.apply(`${head}networks:\n  spare: {cidr: 10.1.0.0/24}\n`);
    const old = await copied(played);
    const spec = `${head}${web}ips:\n  spare: {}\nnetworks:\n  spare: {cidr: 10.1.0.0/24}\n  more: {cidr: 10.2.0.0/24}\n`;
    await played.apply(spec);
    const before = count(played);
    played.restart(old);

    const report = await played.apply(spec);

    expect([report.outcome, report.blocked]).toEqual(['converged', []]);
    expect(count(played)).toEqual(before);
  });

  test('an old copy, put back after the keys have gone: nothing is bought twice, and it says whose', async () => {
    const played = rig();
    await played.apply(head);
    const old = await copied(played);
    const spec = `${head}${web}ips:\n  spare: {}\n`;
    await played.apply(spec);
    await played.clock.advance(25 * hour);
    played.restart(old);

    const report = await played.apply(spec);

    expect(count(played)).toEqual([1, 2]);
    expect(codes(report.plan)).toEqual({
      'ips.spare': 'unmanaged_resources',
      'servers.web': 'unmanaged_resources',
    });
    const [spare, server] = report.blocked;
    expect(resolveOf(server)).toContain('vdcsync adopt servers.web 2001');
    expect(resolveOf(spare), 'two would do').toContain(
      'vdcsync adopt ips.spare ID (if ips.spare already exists: ID is its id or the address)',
    );
    const adopt = (key: string, id: string) =>
      played.clock.run(played.engine.adopt(load(spec), key as ResourceKey, id));
    await adopt('servers.web', '2001');
    const free = project(played).ips.find(({ serverId }) => serverId === null);
    await adopt('ips.spare', String(free?.id));
    expect((await played.apply(spec)).outcome).toBe('converged');
    expect(count(played)).toEqual([1, 2]);
    const { warnings, summary } = await played.plan(spec);
    expect([warnings, summary.unseen]).toEqual([[], 1]);
  });

  test.each([
    '{ip: spare}',
    '{reuse: true}',
  ])('a server that is adopted first may hold the address of an entry: it is not bought again (%s)', async (how) => {
    const played = rig();
    const spec = `${head}${web.replace('{new: true}', how)}ips:\n  spare: {}\n`;
    await played.apply(spec);
    await played.clock.advance(25 * hour);
    played.restart(state(played, 'new'));
    const adopt = (key: string, id: string) =>
      played.clock.run(played.engine.adopt(load(spec), key as ResourceKey, id));
    await adopt('servers.web', '2001');

    const report = await played.apply(spec);

    expect(count(played)).toEqual([1, 1]);
    expect(codes(report.plan)).toEqual({ 'ips.spare': 'unmanaged_resources' });
    expect(resolveOf(report.blocked[0])).toContain('vdcsync adopt ips.spare 5001');
    await adopt('ips.spare', '5001');
    expect((await played.apply(spec)).outcome).toBe('converged');
    expect(count(played)).toEqual([1, 1]);
  });

  test('what a server of this state was given with `{reuse: true}` is its own, and in the way of no entry', async () => {
    const played = rig();
    const spec = `${head}${web.replace('{new: true}', '{reuse: true}')}`;
    await played.apply(spec);

    const report = await played.apply(`${spec}ips:\n  spare: {}\n`);

    expect([report.outcome, count(played)]).toEqual(['converged', [1, 2]]);
  });

  test('nor where its entry names an address from now on: no address is bought that the server cannot take', async () => {
    const played = rig();
    const made = web.replace('{new: true}', '{reuse: true}');
    await played.apply(head + made);

    const report = await played.apply(
      `${head}ips:\n  spare: {}\n${made.replace('{reuse: true}', '{ip: spare}')}`,
    );

    // Its old address is free only after the new server has the named one.
    expect(codes(report.plan)).toEqual({});
    expect(count(played)).toEqual([1, 2]);
  });

  test('an old copy, and the id of its address stands for what another entry has bought since', async () => {
    const played = rig({ emulator: { readings: { reuseIds: true } } });
    await played.apply(`${head}ips:\n  first: {}\n`);
    const old = await copied(played);
    await played.apply(head);
    Object.assign(played.emulator.world.nextId, { ip: 5001 });
    const spec = `${head}ips:\n  first: {}\n  second: {}\n`;
    await played.apply(spec.replace('  first: {}\n', ''));
    await played.clock.advance(25 * hour);
    played.restart(old);

    const report = await played.apply(spec);

    const [bought] = project(played).ips;
    expect([bought?.id, count(played)]).toEqual([5001, [0, 1]]);
    expect(codes(report.plan)).toEqual({
      'ips.first': 'identity_changed',
      'ips.second': 'unmanaged_resources',
    });
    const adopted = await played.clock.run(
      played.engine.adopt(load(spec), 'ips.second' as ResourceKey, '5001'),
    );
    expect(saidBy(adopted)).toContain('ips.second is bound to 5001');
    expect((await played.apply(spec)).outcome).toBe('converged');
    expect(count(played)).toEqual([0, 2]);
  });

  test('an old copy within the day, and the key of the first choice was free', async () => {
    const played = rig();
    await played.apply(head);
    const old = await copied(played);
    const gpu = `${head}servers:\n  gpu: {server_type: gpu-fixed, image: ubuntu-24.04, gpu_package: [l40s-2, l40s-1], public_ipv4: {new: true}}\n`;
    played.emulator.mutate({ do: 'set_capacity', package: 'l40s-2', capacity: 0 });
    await played.apply(gpu);
    played.emulator.mutate({ do: 'set_capacity', package: 'l40s-2', capacity: 9 });
    played.restart(old);

    const report = await played.apply(gpu);

    expect(count(played)).toEqual([1, 1]);
    expect(codes(report.plan)).toEqual({ 'servers.gpu': 'unmanaged_resources' });
  });

  test('a second state: what the first one has replaced is not made a third time', async () => {
    const played = rig();
    await played.apply(head + web);
    const laptop = state(played, 'laptop');
    played.restart(laptop);
    await played.clock.run(played.engine.adopt(load(head + web), 'servers.web' as ResourceKey, '2001'));
    await played.apply(head + web);
    const larger = (head + web).replace('cores: 1', 'cores: 2');
    played.restart();
    await played.apply(larger);
    await played.clock.advance(25 * hour);
    played.restart(laptop);

    const report = await played.apply(larger);

    expect(count(played)).toEqual([1, 1]);
    expect(report.blocked).toMatchObject([
      {
        key: 'servers.web',
        code: 'unmanaged_resources',
        remedies: resolving(expect.stringContaining('2002')),
      },
    ]);
  });
});

describe('src/engine/claims: what another copy of the state buys', () => {
  test('while the plan waits for its approval is not bought again', async () => {
    const played = rig();
    await played.apply(head);

    const report = await boughtWhileAsked(played, load(head + web));

    expect(count(played)).toEqual([1, 1]);
    expect(codes(report.plan)).toMatchObject({ 'servers.web': 'unmanaged_resources' });
  });

  const isolated = `networks:\n  a: {cidr: 10.1.0.0/24}\nservers:\n  db: {${size}, network_interfaces: [a]}\n`;

  test('while the plan waits, and its list shows, is not bought again', async () => {
    const operations = 'operations: {list_servers: {}}';
    const profile = loadProfile(operations, 'profile');
    const played = rig({ profile, emulator: { profile: emulatorProfile(operations) } });
    const network = head + isolated.slice(0, isolated.indexOf('servers'));
    await played.apply(network);

    const report = await boughtWhileAsked(played, load(head + isolated));

    expect(count(played)).toEqual([1, 0]);
    expect(codes(report.plan)['servers.db']).toBe('unmanaged_resources');
  });

  test('while a purchase waits for capacity is not bought again', async () => {
    const played = rig();
    await played.apply(head);
    const laptop = played.engine;
    const ci = await copied(played);
    const gpu =
      'servers:\n  gpu: {server_type: gpu-fixed, gpu_package: l40s-1, image: ubuntu-24.04, public_ipv4: {new: true}}\n';
    const capacity = (free: number) =>
      played.emulator.mutate({ do: 'set_capacity', package: 'l40s-1', capacity: free });
    capacity(0);
    const halt = new AbortController();
    void played.clock.sleep(hour / 6).then(() => halt.abort(new Error('interrupted')));
    await played.apply(head + gpu, { halt: halt.signal });
    // The edit ends the attempt that waits, so that the next one has another key than the other copy's first.
    const edited = load(head + gpu.replace('public_ipv4', 'keep_ip: true, public_ipv4'));
    const other = played.restart(ci);

    const [report] = await played.clock.run(
      Promise.all([
        laptop.apply(edited, { approve: async () => true }),
        played.clock.sleep(2 * hour).then(() => {
          capacity(2);
          return other.apply(edited, { approve: async () => true });
        }),
      ]),
    );

    expect(count(played)).toEqual([1, 1]);
    expect(codes(report.plan)).toEqual({ 'servers.gpu': 'unmanaged_resources' });
  });

  test('under the id of an ignored object is not bought again', async () => {
    const played = rig({ emulator: { readings: { reuseIds: true } } });
    played.emulator.mutate({ do: 'add_ip' });
    played.emulator.mutate({ do: 'add_server', name: 'theirs', public: true });
    await played.clock.run(played.engine.ignore(load(head), ['2001', '203.0.113.10']));
    await played.apply(head);
    const laptop = await copied(played);
    played.emulator.mutate({ do: 'delete_server', id: 2001 });
    const { nextId } = played.emulator.world as { nextId: { server: number } };
    nextId.server = 2001;
    await played.apply(head + web);
    expect(project(played).servers.map(({ id }) => Number(id))).toEqual([2001]);
    await played.clock.advance(25 * hour);
    played.restart(laptop);

    const report = await played.apply(head + web);

    expect(project(played).servers).toHaveLength(1);
    expect(codes(report.plan)).toMatchObject({ 'servers.web': 'unmanaged_resources' });
  });
});

describe('src/engine/claims: a lost state', () => {
  test('each entry is offered only what it can stand for, and nothing is offered twice', async () => {
    const played = rig();
    const spec = `${head}ips:\n  www: {}\nservers:\n  a: {${size}, public_ipv4: {ip: www}}\n  b: {${size}}\n`;
    await played.apply(spec);
    played.restart(state(played, 'another'));

    const { blocked } = await played.plan(spec);

    const [server] = project(played).servers.filter(({ name }) => name === 'a');
    expect(blocked.map((each) => [each.key, /vdcsync adopt \S+ \S+/.exec(resolveOf(each))?.[0]])).toEqual([
      ['ips.www', 'vdcsync adopt ips.www 5001'],
      ['servers.a', `vdcsync adopt servers.a ${server?.id}`],
      ['servers.b', 'vdcsync adopt servers.b ID'],
    ]);
    expect(resolveOf(blocked[0])).toContain(`is address ${project(played).ips[0]?.address} `);
    expect(blocked[2]?.reason).toContain('servers without a public address');
  });

  test('a lost state does not buy a server again of which only a network tells', async () => {
    const played = rig();
    const inside = `networks:\n  a: {cidr: 10.1.0.0/24}\nservers:\n  db: {${size}, network_interfaces: [a]}\n`;
    await played.apply(head + inside);
    await played.clock.advance(25 * hour);
    played.restart(state(played, 'new'));
    await played.clock.run(played.engine.adopt(load(inside), 'networks.a' as ResourceKey, '32'));

    const report = await played.apply(head + inside);

    expect(codes(report.plan)['servers.db']).toBe('unlisted_servers');
    await played.clock.run(played.engine.adopt(load(inside), 'servers.db' as ResourceKey, '2001'));
    expect((await played.apply(head + inside)).outcome).toBe('converged');
    expect(count(played)).toEqual([1, 0]);
  });
});

describe('src/engine/run/recover.ts: a copy with an open creation whose entry has left the spec', () => {
  test('the next incarnation of its key is asked, and the server that was bought later is named', async () => {
    const played = rig();
    const bare = `${head}servers:\n  web: {${size}}\n`;
    await played.apply(head);
    const halt = new AbortController();
    played.emulator.setFaults([
      faultRule({ path: 'create_server', nth: 1 }, { do: 'reset', effect: 'done' }),
    ]);
    void played.clock.sleep(5_000).then(() => halt.abort(new Error('halted')));
    await played.apply(bare, { halt: halt.signal });
    const copy = await copied(played);
    for (const intent of await played.store.openIntents()) await copy.beginIntent(intent);
    for (const spec of [bare, head, bare]) await played.apply(spec);
    expect(project(played).servers.map(({ id }) => id)).toEqual([2002]);
    played.restart(copy);

    const report = await played.apply(head);

    expect(report.plan.warnings).toMatchObject([
      { code: 'unmanaged_resources', message: expect.stringContaining('server 2002') },
    ]);
    const sent = played.writes().length;
    await played.apply(head);
    expect(played.writes()).toHaveLength(sent);
  });
});
