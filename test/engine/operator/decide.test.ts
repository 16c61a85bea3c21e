import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Resolution } from '../../../src/engine/deps.ts';
import { resolveOf, resolving, saidBy } from '../../support/resolve.ts';
import { applied, type Rig, rig, sliders } from '../../support/rig.ts';

const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';
const web = (more = '') => `${head}${more}servers:\n  web: {${sliders}, public_ipv4: {new: true}}\n`;
const key = 'servers.web' as ResourceKey;

const resolve = (played: Rig, spec: string, resolution: Resolution, of = key) =>
  played.resolve(spec, of, resolution);

/** Accepted, and its task never ends. */
async function stuck(): Promise<Rig> {
  const played = await applied(head);
  await played.failing('create_server', { do: 'task', outcome: 'stuck', leaves: 'everything' }, web());
  played.restart();
  return played;
}

describe('src/engine/operator/decide.ts: the new server of a replacement', () => {
  test('does not replace the old server before its creation has ended', async () => {
    const [small, large] = ['1024', '2048'].map((memory) =>
      web()
        .replace('memory_mb: 1024', `memory_mb: ${memory}, replace: allowed`)
        .replace('cores: 1', 'cores: 2'),
    ) as [string, string];
    const spec = large.replace('ubuntu-24.04', 'debian-13');
    const played = await applied(small);
    played.fail('create_server', { do: 'task', outcome: 'stuck', leaves: 'everything' });
    const { blocked } = await played.apply(spec);
    played.emulator.setFaults([]);
    played.restart();

    expect(blocked).toContainEqual(expect.objectContaining({ key, code: 'stuck' }));
    expect(resolveOf(blocked.find(({ code }) => code === 'stuck'))).not.toContain('--adopt');
    await expect(resolve(played, spec, { type: 'adopt', id: '2002' })).rejects.toThrow(
      'server 2001 would be deleted for it',
    );
    await resolve(played, spec, { type: 'abandon' });
    await played.plan(spec);
    expect(played.project.servers.map(({ id }) => id)).toContain(2001);
  });
});

describe('src/engine/operator/decide.ts: resolve --absent', () => {
  test('is refused while the reads show the created resource, ready or not', async () => {
    const addresses = 'ips:\n  a: {}\n';
    const played = await applied(head + addresses);
    played.emulator.setReadings({ pageSize: 1 });
    await played.apply(web(addresses));

    await expect(resolve(played, web(addresses), { type: 'absent' })).rejects.toThrow('it is server 2001');

    played.emulator.setReadings({ pageSize: null });
    await played.resolve(web(addresses), key, { type: 'adopt', id: '2001' });
    expect((await played.apply(web(addresses))).outcome).toBe('converged');
    expect(played.project.servers).toHaveLength(1);
  });

  test.each([
    'absent',
    'abandon',
  ] as const)('is refused as long as the write may still take effect (%s)', async (type) => {
    const played = await applied(head);
    played.fail('create_server', { do: 'late', ms: 20_000 });
    await played.apply(web(), { halt: played.signalAfter(5_000) }).catch(() => undefined);
    played.restart();

    await expect(resolve(played, web(), { type })).rejects.toThrow('may still take effect');

    await played.clock.advance(120_000);
    expect((await played.apply(web())).outcome).toBe('converged');
    expect(played.project.servers).toHaveLength(1);
  });
});

describe('src/engine/operator/decide.ts: an unconfirmed purchase, and its server deleted elsewhere', () => {
  const spec = web().replace('exclusive: true, ', '');

  test('ends with its server, although the entry names another, unmanaged server', async () => {
    const played = await applied(spec.split('servers:')[0] ?? '');
    played.fail('create_server', { do: 'reset', effect: 'done', stored: false });
    await played.apply(spec);
    const other = `${spec.split('servers:')[0]}servers: {web: {managed: false, id: 2002}}\n`;
    played.emulator.mutate({ do: 'add_server', name: 'other', server_type_id: 3, public: true });

    await resolve(played, other, { type: 'adopt', id: '2001' });
    const { plan } = await played.apply(other);

    expect(plan.blocked).toMatchObject([
      {
        code: 'id_conflict',
        reason: 'servers.web is bound to server 2001, but the spec has `id: 2002` and `managed: false`',
      },
    ]);
    const named = other.replace('2002', '2001');
    expect((await played.apply(named)).plan.warnings.map(({ message }) => message)).toContain(
      'server 2001 is no longer managed, and stays unchanged',
    );
  });
});

