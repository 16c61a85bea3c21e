import { describe, expect, test } from 'vitest';
import { bare, from, prune, Scene, withNew } from './edits-scene.ts';

const allowed = { ...bare, replace: 'allowed' };
const forbidden = { status: 403, code: 'forbidden' };

describe('src/cli: an entry under an earlier key of a renamed resource', () => {
  const kinds = [
    ['servers', allowed, { ...allowed, image: 'debian-13' }],
    ['networks', { cidr: '10.20.0.0/24' }, { cidr: '10.30.0.0/24' }],
    ['isos', { url: 'https://mirror.example.com/x.iso' }, { url: 'https://mirror.example.com/y.iso' }],
  ] as const;
  const settings = [
    ['that is protected', prune, { protect: true }],
    ['that is not pruned', {}, {}],
  ] as const;
  const cases = kinds.flatMap((kind) => settings.map((each) => [...kind, ...each] as const));

  test.each(cases)('%s: the entry replaces no resource %s', async (map, first, second, _name, set, more) => {
    const { scene, operator } = await Scene.applied({ ...set, [map]: { a: first } });
    await operator.applied({ ...set, [map]: { b: { ...from(`${map}.a`, first), ...more } } });
    const { live } = scene;
    operator.declare({ ...set, [map]: { a: second } });
    for (let runs = 0; runs < 2; runs++) {
      const { code, blocked } = await operator.apply();
      expect([code, blocked.map((each) => each.code)]).toEqual([3, ['recovered_unconfirmed']]);
      expect(scene.live).toEqual(live);
    }
    // The remedy leads to what the spec asks for.
    await operator.out(`adopt ${map}.a ${live[map][0]}`);
    expect((await operator.apply()).code).toBe(0);
    expect(scene.live[map]).toHaveLength(1);
    expect(scene.live[map]).not.toEqual(live[map]);
  });

  const small = { cidr: '10.20.0.0/24' };
  const other = { cidr: '10.30.0.0/24' };

  test('a returning entry is blocked while an entry under its earlier key has the resource', async () => {
    const { scene, operator } = await Scene.applied({ networks: { a: small } });
    await operator.applied({ networks: { b: from('networks.a', small) } });
    const { live } = scene;
    await operator.edit({ networks: { a: other } });
    const { blocked } = await operator.edit({ networks: { a: other, b: small } });
    expect(blocked.map(({ key, code }) => `${key} ${code}`)).toContain('networks.b key_conflict');
    expect(scene.live).toEqual(live);
  });

  test('a reverted rename needs no decision, and a later edit replaces the resource', async () => {
    const networks = (name: string, body: object) => ({ ...prune, networks: { [name]: body } });
    const { scene, operator } = await Scene.applied(networks('a', { cidr: '10.20.0.0/24' }));
    await operator.applied(networks('b', from('networks.a', { cidr: '10.20.0.0/24' })));
    await operator.applied(networks('a', { cidr: '10.20.0.0/24' }));
    const { live } = scene;
    await operator.applied(networks('a', { cidr: '10.30.0.0/24' }));
    expect(scene.live.networks).toHaveLength(1);
    expect(scene.live.networks).not.toEqual(live.networks);
  });

  test('a forgotten resource is adopted again, and not replaced', async () => {
    const { scene, operator, bought } = await Scene.applied({ networks: { a: { cidr: '10.20.0.0/24' } } });
    operator.declare({});
    await operator.out('forget networks.a');
    operator.declare({ networks: { a: { cidr: '10.30.0.0/24' } } });
    for (let runs = 0; runs < 2; runs++) await operator.apply();
    expect(scene.live).toEqual(bought);
  });

  test('no server is created next to a server that was forgotten while retiring', async () => {
    const { scene, operator } = await Scene.applied({ servers: { web: allowed } });
    await scene.answering('delete_server', forbidden, () =>
      operator.edit({ servers: { web: { ...allowed, image: 'debian-13' } } }),
    );
    await operator.out('forget servers.web~2001');
    scene.emulator.mutate({ do: 'delete_server', id: 2002 });
    for (let runs = 0; runs < 2; runs++) await operator.apply();
    expect(scene.live.servers).toEqual([2001]);
  });
});

