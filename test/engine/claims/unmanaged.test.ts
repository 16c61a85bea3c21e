import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../../src/cli/settings/profile.ts';
import type { Ip } from '../../../src/core/resources.ts';
import { loadProfile as emulatorProfile } from '../../../src/emulator/profile.ts';
import { viewOf } from '../../../src/view/build.ts';
import { resolving, saidBy } from '../../support/resolve.ts';
import { load, type Rig, type RigOptions, rig } from '../../support/rig.ts';
import { codes, count, head, project, web } from './one-server.ts';

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
});
