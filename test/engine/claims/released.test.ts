import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../../src/cli/settings/profile.ts';
import { childKey, type ResourceKey, retiringKey } from '../../../src/core/keys.ts';
import type { Plan } from '../../../src/core/plan.ts';
import { run } from '../../../src/core/remedy.ts';
import { loadProfile as emulatorProfile } from '../../../src/emulator/profile.ts';
import { codesOf } from '../../reconcilers/support.ts';
import { saidBy } from '../../support/resolve.ts';
import { load, type Rig, rig } from '../../support/rig.ts';

const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
const head = 'settings: {prune: true, max_deletions: 10}\n';
const spec = `${head}servers:\n  web: {${size}, public_ipv4: {new: true}}\n`;
const key = 'servers.web' as ResourceKey;

const releases = (played: Rig) => played.writes().filter(({ method }) => method === 'DELETE');
const addresses = ({ emulator }: Rig) =>
  (emulator.world.projects[0]?.ips ?? []).map(({ address }) => address);
const boundKeys = async ({ store }: Rig) => (await store.bindings()).map((each) => each.key as string);

describe('src/plan/build.ts: a server that leaves the spec and keeps its address', () => {
  test.each([
    ['prune_disabled', 'prune: false', ''],
    ['protected', 'prune: true', ', protect: true'],
    ['max_deletions', 'prune: true, max_deletions: 0', ''],
    ['suspended', 'prune: true, suspend: {reason: audit}', ''],
  ])('both stay bound while %s blocks the deletion', async (code, settings, entry) => {
    const played = rig();
    await played.apply(
      `${head}servers:\n  web: {${size}, public_ipv4: {new: true}, keep_ip: true${entry}}\n`,
    );

    const { plan } = await played.apply(`settings: {${settings}}\n`);

    expect(codesOf(plan)).toEqual({ [key]: code });
    expect(await boundKeys(played)).toEqual([key, `${key}.public_ipv4`]);
  });
});

describe('src/engine/claims/release.ts: a server that is released takes its address with it', () => {
  test('adopting another server leaves the old one, and its address, alone', async () => {
    const played = rig();
    await played.apply(spec);
    const [old] = addresses(played);
    const other = played.emulator.mutate({ do: 'add_server', name: 'web', public: true }) as { id: number };

    const said = await played.clock.run(played.engine.adopt(load(spec), key, String(other.id)));
    const plan = await played.plan(spec);
    await played.apply(spec);
    played.emulator.mutate({ do: 'delete_server', id: 2001 });
    await played.apply(spec);

    expect(saidBy(said)).toContain('Server 2001');
    expect(saidBy(said)).toContain(`${old}`);
    expect(plan.operations.filter(({ verb }) => verb === 'delete')).toEqual([]);
    expect(releases(played)).toEqual([]);
    expect(addresses(played)).toContain(old);
  });

  test('so does `managed: false`', async () => {
    const played = rig();
    await played.apply(spec);
    const [address] = addresses(played);
    const unmanaged = `${head}servers:\n  web: {id: 2001, managed: false}\n`;

    const plan = await played.plan(unmanaged);
    await played.apply(unmanaged);
    expect(await boundKeys(played)).toEqual([]);
    played.emulator.mutate({ do: 'delete_server', id: 2001 });
    await played.apply(head);

    expect(plan.cost.left_billed.join()).toContain(`${address} stays billed`);
    expect(releases(played)).toEqual([]);
    expect(addresses(played)).toEqual([address]);
  });

  test('and another name for it by its id', async () => {
    const played = rig();
    await played.apply(spec);
    const renamed = `${head}servers:\n  shop: {id: 2001, protect: true}\n`;

    await played.apply(renamed);
    await played.apply(renamed);

    expect(releases(played)).toEqual([]);
    expect(await boundKeys(played)).toEqual(['servers.shop']);
  });

  test('an address that a state still binds to a server nobody has is not deleted while attached', async () => {
    const played = rig();
    await played.apply(spec);
    const change = { type: 'release', key, gone: false, reason: 'by hand' } as const;
    await played.store.change([change], played.clock.now());
    played.restart();

    const plan = await played.plan(head);

    expect(plan.operations).toEqual([]);
    expect(plan.blocked).toMatchObject([{ key: 'servers.web.public_ipv4', code: 'ip_in_use' }]);
  });
});