describe('src/cli: an entry returns whose resource had another holder since', () => {
  const ways = [
    ['the operator ignored it and took that back', {}, ['ignore 2001', 'ignore --undo 2001']],
    ['another entry adopted it', { servers: { y: { ...bare, id: 2001 } } }, ['forget servers.y']],
    ['another entry named it', { servers: { y: { managed: false, id: 2001 } } }, []],
  ] as const;

  test.each(ways)('%s', async (_name, meanwhile, commands) => {
    const { scene, operator, bought } = await Scene.applied({ servers: { a: bare } });
    operator.declare({});
    await operator.out('forget servers.a');
    await operator.applied(meanwhile);
    operator.declare({});
    for (const command of commands) await operator.out(command);
    await operator.applied({ servers: { a: bare } });
    expect(scene.live).toEqual(bought);
  });

  test('another entry has got it, and has left its own: the operator decides which one the entry is', async () => {
    const { scene, operator, bought } = await Scene.applied({ servers: { a: allowed, b: allowed } });
    operator.declare({ servers: { a: allowed } });
    await operator.out('forget servers.b');
    const [own, other] = ['a', 'b'].map(
      (name) => scene.project.servers.find((each) => each.name === name)?.id,
    );
    await operator.out(`adopt servers.a ${other}`);
    const { blocked } = await operator.edit({ servers: { a: allowed, b: allowed } });
    expect(blocked).toMatchObject([{ key: 'servers.b', code: 'unmanaged_resources' }]);
    await scene.keeps(bought, operator, { 'servers.b': String(own) });
  });

  test.each([
    ['by its `moved`', true],
    ['by its id', false],
  ])('a copy of the state knows neither of two renames, and the operator names the resource %s', async (_name, moved) => {
    const { scene, operator, bought } = await Scene.applied({ servers: { a: bare } });
    const putBack = operator.copyState();
    await operator.applied({ servers: { b: from('servers.a', bare) } });
    await operator.applied({ servers: { c: from('servers.b', bare) } });
    putBack();
    const { code } = await operator.apply();
    expect(code).toBe(3);
    if (moved) operator.declare({ servers: { c: from('servers.a', bare) } });
    else await operator.out('resolve servers.c --adopt 2001');
    expect((await operator.apply()).code).toBe(0);
    expect(scene.live).toEqual(bought);
  });

  test('a resource that was taken back with its server is confirmed with it', async () => {
    const { scene, operator } = await Scene.applied({ servers: { a: withNew } });
    operator.declare({});
    await operator.out('forget servers.a');
    await operator.applied({ ...prune, servers: { a: withNew } });
    await operator.applied({ ...prune });
    expect([scene.live.servers, scene.live.ips]).toEqual([[], []]);
  });

  test('two servers are gone, and the address of one does not block the other', async () => {
    const servers = { a: { ...bare, public_ipv4: { ip: 'w' } }, c: withNew };
    const { scene, operator } = await Scene.applied({ ...prune, ips: { w: {} }, servers });
    for (const id of scene.live.servers) scene.emulator.mutate({ do: 'delete_server', id: Number(id) });
    await operator.applied({ ...prune, ips: { w: {} }, servers });
    expect(scene.live).toMatchObject({ servers: [2003, 2004], ips: [5001, 5003] });
  });
});

describe('src/cli: selections, and resources that are gone or not managed', () => {
  test.each([
    '--target networks.n',
    '--exclude servers.web',
  ])('%s records a protection', async (selection) => {
    const networks = { n: { cidr: '10.20.0.0/24' } };
    const { scene, operator } = await Scene.applied({ ...prune, networks, servers: { web: bare } });
    operator.declare({ ...prune, networks, servers: { web: { ...bare, protect: true } } });
    await operator.apply(...selection.split(' '));
    await operator.edit({ ...prune, networks });
    expect(scene.live.servers).toEqual([2001]);
  });

  test('--exclude of an address keeps the address of a replaced server', async () => {
    const web = { ...withNew, replace: 'allowed' };
    const { scene, operator } = await Scene.applied({ servers: { web } });
    operator.declare({ servers: { web: { ...web, image: 'debian-13' } } });
    await operator.apply('--exclude', 'servers.web.public_ipv4');
    expect(scene.live.ips).toContain(5001);
  });
});
