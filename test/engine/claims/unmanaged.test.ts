import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../../src/cli/settings/profile.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Ip } from '../../../src/core/resources.ts';
import { loadProfile as emulatorProfile } from '../../../src/emulator/profile.ts';
import { viewOf } from '../../../src/view/build.ts';
import { resolveOf, resolving, saidBy } from '../../support/resolve.ts';
import { load, type Rig, type RigOptions, rig } from '../../support/rig.ts';
import { codes, count, head, project, size, state, web } from './one-server.ts';

const hour = 3_600_000;

/** How many addresses are told as billed and of no use. */
async function idle(played: Rig) {
  const ips = project(played).ips.map(({ id, address, serverId }) => ({ id, address, server_id: serverId }));
  const { store } = played;
  const known = {
    now: 0,
    bindings: await store.bindings(),
    claims: await store.claims(),
    intents: await store.openIntents(),
  };
  const world = { ips: ips as unknown as Ip[], networks: [], observed: new Map() };
  return viewOf({ id: 4711, known, world }).idle?.length;
}

/** Servers, and addresses with their ids, that are ignored or released. */
async function ignored({ store }: Rig) {
  const claims = (await store.claims()).filter(({ holder }) => ['ignored', 'released'].includes(holder.is));
  const of = (sort: string) => claims.filter(({ kind }) => kind === sort);
  return [
    of('server').map(({ id }) => Number(id)),
    of('ip').map(({ id, identity }) => `${id} ${identity.address}`),
  ];
}

describe('src/engine/claims/claims.ts: what somebody else makes', () => {
  test('later than this state is told, and creation goes on once it is said to be theirs', async () => {
    const played = rig();
    await played.apply(head);
    played.emulator.mutate({ do: 'add_server', name: 'theirs', public: true });
    const [address] = project(played).ips;

    expect((await played.plan(head)).warnings).toMatchObject([
      { code: 'unmanaged_resources', remedies: resolving(expect.stringContaining('vdcsync ignore 2001')) },
    ]);
    expect(codes(await played.plan(head + web))).toEqual({ 'servers.web': 'unmanaged_resources' });
    const said = await played.clock.run(played.engine.ignore(load(head + web), ['2001']));

    expect(saidBy(said)).toContain(`Server 2001 (${address?.address})`);
    const report = await played.apply(head + web);
    expect(report.outcome).toBe('converged');
    expect(report.plan.warnings).toEqual([]);
    expect(count(played)).toEqual([2, 2]);
  });

  test('is idle and told as such, until somebody says that it is theirs, or lets go of it again', async () => {
    const played = rig();
    await played.apply(head);
    played.emulator.mutate({ do: 'add_ip' });
    const [free] = project(played).ips;
    const spec = `${head}ips:\n  one: {}\n`;

    expect(await idle(played)).toBe(1);

    await played.clock.run(played.engine.ignore(load(head), [free?.address ?? '']));
    expect(await idle(played)).toBe(0);

    await played.clock.run(played.engine.adopt(load(spec), 'ips.one' as ResourceKey, '5001'));
    await played.clock.run(played.engine.forget(load(head), 'ips.one' as ResourceKey));
    expect(await idle(played)).toBe(1);

    await played.clock.run(played.engine.ignore(load(head), [free?.address ?? '']));
    expect(await idle(played)).toBe(0);
  });

  test('and leaves behind, as an address of theirs, stays known', async () => {
    const played = rig();
    await played.apply(head);
    played.emulator.mutate({ do: 'add_server', name: 'theirs', public: true });
    await played.clock.run(played.engine.ignore(load(head), ['2001']));
    played.emulator.mutate({ do: 'delete_server', id: 2001 });

    expect((await played.plan(`${head}ips:\n  one: {}\n`)).blocked).toEqual([]);
    expect([project(played).ips.length, await idle(played)]).toEqual([1, 0]);
  });

  test('and is ignored stays so when its address is exchanged for another one', async () => {
    const played = rig();
    await played.apply(head);
    played.emulator.mutate({ do: 'add_server', name: 'theirs', public: true });
    await played.clock.run(played.engine.ignore(load(head), ['2001']));
    const [first] = project(played).ips;
    const next = played.emulator.mutate({ do: 'add_ip' }) as { readonly id: number };
    Object.assign(project(played).ips.find(({ id }) => id === next.id) ?? {}, { serverId: 2001 });
    await played.clock.advance(120_000);
    await played.apply(head);

    Object.assign(first ?? {}, { serverId: null });
    played.emulator.mutate({ do: 'delete_ip', id: first?.id ?? 0 });
    await played.clock.advance(120_000);

    expect((await played.plan(head + web)).blocked).toEqual([]);
  });

  test('`unmanaged: ignore` ignores what is there, and no longer once it is taken out', async () => {
    const played = rig();
    played.emulator.mutate({ do: 'add_server', name: 'theirs', public: true });
    const ignoring = 'settings: {unmanaged: ignore}\n';
    await played.apply(ignoring);
    expect((await played.plan(head + web)).blocked).toEqual([]);

    played.emulator.mutate({ do: 'add_server', name: 'later', public: true });

    expect((await played.plan(ignoring + web)).blocked).toEqual([]);
    expect(codes(await played.plan(head + web))).toEqual({ 'servers.web': 'unmanaged_resources' });
  });

  test("a server of theirs that took an address of this spec's is ignored, and the address is not", async () => {
    const played = rig();
    const spec = `${head}ips:\n  x: {}\n`;
    await played.apply(spec);
    const { id } = played.emulator.mutate({ do: 'add_server', name: 'theirs', public: false }) as {
      id: number;
    };
    const [taken] = project(played).ips;
    Object.assign(taken ?? {}, { serverId: id });
    await played.clock.advance(120_000);

    await played.clock.run(played.engine.ignore(load(spec), [String(id)]));
    expect((await played.plan(spec)).warnings.map(({ code }) => code)).not.toContain('unmanaged_resources');
    expect(await ignored(played)).toEqual([[id], []]);
    played.emulator.mutate({ do: 'delete_server', id });

    expect(await idle(played)).toBe(1);
  });

  test('only what is there and not of this spec can be ignored', async () => {
    const played = rig();
    await played.apply(head + web);
    const ignore = (name: string) => played.clock.run(played.engine.ignore(load(head + web), [name]));

    await expect(ignore('2001')).rejects.toThrow('Server 2001 is bound to servers.web');
    await expect(ignore('2999')).rejects.toThrow('no server 2999');
    await expect(ignore('203.0.113.250')).rejects.toThrow('no address 203.0.113.250');
  });
});