describe('src/engine/claims: the own address of a server that another one of the spec holds by now', () => {
  const b = (cores: number) =>
    `  b: {${size.replace('cores: 1', `cores: ${cores}`)}, public_ipv4: {new: true}, replace: {order: delete_first}}\n`;
  const file = (more: string) => `${head}servers:\n  a: {${size}}\n${more}`;
  const cases: Record<string, [spec: string, servers: readonly string[], server: ResourceKey]> = {
    'that is to be made anew': [file(b(2)), ['a', 'b'], retiringKey('servers.b' as ResourceKey, '2002')],
    'that has left the spec': [file(''), ['a'], 'servers.b' as ResourceKey],
  };

  test.each(Object.entries(cases))('%s waits for a word, and then it is done', async (_what, [
    spec,
    servers,
    server,
  ]) => {
    const own = childKey(server, 'public_ipv4');
    const played = rig();
    await played.apply(file(b(1)));
    const { servers: live = [], ips = [] } = played.emulator.world.projects[0] ?? {};
    Object.assign(ips[0] ?? {}, { serverId: live.find(({ name }) => name === 'a')?.id });

    const { blocked } = await played.apply(spec);
    const said = await played.clock.run(played.engine.forget(load(spec), own));
    const report = await played.apply(spec);

    expect(blocked.find(({ key: each }) => each === own)).toMatchObject({
      code: 'ip_in_use',
      reason: '203.0.113.10 is attached to servers.a',
      remedies: [
        run('apply', [], { when: 'once the address is detached' }),
        run('forget', [own], { when: expect.any(String) as unknown as string }),
      ],
    });
    expect(saidBy(said)).toContain(
      'Address 203.0.113.10 is no longer managed. It still exists and is still billed.',
    );
    expect(report.outcome).toBe('converged');
    expect(report.plan.warnings.map(({ key: each, code }) => [each, code])).toEqual([
      ['servers.a', 'address_not_as_declared'],
    ]);
    expect(played.emulator.world.projects[0]?.servers.map(({ name }) => name).sort()).toEqual(servers);
    expect((await played.plan(spec)).operations).toEqual([]);
  });
});

describe('src/engine/claims: a card of a server that is not managed any more', () => {
  test('is not removed, though a profile opens that', async () => {
    const text = readFileSync(new URL('../../../examples/profile.yaml', import.meta.url), 'utf8');
    const played = rig({
      profile: loadProfile(text, 'profile.yaml'),
      emulator: { profile: emulatorProfile(text) },
    });
    const file = (entry: string) => `${head}networks: {n: {cidr: 10.1.0.0/24}}\nservers: {web: ${entry}}\n`;
    await played.apply(file(`{${size}, network_interfaces: [n]}`));
    const unmanaged = file('{id: 2001, managed: false}');

    const plan = await played.plan(unmanaged);
    const targets = ['servers.web.network_interfaces.n' as ResourceKey];
    await played.apply(unmanaged, { selection: { targets, excludes: [] } });

    expect(plan.operations).toEqual([]);
    expect(releases(played)).toEqual([]);
    expect((await played.apply(unmanaged)).results).toEqual([]);
  });
});