describe('src/engine/operator/adopt-key.ts', () => {
  test('names the differences between entry and server, and the command that reverts the adoption', async () => {
    const spec = `${head}ips:\n  www: {}\nservers:\n  a: {${sliders}, public_ipv4: {ip: www}}\n  b: {${sliders}}\n`;
    const played = await applied(spec);
    await played.store.change(
      (await played.store.bindings()).map((each) => ({
        type: 'release',
        key: each.key,
        gone: false,
        reason: '',
      })),
      played.clock.now(),
    );
    played.restart();
    const adopt = (name: string, id: string) => played.adopt(spec, name, id);
    const idOf = (name: string) => String(played.project.servers.find((each) => each.name === name)?.id);

    await adopt('ips.www', '5001');
    expect(saidBy(await adopt('servers.a', idOf('b')))).toContain(
      'says `public_ipv4: {ip: www}`, and the server holds no address',
    );
    expect(await adopt('servers.a', idOf('a'))).not.toContain('Check the id');
    await adopt('servers.b', idOf('b'));
    expect((await played.apply(spec)).outcome).toBe('converged');
    expect(played.project.servers).toHaveLength(2);
  });
});

describe('src/engine/operator/decide.ts: resolve --adopt', () => {
  test('reports that the creation has not ended', async () => {
    const said = await resolve(await stuck(), web(), { type: 'adopt', id: '2001' });

    expect(saidBy(said)).toContain('The API has not reported the end of its creation');
  });
});

describe('src/engine/operator/decide.ts: resolve --abandon', () => {
  test('names the resources that stay billed; later plans name them, and buy nothing in addition', async () => {
    const played = await stuck();
    const [address] = played.project.ips.map((each) => each.address);

    const said = await resolve(played, web(), { type: 'abandon' });
    const report = await played.apply(web());

    expect(saidBy(said)).toContain(`server 2001 and address ${address}`);
    expect(report.plan.warnings.map(({ message }) => message).join()).toContain(`server 2001 (${address})`);
    expect(report.blocked).toMatchObject([
      {
        key: 'servers.web',
        code: 'unmanaged_resources',
        remedies: resolving(expect.stringContaining('adopt servers.web 2001')),
      },
    ]);
    expect(played.project.servers).toHaveLength(1);
  });

  test('a purchase that may have had an effect is not sent again, and its possible address is named', async () => {
    const file = 'ips:\n  web: {}\n';
    const played = rig();
    const report = await played.failing('allocate_ip', { do: 'reset', effect: 'done', stored: false }, file);

    await expect(played.resolve(file, 'ips.web', { type: 'retry' })).rejects.toThrow(
      'may have had an effect',
    );
    const said = await played.resolve(file, 'ips.web', { type: 'abandon' });

    const [{ address } = { address: '' }] = played.project.ips;
    expect(played.project.ips).toHaveLength(1);
    expect(resolveOf(report.blocked[0])).toContain(
      `--adopt 5001 (if ${address} is ips.web: see the client area)`,
    );
    expect(saidBy(said)).toContain(`Possibly it is address ${address}, which appeared after the write.`);
  });
});

describe('src/engine/operator/decide.ts: resolve --retry', () => {
  test('names the write that the next run sends again', async () => {
    const played = rig();
    const refused = { do: 'answer', status: 422, code: 'invalid_request' } as const;
    played.fail({ path: 'create_network' }, refused);
    const file = 'networks: {a: {cidr: 10.1.0.0/24}}\n';
    await played.apply(file);

    const { text } = await resolve(played, file, { type: 'retry' }, 'networks.a' as ResourceKey);

    expect(text).toBe('The next run sends the write (create) of networks.a again.');
  });
});

