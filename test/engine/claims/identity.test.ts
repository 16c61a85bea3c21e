import { describe, expect, test } from 'vitest';
import { around, type Rig, rig } from '../../support/rig.ts';

const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
const head = 'settings: {prune: true, max_deletions: 10, unmanaged: ignore}\n';
const web = `${head}servers:\n  web: {${size}, public_ipv4: {new: true}, replace: allowed}\n`;

const reusing = () => rig({ emulator: { readings: { reuseIds: true } } });

/** The next ones of theirs have the ids that the first of ours had. */
function againFromTheStart({ emulator }: Rig): void {
  Object.assign(emulator.world.nextId, { ip: 5001, server: 2001 });
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
    if (mutation.do === 'add_ip') Object.assign(played.project.ips[0] ?? {}, { address: '198.51.100.7' });
    else Object.assign(played.project.ips[0] ?? {}, { address: '198.51.100.7' });
    played.loseState();

    await played.apply(spec);
    await played.apply(head);

    const deleted = played.writes().filter(({ method }) => method === 'DELETE');
    expect(played.project.ips.map(({ address }) => address)).toContain('198.51.100.7');
    expect(
      deleted.map(({ path }) => Number(path.split('/').at(-1))).filter((id) => id === theirs.id),
    ).toHaveLength(1);
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
    await played.ignore(more, '2001');
    expect((await played.plan(more)).operations.map(({ key: each }) => each)).toContain('servers.db');
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
    expect(played.project.servers).toEqual([]);
    expect(played.project.ips).toHaveLength(1);
  });
});
