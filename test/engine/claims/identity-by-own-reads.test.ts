import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Binding } from '../../../src/core/state.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { applied, load, type Rig, rig, sliders } from '../../support/rig.ts';

const head = 'settings: {prune: true, max_deletions: 10, unmanaged: ignore}\n';
const x = 'ips.x' as ResourceKey;
const web = 'servers.web' as ResourceKey;
const bought = `${head}ips:\n  x: {}\nservers:\n  web: {${sliders}, public_ipv4: {new: true}}\n`;

const endEarly = ({ emulator }: Rig) =>
  emulator.setFaults([faultRule({ path: 'list_ips' }, { do: 'truncate_list', keep: 0 })]);

/** Of what stands under a key. */
async function identityOf({ store }: Rig, key: ResourceKey): Promise<Binding['identity'] | undefined> {
  return (await store.bindings()).find((each) => each.key === key)?.identity;
}

/** All of ours is gone, and its ids belong to unmanaged objects: a server without an address, and a free address. */
async function usedAgain(played: Rig): Promise<void> {
  played.emulator.mutate({ do: 'delete_server', id: 2001 });
  for (const { id } of [...played.project.ips]) played.emulator.mutate({ do: 'delete_ip', id });
  Object.assign(played.emulator.world.nextId, { ip: 5001, server: 2001 });
  played.emulator.mutate({ do: 'add_server', name: 'theirs', public: false });
  played.emulator.mutate({ do: 'add_ip' });
  await played.clock.advance(130_000);
}

describe.each([
  'addresses',
  'objects',
] as const)('src/engine/operator/adopt-key.ts: a truncated list, where network interfaces show %s', (cardIps) => {
  const played = () => rig({ emulator: { readings: { cardIps, reuseIds: true } } });
  const named = `${head}ips:\n  x: {id: 5001}\nservers:\n  web: {id: 2001, public_ipv4: {ip: x}}\n`;

  test.each([
    ['by the spec', undefined],
    ['by the operator', 'adopt'],
  ])('a resource adopted %s has the identity that its own reads show', async (_how, said) => {
    const it = played();
    it.emulator.mutate({ do: 'add_server', name: 'web', public: true });
    const { address: ipv4 } = it.project.ips[0] ?? expect.fail('no address');
    endEarly(it);

    if (said === 'adopt') {
      await it.adopt(bought, x, '5001');
      await it.adopt(bought, web, '2001');
    } else await it.apply(named);

    expect(await identityOf(it, x)).toEqual({ address: ipv4 });
    expect(await identityOf(it, web)).toEqual({ ipv4 });
    it.emulator.setFaults([]);
    await usedAgain(it);
    const { blocked } = await it.apply(head);
    expect(blocked.map(({ key, code }) => [key, code])).toEqual([
      [x, 'identity_changed'],
      [web, 'identity_changed'],
    ]);
    expect(it.writes()).toEqual([]);
    const other = it.engine.resolve(load(head), 'ips.y' as ResourceKey, { type: 'absent' });
    await expect(it.clock.run(other)).rejects.toThrow('These keys can be resolved: ips.x, servers.web.');
  });

  test('a repeated `adopt` keeps the identity', async () => {
    const it = played();
    await it.apply(bought);
    const known = [await identityOf(it, x), await identityOf(it, web)];
    endEarly(it);

    await it.adopt(bought, x, '5001');
    await it.adopt(bought, web, '2001');

    expect([await identityOf(it, x), await identityOf(it, web)]).toEqual(known);
  });

  test('a server without an address is not deleted if its network interface shows an address', async () => {
    const it = played();
    await it.apply(`${head}servers:\n  web: {${sliders}}\n`);
    it.emulator.mutate({ do: 'delete_server', id: 2001 });
    Object.assign(it.emulator.world.nextId, { server: 2001 });
    it.emulator.mutate({ do: 'add_server', name: 'theirs', public: true });
    endEarly(it);

    expect((await it.apply(head)).blocked).toMatchObject([{ key: web, code: 'identity_changed' }]);
    expect(it.project.servers).toHaveLength(1);
  });
});

describe('src/reconcilers/verdicts.ts', () => {
  test('an address that the state knows only by its id needs a decision before its release', async () => {
    const played = await applied(`${head}ips:\n  x: {}\n`);
    const [binding] = await played.store.bindings();
    const change = { type: 'bind', binding: { ...(binding as Binding), identity: {} } } as const;
    await played.store.change([change], played.clock.now());

    const [blocked] = (await played.apply(head)).blocked;
    expect(blocked).toMatchObject({ key: x, code: 'identity_changed' });
    await played.adopt(head, x, '5001');

    expect((await played.apply(head)).outcome).toBe('converged');
    expect(played.project.ips).toEqual([]);
  });
});