describe('src/engine/operator/decide.ts: resolve --retry of a paused replacement', () => {
  const entry = (name: string, cores: number) =>
    `  ${name}: {${sliders.replace('cores: 1', `cores: ${cores}`)}, public_ipv4: {new: true}, replace: {order: delete_first, at_once: 2}}\n`;
  const pair = (cores: number) => `${head}servers:\n${entry('web', cores)}${entry('db', cores)}`;
  const retry = (played: Rig, name: string) => played.resolve(pair(2), `servers.${name}`, { type: 'retry' });

  test('ends the pause of a refused replacement, and the replacement that waits for it continues', async () => {
    const played = await applied(pair(1));
    played.emulator.mutate({ do: 'set_standing', standing: 'unpaid' });
    await played.apply(`${pair(1)}${entry('more', 1)}`);
    played.restart();
    const { blocked } = await played.apply(pair(2));
    expect(blocked.map(({ key, code }) => [key.replace(/~\d+/, '~ID'), code])).toEqual([
      ['servers.db~ID.public_ipv4', 'dependency_blocked'],
      ['servers.web~ID.public_ipv4', 'dependency_blocked'],
      ['servers.db', 'payment_required'],
      ['servers.web', 'dependency_blocked'],
    ]);
    expect(blocked[2]?.remedies).toEqual(resolving(expect.stringContaining('resolve servers.db --retry')));
    played.emulator.mutate({ do: 'set_standing', standing: 'active' });

    await retry(played, 'db');

    expect((await played.apply(pair(2))).outcome).toBe('converged');
    expect(played.project.servers.map(({ cores }) => cores)).toEqual([2, 2]);
    await expect(retry(played, 'web')).rejects.toThrow('nothing to resolve');
  });
});

describe('src/engine/operator/decide.ts: a resource that is new since a lost answer', () => {
  const shared = web().replace('exclusive: true, ', '');
  /** As after a server error that had its effect: no key holds the answer. */
  const lose = (played: Rig, path: string) =>
    played.fail({ path, nth: 1 }, { do: 'reset', effect: 'done', stored: false });

  test('is named with its address, also in the command', async () => {
    const played = rig();
    lose(played, 'create_server');
    const { blocked } = await played.apply(shared);
    const [ip] = played.project.ips;
    expect(blocked[0]?.reason).toContain(
      `the answer was lost, and server 2001 (${ip?.address}) is new, and may be the created resource`,
    );
    expect(resolveOf(blocked[0])).toContain(
      `--adopt 2001 (if ${ip?.address} is servers.web: see the client area)`,
    );
  });

  test('is named twice if two networks have that name and cidr', async () => {
    const played = rig({ emulator: { readings: { uniqueNetworkNames: false } } });
    lose(played, 'create_network');
    const theirs = { do: 'add_network', name: 'front', cidr: '10.40.0.0/24' } as const;
    void played.clock.sleep(20_000).then(() => played.emulator.mutate(theirs));
    const { blocked } = await played.apply('networks:\n  front: {cidr: 10.40.0.0/24}\n');
    expect(blocked).toMatchObject([{ key: 'networks.front', code: 'outcome_unknown' }]);
    for (const { id } of played.project.networks.filter(({ name }) => name === 'front'))
      expect(resolveOf(blocked[0])).toContain(`--adopt ${id}`);
  });
});

describe('src/engine/operator/decide.ts: a key that is not in the spec', () => {
  test('is answered with a similar key, or with some keys of its kind', async () => {
    const played = rig();
    const names = Array.from({ length: 12 }, (_, at) => `app-${at + 10}: {id: ${2001 + at}}`).join(', ');
    const spec = `networks: {a: {cidr: 10.1.0.0/24}}\nservers: {${names}}\n`;
    const adopt = (key: string) => played.adopt(spec, key, '2012');

    await expect(adopt('servers.app10')).rejects.toThrow(
      'The spec has no servers.app10; did you mean `servers.app-10`?',
    );
    await expect(adopt('servers.other')).rejects.toThrow(
      /^The spec has no servers\.other\. The spec has servers\.app-10, (?:servers\.app-1\d, ){8}servers\.app-19 and 2 more\.$/,
    );
    await expect(adopt('ips.web')).rejects.toThrow('The spec has no ips.web.');
  });
});

describe('src/engine/operator/decide.ts: an address', () => {
  test('is adopted by its id, or by its text', async () => {
    const { emulator, store, project, ...played } = rig();
    const { id } = emulator.mutate({ do: 'add_ip' }) as { id: number };
    const address = project.ips[0]?.address ?? '';
    const adopt = (named: string) => played.adopt('ips: {web: {}}\n', 'ips.web', named);

    await expect(adopt('203.0.113.250')).rejects.toThrow('The project has no address 203.0.113.250.');
    await adopt(address);
    expect(await store.bindings()).toMatchObject([{ key: 'ips.web', id: String(id), identity: { address } }]);
  });
});