describe('src/engine/claims: `keep_ip` in the edit that replaces a server', () => {
  const file = (cores: number, keep: boolean) =>
    `${head}servers:\n  web: {${size.replace('cores: 1', `cores: ${cores}`)}, replace: {order: delete_first}, public_ipv4: {new: true}, keep_ip: ${keep}}\n`;
  const planned = (plan: Plan) => plan.operations.map(({ id }) => id as string);
  const replaced = ['delete:servers.web', 'create:servers.web'];

  test('is what the plan shows, and what is done', async () => {
    const played = rig();
    await played.apply(file(1, false));
    const [address] = addresses(played);

    const plan = await played.plan(file(2, true));
    const report = await played.apply(file(2, true));

    expect(planned(plan)).toEqual(replaced);
    expect(plan.cost.left_billed.join()).toContain(`${address} stays billed: keep_ip`);
    expect(report.results.map(({ outcome }) => outcome)).toEqual(['done', 'done']);
    expect(addresses(played)).toContain(address);
    const released = (await played.store.claims()).filter(({ holder }) => holder.is === 'released');
    expect(released).toMatchObject([{ kind: 'ip', identity: { address } }]);
    expect((await played.plan(`${head}ips: {spare: {}}\n`)).blocked).toEqual([]);
  });

  test('holds as well where the same edit asks for no address any more', async () => {
    const played = rig();
    await played.apply(file(1, false));
    const [address] = addresses(played);
    const without = file(1, true).replace(', public_ipv4: {new: true}', '');

    const plan = await played.plan(without);
    await played.apply(without);

    expect(planned(plan)).toEqual(replaced);
    expect(plan.cost.left_billed.join()).toContain(`${address} stays billed: keep_ip`);
    expect(addresses(played)).toEqual([address]);
  });

  test('taken out, lets the address go', async () => {
    const played = rig();
    await played.apply(file(1, true));
    const [address] = addresses(played);

    const plan = await played.plan(file(2, false));
    const report = await played.apply(file(2, false));

    expect(planned(plan)).toContain('delete:servers.web~2001.public_ipv4');
    expect(report.results.map(({ outcome }) => outcome)).toEqual(['done', 'done', 'done']);
    expect(addresses(played)).not.toContain(address);
  });
});

describe('src/core/keys.ts: a name with a dot in it', () => {
  const file = (...names: string[]) =>
    `${head}ips: {${names.map((name) => `${name}: {}`).join(', ')}}\nnetworks: {${names
      .map((name, at) => `${name}: {cidr: 10.${at}.0.0/24}`)
      .join(', ')}}\n`;

  test('stays bound when the shorter name goes, is handed over, or is released', async () => {
    const played = rig();
    await played.apply(file('web.2', 'web'));

    await played.apply(`${file('web.2')}`);

    expect(await boundKeys(played)).toEqual(['ips.web.2', 'networks.web.2']);
  });

  test('is not bought again', async () => {
    const played = rig();
    await played.apply(`${head}ips: {web: {}, web.2: {}}\n`);
    const [own] = played.emulator.world.projects[0]?.ips ?? [];

    const handedOver = `${head}ips: {web: {id: ${own?.id}, managed: false}, web.2: {}}\n`;
    await played.apply(handedOver);
    const { outcome } = await played.apply(handedOver);

    expect(outcome).toBe('converged');
    expect(await boundKeys(played)).toEqual(['ips.web.2']);
    expect(addresses(played)).toHaveLength(2);
  });
});

