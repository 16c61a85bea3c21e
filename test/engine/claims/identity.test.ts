import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../../src/cli/settings/profile.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { loadProfile as emulatorProfile } from '../../../src/emulator/profile.ts';
import { memoryState } from '../../../src/state/sqlite-driver.ts';
import { resolveOf } from '../../support/resolve.ts';
import { around, load, type Rig, rig } from '../../support/rig.ts';

const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
const head = 'settings: {prune: true, max_deletions: 10, unmanaged: ignore}\n';
const web = `${head}servers:\n  web: {${size}, public_ipv4: {new: true}, replace: allowed}\n`;
const key = 'servers.web' as ResourceKey;

const project = ({ emulator }: Rig) => emulator.world.projects[0] ?? expect.fail('no project');
const reusing = () => rig({ emulator: { readings: { reuseIds: true } } });

/** The next ones of theirs have the ids that the first of ours had. */
function againFromTheStart({ emulator }: Rig): void {
  Object.assign(emulator.world.nextId, { ip: 5001, server: 2001 });
}

/** Ours is deleted elsewhere, and its id now belongs to an unmanaged server without an address. */
async function usedAgain(): Promise<Rig> {
  const played = reusing();
  await played.apply(web);
  played.emulator.mutate({ do: 'delete_server', id: 2001 });
  againFromTheStart(played);
  played.emulator.mutate({ do: 'add_server', name: 'theirs', public: false });
  return played;
}