describe('src/plan/purchases.ts: a server of which only a network tells', () => {
  const inside = `networks:\n  a: {cidr: 10.1.0.0/24}\nservers:\n  db: {${size}, network_interfaces: [a]}\n`;
  const lost = async (played: Rig) => {
    await played.clock.advance(25 * hour);
    played.restart(state(played, 'lost'));
  };
  const network = (played: Rig) => String(project(played).networks.find(({ name }) => name === 'a')?.id);
  const adopt = (played: Rig, spec: string, key: string, id: string) =>
    played.clock.run(played.engine.adopt(load(spec), key as ResourceKey, id));

  test('is not taken for one that is known and in no network', async () => {
    const played = rig();
    const spec = `${inside}  web: {${size}, public_ipv4: {new: true}}\n`;
    await played.apply(spec);
    const idOf = (name: string) => String(project(played).servers.find((each) => each.name === name)?.id);
    await lost(played);
    await adopt(played, spec, 'networks.a', network(played));
    await adopt(played, spec, 'servers.web', idOf('web'));

    const report = await played.apply(spec);

    expect(codes(report.plan)['servers.db']).toBe('unlisted_servers');
    expect(project(played).servers).toHaveLength(2);
    const more = await played.plan(`${spec}  new: {${size}, public_ipv4: {new: true}}\n`);
    expect(more.blocked.find(({ key }) => key === 'servers.new')?.reason).toContain(
      '1 server without a known address. It may be servers.new. Its address may have been detached',
    );
    await adopt(played, spec, 'servers.db', idOf('db'));
    expect((await played.apply(spec)).outcome).toBe('converged');
    expect(project(played).servers).toHaveLength(2);
  });

  test('is named by the plan of a new state that buys no server', async () => {
    const played = rig();
    await played.apply(inside);
    await lost(played);

    const plan = await played.plan(`${inside.split('servers:')[0]}`);

    expect(plan.warnings.map(({ code }) => code)).toContain('unlisted_servers');
  });

  test('stays in doubt when an operator has spoken of another one, until it is spoken of as well', async () => {
    const played = rig();
    await played.apply(inside);
    played.emulator.mutate({ do: 'add_server', name: 'theirs', public: true });
    await lost(played);
    await adopt(played, inside, 'networks.a', network(played));
    const ignore = (id: string) => played.clock.run(played.engine.ignore(load(inside), [id]));
    await ignore('2002');

    const [blocked] = (await played.apply(inside)).blocked;

    expect(blocked).toMatchObject({ key: 'servers.db', code: 'unlisted_servers' });
    expect(resolveOf(blocked)).toContain('vdcsync ignore ID');
    expect(project(played).servers).toHaveLength(2);
    await ignore('2001');
    expect((await played.apply(inside)).outcome).toBe('converged');
    expect(project(played).servers).toHaveLength(3);
  });
});

describe('src/engine/claims/claims.ts: an ignored object that is gone', () => {
  const theirs = async (more: RigOptions = {}) => {
    const played = rig({ ...more, emulator: { readings: { reuseIds: true }, ...more.emulator } });
    played.emulator.mutate({ do: 'add_server', name: 'theirs', public: true });
    await played.clock.run(played.engine.ignore(load(head), ['2001']));
    await played.apply(head);
    return played;
  };
  const addressless = { profile: loadProfile('operations: {list_servers: {}}', 'profile') };
  const emulator = { profile: emulatorProfile('operations: {list_servers: {}}') };

  test('is known no more after two looks, and what has its id is unmanaged', async () => {
    const played = await theirs({ ...addressless, emulator });
    const [address] = project(played).ips;
    played.emulator.mutate({ do: 'delete_server', id: 2001 });
    played.emulator.mutate({ do: 'delete_ip', id: Number(address?.id) });
    await played.apply(head);
    await played.clock.advance(hour / 2);
    await played.apply(head);
    expect(await ignored(played)).toEqual([[2001], [`5001 ${address?.address}`]]);
    await played.clock.advance(hour);
    await played.apply(head);
    expect(await ignored(played)).toEqual([[], []]);

    const { nextId } = played.emulator.world as { nextId: { server: number } };
    nextId.server = 2001;
    played.emulator.mutate({ do: 'add_server', name: 'copy', public: false });

    expect((await played.plan(head)).warnings.map(({ message }) => message).join()).toContain('server 2001');
  });

  test('stays known as long as a read of its own shows it', async () => {
    const played = await theirs();
    const [address] = project(played).ips;
    played.emulator.mutate({ do: 'delete_ip', id: Number(address?.id) });
    for (let day = 0; day < 3; day++) {
      await played.apply(head);
      await played.clock.advance(2 * hour);
    }

    const [servers] = await ignored(played);

    expect(servers).toEqual([2001]);
  });
});
