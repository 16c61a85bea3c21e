import { describe, expect, test } from 'vitest';
import type { Ip } from '../../../src/core/resources.ts';
import { viewOf } from '../../../src/view/build.ts';
import { applied, type Rig } from '../../support/rig.ts';
import { head, web } from './one-server.ts';

/** How many addresses are told as billed and of no use. */
async function idle(played: Rig) {
  const ips = played.project.ips.map(({ id, address, serverId }) => ({ id, address, server_id: serverId }));
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

describe('src/engine/claims/claims.ts: resources that other clients create', () => {
  test('an unmanaged server that took an address of the spec is ignored, and the address is not', async () => {
    const spec = `${head}ips:\n  x: {}\n`;
    const played = await applied(spec);
    const { id } = played.emulator.mutate({ do: 'add_server', name: 'theirs', public: false }) as {
      id: number;
    };
    const [taken] = played.project.ips;
    Object.assign(taken ?? {}, { serverId: id });
    await played.clock.advance(120_000);

    await played.ignore(spec, String(id));
    expect((await played.plan(spec)).warnings.map(({ code }) => code)).not.toContain('unmanaged_resources');
    expect(await ignored(played)).toEqual([[id], []]);
    played.emulator.mutate({ do: 'delete_server', id });

    expect(await idle(played)).toBe(1);
  });

  test('only an existing resource outside the spec can be ignored', async () => {
    const played = await applied(head + web);
    const ignore = (name: string) => played.ignore(head + web, name);

    await expect(ignore('2001')).rejects.toThrow('Server 2001 is bound to servers.web');
    await expect(ignore('2999')).rejects.toThrow('no server 2999');
    await expect(ignore('203.0.113.250')).rejects.toThrow('no address 203.0.113.250');
  });
});
