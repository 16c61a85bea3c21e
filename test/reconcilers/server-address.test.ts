import { describe, expect, test } from 'vitest';
import { loadPrices } from '../../src/cli/settings/profile.ts';
import { documentedProfile } from '../../src/core/profile.ts';
import { loadProfile } from '../../src/emulator/profile.ts';
import { resolveOf, resolving } from '../support/resolve.ts';
import { load, rig } from '../support/rig.ts';
import { added, codesOf, countOf, idsOf, projectOf, sliders, warningsOf } from './support.ts';

/** Which address each server holds, by their names in the spec. */
function holders(emulator: ReturnType<typeof rig>['emulator']) {
  const { servers, ips } = projectOf(emulator);
  return Object.fromEntries(
    servers.map(({ id, name }) => [name, ips.filter(({ serverId }) => serverId === id).map((ip) => ip.id)]),
  );
}

async function boundTo(world: ReturnType<typeof rig>, key: string): Promise<number> {
  const bindings = await world.store.bindings();
  return Number(bindings.find((each) => each.key === key)?.id);
}

describe('src/reconcilers/server/address.ts', () => {
  test('a server waits while its address is blocked, because a free address may be that address', async () => {
    const { plan, emulator, engine, clock } = rig();
    const id = added(emulator, { do: 'add_ip' });
    const spec = `ips: {web: {}}\nservers: {one: {${sliders}, public_ipv4: {ip: web}}}\n`;

    const { blocked } = await plan(spec);
    expect(blocked).toMatchObject([
      { key: 'ips.web', code: 'unmanaged_resources' },
      { key: 'servers.one', code: 'dependency_blocked', remedies: resolving('resolve ips.web first') },
    ]);
    await clock.run(engine.adopt(load(spec), 'ips.web' as never, String(id)));
    expect(codesOf(await plan(spec))).toEqual({});
  });

  test('a free address of the spec is claimed before other addresses are allocated', async () => {
    const world = rig();
    await world.apply('ips: {z: {}}\n');
    const text = `ips: {a: {}, z: {}}
servers:
  one: {${sliders}, public_ipv4: {ip: a}}
  two: {${sliders}, public_ipv4: {ip: z}}
`;
    const report = await world.apply(text);

    expect(report.outcome).toBe('converged');
    expect(report.results.map(({ outcome }) => outcome)).toEqual(['done', 'done', 'done']);
    expect(holders(world.emulator)).toEqual({
      one: [await boundTo(world, 'ips.a')],
      two: [await boundTo(world, 'ips.z')],
    });
  });

  describe('a replacement that gets an address, next to the address that the old server frees', () => {
    const text = (address: string, ips: string) =>
      `settings: {prune: true}\nips: {${ips}}\nservers: {one: {${sliders}, replace: {order: delete_first}, keep_ip: true, public_ipv4: ${address}}}\n`;

    test.each([
      ['an address that the spec keeps', '{new: true}', 'b: {}', 'b: {}'],
      ['another entry of the spec', '{ip: a}', 'a: {}', 'a: {}, b: {}'],
    ])('%s: nothing is deleted, and each remedy in the message works', async (_case, address, ips, more) => {
      const world = rig();
      await world.apply(text(address, ips));
      const next = text('{ip: b}', more);

      const planned = await world.plan(next);
      const report = await world.apply(next);

      expect(codesOf(planned)).toMatchObject({ 'servers.one': 'address_not_the_only_free_one' });
      expect(planned.blocked.at(-1)?.reason).toContain('once the old server is deleted');
      expect(planned.blocked.at(-1)?.remedies[0]).toMatchObject({ when: 'to keep it unchanged' });
      expect(report.outcome).toBe('blocked');
      expect(countOf(world.emulator, 'delete_server')).toBe(0);
      const out = more.includes('a:') ? text('{ip: b}', 'b: {}') : text('{reuse: true}', more);
      expect((await world.apply(out)).outcome).toBe('converged');
      expect((await world.plan(out)).operations).toEqual([]);
    });
  });

  test('each server that leaves the spec is deleted directly before the server that gets its address', async () => {
    const world = rig();
    const text = (...names: readonly string[]) =>
      `settings: {prune: true, max_deletions: 10}\nips: {a: {}, b: {}}\nservers:\n${names
        .map((name, at) => `  ${name}: {${sliders}, public_ipv4: {ip: ${'ab'[at]}}}\n`)
        .join('')}`;
    await world.apply(text('one', 'two'));
    const next = text('three', 'four');
    const addresses = await Promise.all(['ips.a', 'ips.b'].map((each) => boundTo(world, each)));

    const planned = await world.plan(next);
    expect([(await world.apply(next)).outcome, planned.blocked]).toEqual(['converged', []]);

    expect(planned.operations.flatMap(({ verb, key }) => (verb === 'delete' ? [key] : []))).toHaveLength(2);
    const writes = world.writes().slice(-4);
    expect(writes.map(({ method }) => method)).toEqual(['DELETE', 'POST', 'DELETE', 'POST']);
    expect(holders(world.emulator)).toEqual({ three: [addresses[0]], four: [addresses[1]] });
  });

  test('a server that needs the address of a server that leaves the spec waits for its deletion', async () => {
    const world = rig();
    const text = (servers: string) =>
      `settings: {prune: true, max_deletions: 9}\nips: {a: {}}\nservers: {${servers}}\n`;
    const two = (address: string) => `two: {${sliders}, replace: allowed, public_ipv4: ${address}}`;
    await world.apply(text(`one: {${sliders}, public_ipv4: {ip: a}}, ${two('{new: true}')}`));

    const planned = await world.plan(text(two('{ip: a}')));

    expect(planned.operations.map(({ id }) => id)).toEqual(['delete:servers.one']);
    expect(codesOf(planned)).toEqual({ 'servers.two': 'dependency_blocked' });
  });

  test.each([
    ['that is protected', ', protect: true', 'prune: true'],
    ['without `prune`', '', 'prune: false'],
  ])('the address of a server that leaves the spec %s: no server is created', async (_case, more, settings) => {
    const world = rig();
    const text = (server: string) =>
      `settings: {${settings}}\nips: {a: {}}\nservers: {${server}: {${sliders}, public_ipv4: {ip: a}${more}}}\n`;
    await world.apply(text('one'));

    const report = await world.apply(text('two'));

    expect(codesOf(await world.plan(text('two')))).toMatchObject({ 'servers.two': 'address_in_use' });
    expect([report.outcome, holders(world.emulator)]).toMatchObject([
      'blocked',
      { one: [expect.anything()] },
    ]);
  });

  test('servers exchange addresses in a circle: one message names all edits, and the edits work', async () => {
    const world = rig();
    const text = (of: readonly string[], more = '') =>
      `ips: {a: {}, b: {}, c: {}}\nservers:\n${of
        .map((address, at) => `  s${at}: {${sliders}${more}, public_ipv4: ${address}}\n`)
        .join('')}`;
    await world.apply(text(['{ip: a}', '{ip: b}', '{ip: c}'], ', protect: true'));
    const others = ['{ip: c}', '{ip: a}'];
    const wish = ['{ip: b}', ...others];

    const planned = await world.plan(text(wish, ', protect: true'));

    expect(codesOf(planned)).toEqual({
      'servers.s0': 'address_in_use',
      'servers.s1': 'dependency_blocked',
      'servers.s2': 'dependency_blocked',
    });
    expect(resolveOf(planned.blocked[0]).split(' | ')).toEqual([
      'exchange the addresses of servers.s0 and servers.s1 and servers.s2 in the client area (to keep the servers)',
      'write `public_ipv4: {new: true}` and `protect: false` and `replace: allowed` in servers.s0; then write `protect: false` and `replace: allowed` in servers.s1; then write `protect: false` and `replace: allowed` in servers.s2; then run `vdcsync apply` until it converges; then write `public_ipv4: {ip: b}` in servers.s0; then vdcsync apply (to replace the servers, and lose the data on their disks)',
    ]);
    const free = text(['{new: true}', ...others], ', replace: allowed');
    for (let at = 0; at < 3; at += 1) await world.apply(free);
    expect((await world.apply(text(wish, ', replace: allowed'))).outcome).toBe('converged');
    expect(holders(world.emulator)).toEqual({
      s0: [await boundTo(world, 'ips.b')],
      s1: [await boundTo(world, 'ips.c')],
      s2: [await boundTo(world, 'ips.a')],
    });
    expect(projectOf(world.emulator).ips).toHaveLength(3);
  });

  test.each([
    'taskDone',
    'accepted',
  ] as const)('a replaced server gets no address from a server that takes any free one (detached: %s)', async (detachAt) => {
    const world = rig({ emulator: { readings: { detachAt } } });
    const file = (cores: number, more: string, added = '') =>
      `settings: {prune: true, max_deletions: 10}\nservers:\n  a: {${sliders}, replace: {order: delete_first}${more}}\n  b: {${sliders.replace('cores: 1', `cores: ${cores}`)}, replace: {order: delete_first}, public_ipv4: {new: true}}\n${added}`;
    await world.apply(file(1, ''));
    const next = file(2, ', public_ipv4: {reuse: true}', `  c: {${sliders}, public_ipv4: {reuse: true}}\n`);

    const planned = await world.plan(next);
    const report = await world.apply(next);

    const ids = idsOf(planned);
    const released = ids.indexOf('delete:servers.b.public_ipv4');
    expect(ids.indexOf('create:servers.a')).toBeGreaterThan(released);
    expect(ids.indexOf('create:servers.c')).toBeGreaterThan(released);
    expect([report.outcome, report.blocked]).toEqual(['converged', []]);
    expect(Object.keys(holders(world.emulator)).sort()).toEqual(['a', 'b', 'c']);
  });

  test('an address that leaves the spec is released before another is taken, and the plan counts that one', async () => {
    const world = rig({
      profile: { ...documentedProfile, prices: loadPrices('currency: EUR\naddress: 3.00\n', 'prices') },
    });
    await world.apply('ips: {x: {}}\n');
    const next = `settings: {prune: true}\nservers: {new: {${sliders}, public_ipv4: {reuse: true}}}\n`;

    const planned = await world.plan(next);
    const report = await world.apply(next);

    expect(idsOf(planned)).toEqual(['delete:ips.x', 'create:servers.new']);
    // Three for the one that is bought, and three less for the one that goes.
    expect(planned.cost.known_monthly_delta).toBe('0.00');
    expect(report.outcome).toBe('converged');
    expect(holders(world.emulator)).toEqual({ new: [5002] });
  });

  test('a former address is claimed before the deletion of a server that holds a deleted address', async () => {
    const world = rig();
    const both = `settings: {exclusive: true}\nips: {x: {}}\nservers: {gone: {${sliders}, public_ipv4: {ip: x}}, stays: {${sliders}, public_ipv4: {reuse: true}}}\n`;
    await world.apply(both);
    const { id } = projectOf(world.emulator).servers.find(({ name }) => name === 'stays') ?? {};
    const former = holders(world.emulator).stays;
    world.emulator.mutate({ do: 'delete_server', id: Number(id) });
    const left = `settings: {exclusive: true, prune: true}\nservers: {stays: {${sliders}, public_ipv4: {reuse: true}}}\n`;

    const planned = await world.plan(left);
    const report = await world.apply(left);

    expect(idsOf(planned)).toEqual(['create:servers.stays', 'delete:servers.gone', 'delete:ips.x']);
    expect(report.outcome).toBe('converged');
    expect(holders(world.emulator)).toEqual({ stays: former });
  });

  test('a server whose address another program has deleted differs from its entry', async () => {
    const world = rig();
    const text = `servers: {web: {${sliders}, public_ipv4: {new: true}}}\n`;
    await world.apply(text);
    world.emulator.mutate({ do: 'delete_ip', id: 5001 });
    await world.apply(text);

    expect((await world.plan(text)).warnings).toMatchObject([
      { key: 'servers.web', code: 'server_differs', message: expect.stringContaining('no address') },
    ]);
  });

  test.each([
    ['any', []],
    [
      'same',
      [
        ['servers.ai', 'server_differs'],
        ['servers.ai', 'address_not_as_declared'],
      ],
    ],
  ] as const)('an address of a pool that does not serve the type (reuse takes: %s)', async (reusePool, told) => {
    const world = rig({ emulator: { readings: { reusePool } } });
    const text = `ips: {web: {server_type_id: 3}}\nservers: {ai: {server_type: gpu-fixed, image: debian-13, gpu_package: l40s-1, public_ipv4: {ip: web}}}\n`;

    const report = await world.apply(text);

    expect(report.outcome).toBe('converged');
    expect(report.plan.warnings.map(({ key, code }) => [key, code])).toEqual(told);
    const taken = holders(world.emulator).ai?.[0] === (await boundTo(world, 'ips.web'));
    expect(taken).toBe(reusePool === 'any');
  });

  const gpu = 'server_type: gpu-fixed, image: debian-13, gpu_package: l40s-1';
  test.each([
    ['{}', sliders, []],
    ['{server_type_id: 3}', sliders, []],
    ['{server_type_id: 8}', gpu, []],
    ['{server_type_id: 8}', sliders, ['servers.one']],
    ['{}', gpu, ['servers.one']],
    ['{server_type_id: 3}', gpu, ['servers.one']],
  ])('an address of %s for a server of %s: the plan warns if no read shows that the pool serves the type', async (address, type, told) => {
    const { warnings } = await rig().plan(
      `ips: {web: ${address}}\nservers: {one: {${type}, public_ipv4: {ip: web}}}\n`,
    );

    const unchecked = warnings.filter(({ code }) => code === 'address_pool_unchecked');
    expect(unchecked.map(({ key }) => key)).toEqual(told);
    for (const { message } of unchecked)
      expect(message).toContain(type === gpu ? '`server_type_id: 8`' : '`server_type_id: 3`');
  });

  test('a replacement with the same type and address has no unchecked pool, another type has', async () => {
    const { apply, plan } = rig();
    const file = (type: string) =>
      `ips: {web: {}}\nservers: {one: {${type}, replace: {order: delete_first}, public_ipv4: {ip: web}}}\n`;
    await apply(file(sliders));

    const told = async (type: string) =>
      warningsOf(await plan(file(type))).filter((code) => code === 'address_pool_unchecked');

    expect(await told(sliders.replace('cores: 1', 'cores: 2'))).toEqual([]);
    expect(await told(gpu)).toEqual(['address_pool_unchecked']);
  });

  test('with named_address in the profile, only a server with any address waits', async () => {
    const operations = { named_address: { body: { ip_id: '{ip_id}' } } };
    const world = rig({
      profile: { ...documentedProfile, operations },
      emulator: { profile: loadProfile(JSON.stringify({ operations })) },
    });
    const text = `ips: {a: {}, b: {}, spare: {}}
servers:
  one: {${sliders}, public_ipv4: {ip: b}}
  two: {${sliders}, public_ipv4: {ip: a}}
  any: {${sliders}, public_ipv4: {reuse: true}}
`;
    const needs = (await world.plan(text)).operations.flatMap((each) =>
      each.kind === 'server' ? [each.needs] : [],
    );
    const report = await world.apply(text);

    expect(needs).toEqual([['create:ips.a'], ['create:ips.b'], ['create:servers.one', 'create:servers.two']]);
    expect(report.outcome).toBe('converged');
    expect(holders(world.emulator)).toEqual({
      one: [await boundTo(world, 'ips.b')],
      two: [await boundTo(world, 'ips.a')],
      any: [await boundTo(world, 'ips.spare')],
    });
  });

  test('an adopted server that holds the named address needs no change', async () => {
    const world = rig();
    const id = added(world.emulator, { do: 'add_server', name: 'web' });
    const ip = projectOf(world.emulator).ips[0]?.id;
    await world.apply(`ips: {web: {id: ${ip}}}\nservers: {one: {id: ${id}}}\n`);

    const planned = await world.plan(
      `ips: {web: {id: ${ip}}}\nservers: {one: {id: ${id}, public_ipv4: {ip: web}}}\n`,
    );

    expect([planned.operations, planned.blocked, planned.warnings]).toEqual([[], [], []]);
  });

  test('a server with an exchanged address gets the new address bound, and the old one is reported', async () => {
    const world = rig();
    const spec = `servers: {one: {${sliders}, public_ipv4: {new: true}, keep_ip: true}}\n`;
    await world.apply(spec);
    const [old] = projectOf(world.emulator).ips;
    Object.assign(old ?? {}, { serverId: null });
    const added = world.emulator.mutate({ do: 'add_ip' }) as { id: number };
    const taken = projectOf(world.emulator).ips.find(({ id }) => id === added.id);
    Object.assign(taken ?? {}, { serverId: 2001 });
    await world.clock.run(world.engine.adopt(load(spec), 'servers.one' as never, '2001'));

    const report = await world.apply(spec);

    expect(report.outcome).toBe('converged');
    expect(await boundTo(world, 'servers.one.public_ipv4')).toBe(added.id);
    expect(report.plan.cost.left_billed.join()).toContain(old?.address);
    expect((await world.plan(spec)).operations).toEqual([]);
  });
});