describe('src/engine/claims: an id that is used again', () => {
  test.each([
    ['address', `${head}ips:\n  a: {}\n`, { do: 'add_ip' } as const],
    ['server', web, { do: 'add_server', name: 'theirs', public: true } as const],
  ])("a replayed answer's %s is looked at, and not taken where it is another one", async (_what, spec, mutation) => {
    const played = reusing();
    await played.apply(spec);
    await played.apply(head);
    againFromTheStart(played);
    if (mutation.do === 'add_server') Object.assign(played.emulator.world.nextId, { ip: 5007 });
    const theirs = played.emulator.mutate(mutation) as { readonly id: number };
    if (mutation.do === 'add_ip') Object.assign(project(played).ips[0] ?? {}, { address: '198.51.100.7' });
    else Object.assign(project(played).ips[0] ?? {}, { address: '198.51.100.7' });
    played.restart(memoryState({ createdAt: played.clock.now(), lineage: 'old' }));

    await played.apply(spec);
    await played.apply(head);

    const deleted = played.writes().filter(({ method }) => method === 'DELETE');
    expect(project(played).ips.map(({ address }) => address)).toContain('198.51.100.7');
    expect(
      deleted.map(({ path }) => Number(path.split('/').at(-1))).filter((id) => id === theirs.id),
    ).toHaveLength(1);
  });

  test('what is gone because its id was given to another is not bought in the same run', async () => {
    let gone = false;
    const played: Rig = rig({
      emulator: { readings: { reuseIds: true } },
      wrap: around(async (request, send) => {
        if (gone && request.method === 'POST') {
          gone = false;
          played.emulator.mutate({ do: 'delete_server', id: 2001 });
          againFromTheStart(played);
        }
        return send();
      }),
    });
    await played.apply(web);
    gone = true;
    const both = `${web}  shop: {${size}}\n`;

    const first = await played.apply(both);

    expect(first.blocked).toContainEqual(
      expect.objectContaining({ key, verb: 'create', code: 'superseded' }),
    );
    expect(project(played).servers).toMatchObject([{ id: 2001, name: 'shop' }]);
    played.restart();
    expect((await played.apply(both)).outcome).toBe('converged');
    expect(project(played).servers).toHaveLength(2);
  });

  test('a server that has lost its address is not deleted, and every way out is named', async () => {
    const played = await usedAgain();

    const { blocked } = await played.plan(head);
    const report = await played.apply(head);

    expect(project(played).servers).toHaveLength(1);
    expect(project(played).ips, 'its address waits for the answer').toHaveLength(1);
    expect(report.blocked).toMatchObject([
      { key: 'servers.web', code: 'identity_changed' },
      { key: 'servers.web.public_ipv4', code: 'dependency_blocked' },
    ]);
    expect(resolveOf(blocked[0])).toContain('vdcsync resolve servers.web --absent');
    expect(resolveOf(blocked[0])).toContain('vdcsync forget servers.web');
  });

  test('one that never had an address is not deleted where an unmanaged one has one under its id', async () => {
    const played = reusing();
    const db = `${head}servers:\n  db: {${size}}\n`;
    await played.apply(db);
    played.emulator.mutate({ do: 'delete_server', id: 2001 });
    againFromTheStart(played);
    played.emulator.mutate({ do: 'add_server', name: 'theirs', public: true });

    const [blocked] = (await played.apply(head)).blocked;
    expect(blocked).toMatchObject({ key: 'servers.db', code: 'identity_changed' });
    await played.clock.run(
      played.engine.resolve(load(head), 'servers.db' as ResourceKey, { type: 'absent' }),
    );

    expect((await played.apply(head)).outcome).toBe('converged');
    expect(project(played).servers).toMatchObject([{ id: 2001, name: 'theirs' }]);
  });

  test('nor where the profile shows another name', async () => {
    const text = 'operations: {list_servers: {}}';
    const played = rig({
      profile: loadProfile(text, 'profile'),
      emulator: { readings: { reuseIds: true }, profile: emulatorProfile(text) },
    });
    await played.apply(`${head}servers:\n  db: {${size}}\n`);
    Object.assign(project(played).servers[0] ?? {}, { name: 'theirs' });

    expect((await played.apply(head)).blocked).toMatchObject([{ code: 'identity_changed' }]);
    await played.clock.run(played.engine.adopt(load(head), 'servers.db' as ResourceKey, '2001'));
    expect((await played.apply(head)).outcome).toBe('converged');
    expect(project(played).servers).toEqual([]);
  });

  test('nor replaced', async () => {
    const played = await usedAgain();

    const plan = await played.plan(web.replace('cores: 1', 'cores: 2'));

    expect(plan.blocked).toMatchObject([{ key: 'servers.web', verb: 'update', code: 'identity_changed' }]);
    // It is refused where the entry is in the spec.
    expect(resolveOf(plan.blocked[0])).not.toContain('vdcsync forget');
    expect(plan.operations.filter(({ verb }) => verb === 'delete')).toEqual([]);
  });

  test('nothing is done inside it, and `ignore` can say that it is theirs', async () => {
    const played = reusing();
    const spec = web.replace(', unmanaged: ignore', '');
    await played.apply(spec);
    played.emulator.mutate({ do: 'delete_server', id: 2001 });
    againFromTheStart(played);
    Object.assign(played.emulator.world.nextId, { ip: 5007 });
    played.emulator.mutate({ do: 'add_server', name: 'theirs', public: true });
    const more = `${spec.replace('replace: allowed', 'firewall: {enabled: true, policy_in: drop, rules: []}, backup: {max_age: 24h}')}  db: {${size}, public_ipv4: {new: true}}\n`;
    const before = played.emulator.world.executions.length;
    const sent = played.writes().length;

    const report = await played.apply(more);

    expect(played.emulator.world.executions.slice(before)).toEqual([]);
    const inside = played.writes().slice(sent);
    expect(
      inside.filter(({ path }) => path.includes('2001')),
      'a server of theirs',
    ).toEqual([]);
    expect(Object.fromEntries(report.blocked.map(({ key: each, code }) => [each, code]))).toEqual({
      'servers.web': 'identity_changed',
      'servers.web.public_ipv4': 'dependency_blocked',
      'servers.web.firewall': 'dependency_blocked',
      'servers.web.backup': 'dependency_blocked',
      'servers.db': 'unmanaged_resources',
    });
    await played.clock.run(played.engine.ignore(load(more), ['2001']));
    expect((await played.plan(more)).operations.map(({ key: each }) => each)).toContain('servers.db');
  });

  test('`resolve --absent` says that ours is gone: it is made again, and theirs is left alone', async () => {
    const played = await usedAgain();
    const larger = web.replace('cores: 1', 'cores: 2').replace(', unmanaged: ignore', '');

    await played.clock.run(played.engine.resolve(load(larger), key, { type: 'absent' }));
    const report = await played.apply(larger);

    expect([report.outcome, report.blocked]).toEqual(['converged', []]);
    expect(
      project(played)
        .servers.map(({ name }) => name)
        .sort(),
    ).toEqual(['theirs', 'web']);
    expect(played.writes().filter(({ path }) => path === '/servers/2001')).toEqual([]);
  });

  test('`adopt` says that it is ours all the same, also after it has left the spec', async () => {
    const played = rig();
    await played.apply(web);
    for (const ip of project(played).ips) ip.serverId = null;
    for (const card of project(played).servers[0]?.cards ?? []) card.ips = [];

    const [first] = (await played.apply(head)).blocked;
    expect(first).toMatchObject({ key: 'servers.web', code: 'identity_changed' });
    await played.clock.run(played.engine.adopt(load(head), key, '2001'));

    expect((await played.apply(head)).outcome).toBe('converged');
    expect(played.emulator.billed()).toEqual([]);
  });

  test('`resolve --absent` is refused where nothing says that it is another one', async () => {
    const played = rig();
    await played.apply(web);

    const resolved = played.clock.run(played.engine.resolve(load(web), key, { type: 'absent' }));

    await expect(resolved).rejects.toThrow('No key has an open write');
  });
});

describe('src/engine/claims: the address of a server that says {reuse: true}', () => {
  const reuse = web.replace('{new: true}', '{reuse: true}').replace(', unmanaged: ignore', '');

  test('may be an unmanaged one that came free just before: it is told, and stays', async () => {
    const played: Rig = rig({
      wrap: around(async (request, send) => {
        const buys = request.method === 'POST' && request.url.endsWith('/servers');
        if (buys) played.emulator.mutate({ do: 'add_ip' });
        return send();
      }),
    });

    const report = await played.apply(reuse);
    await played.apply('settings: {prune: true}\n');

    expect(report.plan.warnings.map(({ code }) => code)).toContain('address_not_as_declared');
    expect(report.plan.warnings.map(({ message }) => message).join()).toContain('`id: 5001`');
    expect(project(played).servers).toEqual([]);
    expect(project(played).ips).toHaveLength(1);
  });

  test('is its own where nobody else creates anything', async () => {
    const played = rig();

    const report = await played.apply(reuse.replace('prune: true', 'prune: true, exclusive: true'));
    await played.apply('settings: {prune: true}\n');

    expect(report.plan.warnings).toEqual([]);
    expect(played.emulator.billed()).toEqual([]);
  });
});