describe('src/engine/claims: an entry that is not managed for a while', () => {
  const file = (web: string, spare: string) => `${head}servers: {web: ${web}}\nips: {spare: ${spare}}\n`;
  const managed = file(`{${size}, public_ipv4: {new: true}}`, '{}');

  async function handedOver() {
    const played = rig();
    await played.apply(managed);
    const spare = played.emulator.world.projects[0]?.ips.find(({ serverId }) => serverId === null);
    await played.apply(file('{id: 2001, managed: false}', `{id: ${spare?.id}, managed: false}`));
    return { ...played, played, spare };
  }

  test('is taken back by the spec of before', async () => {
    const { played, apply } = await handedOver();

    const report = await apply(managed);

    expect(report.outcome).toBe('converged');
    expect(addresses(played)).toHaveLength(2);
    expect(played.emulator.world.projects[0]?.servers).toHaveLength(1);
    expect(await boundKeys(played)).toEqual(['ips.spare', 'servers.web', 'servers.web.public_ipv4']);
  });

  test('has another one made once an operator says so', async () => {
    const { played, spare, apply, clock, engine } = await handedOver();

    await clock.run(engine.ignore(load(managed), ['2001', spare?.address ?? '']));

    expect((await apply(managed)).outcome).toBe('converged');
    expect(addresses(played)).toHaveLength(4);
  });

  test('its server is bought again once the old one is gone, with the address that is left', async () => {
    const { played, spare, apply, clock, emulator } = await handedOver();
    emulator.mutate({ do: 'delete_ip', id: spare?.id ?? 0 });
    emulator.mutate({ do: 'delete_server', id: 2001 });
    await apply(head);
    await clock.advance(2 * 3_600_000);
    await apply(head);
    const [left] = addresses(played);

    expect(codesOf((await apply(managed)).plan)).toEqual({ 'servers.web': 'unmanaged_resources' });
    expect((await apply(managed.replace('{new: true}', '{reuse: true}'))).outcome).toBe('converged');
    expect(addresses(played)).toContain(left);
    expect(addresses(played)).toHaveLength(2);
  });
});

describe('src/engine/claims/release.ts: a server without an address returns to the spec', () => {
  test.each([
    ['forget', head],
    ['managed: false', `${head}servers: {web: {id: 2001, managed: false}}\n`],
  ])('its known values return with it, and an edited image is a difference (%s)', async (way, without) => {
    const played = rig();
    const bare = (image: string) => `${head}servers:\n  web: {${size.replace('ubuntu-24.04', image)}}\n`;
    await played.apply(bare('ubuntu-24.04'));
    if (way === 'forget') await played.clock.run(played.engine.forget(load(without), key));
    else await played.apply(without);

    const plan = await played.plan(bare('debian-13'));
    const report = await played.apply(bare('debian-13'));

    expect([plan.operations.map(({ verb }) => verb), plan.warnings]).toEqual([['adopt'], []]);
    expect(codesOf(report.plan)).toEqual({ [key]: 'replace_not_allowed' });
    expect((await played.apply(bare('ubuntu-24.04'))).outcome).toBe('converged');
  });
});

describe('src/plan/purchases.ts: an entry that asks for a new address returns to the spec', () => {
  test('no second address is bought while the released one is free', async () => {
    const played = rig();
    const kept = (address: string) =>
      `${head}servers:\n  web: {${size}, public_ipv4: ${address}, keep_ip: true}\n`;
    await played.apply(kept('{new: true}'));
    await played.apply(head);
    const [address] = addresses(played);

    const { blocked } = await played.apply(kept('{new: true}'));

    expect(blocked).toMatchObject([
      {
        ...{
          key,
          code: 'unmanaged_resources',
          reason: expect.stringContaining(`address ${address} was released`),
        },
        remedies: [
          { type: 'edit', path: key, set: { public_ipv4: { reuse: true } } },
          { type: 'run', command: 'ignore', args: [address] },
        ],
      },
    ]);
    expect((await played.apply(kept('{reuse: true}'))).outcome).toBe('converged');
    expect(addresses(played)).toEqual([address]);
  });

  test('a server that is deleted elsewhere is created again without a question', async () => {
    const played = rig();
    const kept = `${head}servers:\n  web: {${size}, public_ipv4: {new: true}, keep_ip: true}\n`;
    await played.apply(kept);
    played.emulator.mutate({ do: 'delete_server', id: 2001 });

    expect((await played.apply(kept)).outcome).toBe('converged');
    expect((await played.plan(kept)).blocked).toEqual([]);
  });

  test('the operator may have another address bought', async () => {
    const played = rig();
    const kept = `${head}servers:\n  web: {${size}, public_ipv4: {new: true}, keep_ip: true}\n`;
    for (const each of [kept, head]) await played.apply(each);
    await played.clock.run(played.engine.ignore(load(kept), addresses(played)));

    expect((await played.apply(kept)).outcome).toBe('converged');
    expect(addresses(played)).toHaveLength(2);
  });
});
