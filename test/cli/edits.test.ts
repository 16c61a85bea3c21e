import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { Scene } from './edits-scene.ts';

const bare = { server_type: 'sliders-1', image: 'ubuntu-24.04', cores: 1, memory_mb: 1024, disk_gb: 20 };
const withNew = { ...bare, public_ipv4: { new: true } };
const iso = { url: 'https://mirror.example.com/rescue.iso' };
const prune = { settings: { prune: true, max_deletions: 9 } };

const isOwn = (each: object) => !('isDefault' in each && each.isDefault);

/** A rename, with the state lost before it is applied. */
async function renamedWithoutState(before: object, after: object) {
  const scene = await Scene.start();
  const operator = scene.operator();
  await operator.applied({ ...before });
  const bought = scene.live;
  operator.write({ ...after });
  operator.loseState();
  return { scene, operator, bought };
}

describe('src/cli: edits of the spec, the state and the project buy nothing twice', () => {
  test('a server without an address is renamed, and the state is lost', async () => {
    const { scene, operator, bought } = await renamedWithoutState(
      { servers: { web: bare } },
      { servers: { www: { ...bare, moved: { from: 'servers.web' } } } },
    );
    await operator.apply();
    expect(scene.live).toEqual(bought);
    await operator.converge({ 'servers.www': bought.servers[0] ?? '' });
    expect(scene.live).toEqual(bought);
  });

  test('the same with its name kept, and its image edited', async () => {
    const { scene, operator, bought } = await renamedWithoutState(
      { servers: { web: bare } },
      { servers: { www: { ...bare, name: 'web', image: 'debian-13', moved: { from: 'servers.web' } } } },
    );
    await operator.apply();
    expect(scene.live).toEqual(bought);
    operator.write({
      servers: {
        www: { ...bare, name: 'web', image: 'debian-13', replace: 'allowed', moved: { from: 'servers.web' } },
      },
    });
    const [id = ''] = bought.servers;
    await operator.converge({ 'servers.web': id, 'servers.www': id });
    expect(scene.project.servers).toMatchObject([{ name: 'web' }]);
  });

  test('a network and an ISO are renamed, and the state is lost', async () => {
    const { scene, operator, bought } = await renamedWithoutState(
      { networks: { back: { cidr: '10.20.0.0/24' } }, isos: { rescue: iso } },
      {
        networks: { backend: { cidr: '10.20.0.0/24', moved: { from: 'networks.back' } } },
        isos: { repair: { ...iso, moved: { from: 'isos.rescue' } } },
      },
    );
    await operator.apply();
    expect(scene.live).toEqual(bought);
    await operator.converge({
      'networks.backend': bought.networks[0] ?? '',
      'isos.repair': bought.isos[0] ?? '',
    });
    expect(scene.live).toEqual(bought);
  });

  test('a server with an address is renamed, and the state is lost', async () => {
    const { scene, operator, bought } = await renamedWithoutState(
      { servers: { web: withNew } },
      { servers: { www: { ...withNew, moved: { from: 'servers.web' } } } },
    );
    await operator.apply();
    await operator.apply();
    expect(scene.live).toEqual(bought);
    await operator.converge({ 'servers.www': bought.servers[0] ?? '' });
    expect(scene.live).toEqual(bought);
  });

  test('a forgotten server returns to the spec', async () => {
    const scene = await Scene.start();
    const operator = scene.operator();
    await operator.applied({ servers: { bare } });
    const bought = scene.live;
    operator.write({});
    expect(await operator.vdcsync('forget', 'servers.bare')).toMatchObject({ code: 0 });
    operator.write({ servers: { bare } });
    await operator.apply();
    expect(scene.live).toEqual(bought);
    await operator.converge({ 'servers.bare': bought.servers[0] ?? '' });
    expect(scene.live).toEqual(bought);
  });

  const kinds = [
    ['servers', bare],
    ['networks', { cidr: '10.20.0.0/24' }],
    ['isos', iso],
    ['ips', {}],
  ] as const;

  test.each(kinds)('of %s, an entry is renamed twice, and the state is lost', async (map, body) => {
    const scene = await Scene.start();
    const operator = scene.operator();
    const named = (name: string, from?: string) => ({
      [map]: { [name]: { ...body, ...(from && { moved: { from: `${map}.${from}` } }) } },
    });
    await operator.applied(named('a'));
    await operator.applied(named('b', 'a'));
    await operator.applied(named('c', 'b'));
    const bought = scene.live;
    operator.loseState();
    for (let runs = 0; runs < 2; runs++) await operator.apply();
    expect(scene.live).toEqual(bought);
    await operator.converge({ [`${map}.c`]: bought[map][0] ?? '' });
    expect(scene.live).toEqual(bought);
  });

  test.each(kinds)('of %s, an entry is not managed for a while', async (map, body) => {
    const scene = await Scene.start();
    const operator = scene.operator();
    await operator.applied({ [map]: { a: body } });
    const bought = scene.live;
    operator.loseState();
    await operator.applied({ [map]: { a: { managed: false, id: bought[map][0] } } });
    operator.write({ [map]: { a: body } });
    await operator.converge({ [`${map}.a`]: bought[map][0] ?? '' });
    expect(scene.live).toEqual(bought);
  });

  test.each(kinds)('of %s, a second file that ignores the first renames an entry', async (map, body) => {
    const scene = await Scene.start();
    await scene.operator().applied({ [map]: { a: body } });
    const bought = scene.live;
    const second = scene.operator();
    second.write({
      settings: { unmanaged: 'ignore' },
      [map]: { b: { ...body, moved: { from: `${map}.a` } } },
    });
    for (let runs = 0; runs < 3; runs++) await second.apply();
    expect(scene.live).toEqual(bought);
  });

  const named = [
    ['networks', (n: number) => ({ cidr: `10.2${n}.0.0/24` })],
    ['isos', (n: number) => ({ url: `https://mirror.example.com/${n}.iso` })],
  ] as const;

  test.each(named)('of %s, an entry gets the name of an entry that has left the spec', async (map, body) => {
    const scene = await Scene.start();
    const operator = scene.operator();
    await operator.applied({ [map]: { a: body(1), b: body(2) } });
    const bought = scene.live;
    const file = { [map]: { a: { ...body(1), name: 'b' } } };
    operator.write(file);
    expect((await operator.apply()).code).toBe(3);
    expect(scene.live).toEqual(bought);
    await operator.applied({ ...file, ...prune });
    expect(scene.project[map].filter(isOwn)).toMatchObject([{ name: 'b' }]);
  });

  test.each(named)('of %s, an entry gets the name of a resource of another file', async (map, body) => {
    const scene = await Scene.start();
    await scene.operator().applied({ project: { id: 4711, scope: 'other' }, [map]: { b: body(2) } });
    const operator = scene.operator();
    const settings = { unmanaged: 'ignore' };
    await operator.applied({ settings, [map]: { a: body(1) } });
    const bought = scene.live;
    operator.write({ settings, [map]: { a: { ...body(1), name: 'b' } } });
    expect((await operator.apply()).code).toBe(3);
    expect(scene.live).toEqual(bought);
    await operator.applied({ settings, [map]: { a: { ...body(1), name: 'a' } } });
  });

  test.each(named)('of %s, two entries exchange their names', async (map, body) => {
    const scene = await Scene.start();
    const operator = scene.operator();
    await operator.applied({ ...prune, [map]: { a: body(1), b: body(2) } });
    await operator.applied({
      ...prune,
      [map]: { a: { ...body(1), name: 'b' }, b: { ...body(2), name: 'a' } },
    });
    const names = scene.project[map].filter(isOwn).map(({ name }) => name);
    expect(names.toSorted()).toEqual(['a', 'b']);
  });

  test('a network is renamed, its `moved` is removed, and the state is lost', async () => {
    const scene = await Scene.start();
    const operator = scene.operator();
    const body = { cidr: '10.20.0.0/24' };
    await operator.applied({ networks: { a: body } });
    await operator.applied({ networks: { b: { ...body, moved: { from: 'networks.a' } } } });
    const bought = scene.live;
    operator.write({ networks: { b: body } });
    operator.loseState();
    for (let runs = 0; runs < 2; runs++) await operator.apply();
    expect(scene.live).toEqual(bought);
    await operator.converge({ 'networks.b': bought.networks[0] ?? '' });
    expect(scene.live).toEqual(bought);
  });

  test('a new project with `moved` in every entry adopts listed resources, and asks about the others', async () => {
    const scene = await Scene.start();
    const operator = scene.operator();
    operator.write({
      networks: { b: { cidr: '10.20.0.0/24', moved: { from: 'networks.a' } } },
      isos: { b: { ...iso, moved: { from: 'isos.a' } } },
      ips: { b: { moved: { from: 'ips.a' } } },
      servers: {
        b: { ...withNew, moved: { from: 'servers.a' } },
        d: { ...bare, moved: { from: 'servers.c' } },
      },
    });
    expect((await operator.apply()).blocked.map(({ key }) => key)).toEqual(['servers.d']);
    const { networks, isos, servers } = scene.live;
    expect([networks.length, isos.length, servers.length]).toEqual([1, 1, 1]);
    expect(new Set(scene.project.ips.map(({ serverId }) => serverId))).toEqual(new Set([null, servers[0]]));
  });

  test('an entry with `id` is renamed without `moved` beside a server that no read shows', async () => {
    const scene = await Scene.start();
    const networks = { back: { cidr: '10.20.0.0/24' } };
    const card = { ...bare, network_interfaces: ['back'] };
    const first = scene.operator();
    await first.applied({ networks, servers: { shown: { ...withNew, ...card }, hidden: card } });
    const bought = scene.live;
    const [shown = '', hidden = ''] = scene.project.servers
      .toSorted((one, other) => (one.name < other.name ? 1 : -1))
      .map(({ id }) => id);
    const back = { networks: { back: { id: bought.networks[0] } } };
    const second = scene.operator();
    second.write({ ...back, servers: { shown: { id: shown } } });
    await second.apply();
    second.write({ ...back, servers: { renamed: { id: shown }, other: card } });
    await second.apply();
    expect(scene.live).toEqual(bought);
    await second.converge({ 'servers.other': hidden });
    expect(scene.live).toEqual(bought);
  });

  test('`destroy` with a lost state reports the resources that are still billed', async () => {
    const scene = await Scene.start();
    const operator = scene.operator();
    await operator.applied({ servers: { web: withNew } });
    const [id] = scene.live.servers;
    operator.loseState();
    const { code, stdout } = await operator.vdcsync('destroy', '--yes');
    expect(code).toBe(0);
    expect(stdout).toContain(`vdcsync ignore ${id}`);
    expect(scene.live.servers).toEqual([id]);
  });

  describe('sequences of edits', () => {
    const larger = { ...bare, cores: 2 };
    const from = (key: string, body: object) => ({ ...body, moved: { from: key } });
    const idOf = ({ project }: Scene, name: string) =>
      project.servers.find((each) => each.name === name)?.id ?? '';

    test.each([
      ['without an address', bare, larger],
      ['with an address', withNew, { ...larger, public_ipv4: { new: true } }],
    ])('a wrong adoption of a server %s is corrected', async (_, a, b) => {
      const scene = await Scene.start();
      const operator = scene.operator();
      await operator.applied({ servers: { a, b } });
      const bought = scene.live;
      const truth = { 'servers.a': idOf(scene, 'a'), 'servers.b': idOf(scene, 'b') };
      operator.loseState();
      for (const id of [truth['servers.b'], truth['servers.a']]) {
        expect(await operator.vdcsync('adopt', 'servers.a', String(id))).toMatchObject({ code: 0 });
        await operator.apply();
        expect(scene.live).toEqual(bought);
      }
      await operator.converge(truth);
      expect(scene.live).toEqual(bought);
    });

    test('two servers exchange their names in three steps, and the state is lost', async () => {
      const scene = await Scene.start();
      const operator = scene.operator();
      await operator.applied({ servers: { a: bare, b: larger } });
      const bought = scene.live;
      const truth = { 'servers.a': idOf(scene, 'b'), 'servers.b': idOf(scene, 'a') };
      await operator.applied({ servers: { c: from('servers.a', bare), b: larger } });
      await operator.applied({ servers: { c: bare, a: from('servers.b', larger) } });
      await operator.applied({ servers: { b: from('servers.c', bare), a: larger } });
      operator.loseState();
      await operator.converge(truth);
      expect(scene.live).toEqual(bought);
    });

    test('a network is renamed and gets another subnet, and the state is lost', async () => {
      const scene = await Scene.start();
      const operator = scene.operator();
      await operator.applied({ networks: { n: { cidr: '10.20.0.0/24' } } });
      await operator.applied({ networks: { k: from('networks.n', { cidr: '10.30.0.0/24' }) } });
      const bought = scene.live;
      operator.loseState();
      await operator.converge({ 'networks.k': bought.networks[0] ?? '' });
      expect(scene.live).toEqual(bought);
    });

    test('a server is bought and renamed after the copy of the state that is put back', async () => {
      const scene = await Scene.start();
      const operator = scene.operator();
      await operator.applied({ ips: { p: {} } });
      const putBack = operator.copyState();
      await operator.applied({ ips: { p: {} }, servers: { a: bare } });
      await operator.applied({ ips: { p: {} }, servers: { b: from('servers.a', bare) } });
      const bought = scene.live;
      putBack();
      await operator.converge({ 'servers.b': bought.servers[0] ?? '' });
      expect(scene.live).toEqual(bought);
    });

    test('a server is deleted and bought again after the copy of the state that is put back', async () => {
      const scene = await Scene.start();
      const operator = scene.operator();
      await operator.applied({ servers: { a: withNew } });
      const putBack = operator.copyState();
      await operator.applied(prune);
      await operator.applied({ servers: { a: withNew } });
      const bought = scene.live;
      putBack();
      await operator.converge({ 'servers.a': bought.servers[0] ?? '' });
      expect(scene.live).toEqual(bought);
    });

    test('`destroy` leaves a protected server that was renamed, with and without its state', async () => {
      const scene = await Scene.start();
      const operator = scene.operator();
      await operator.applied({ servers: { a: { ...bare, protect: true } } });
      const bought = scene.live;
      operator.write({ servers: { b: from('servers.a', { ...bare, protect: true }) } });
      const destroy = ['destroy', '--yes', '--max-deletions', '9'];
      await operator.vdcsync(...destroy);
      expect(scene.live).toEqual(bought);
      operator.loseState();
      await operator.converge({ 'servers.b': bought.servers[0] ?? '' });
      await operator.vdcsync(...destroy);
      expect(scene.live).toEqual(bought);
    });
  });

  describe('a second file with the same names and its own empty state', () => {
    async function secondFile(web: object = bare) {
      const scene = await Scene.start();
      const first = scene.operator();
      await first.applied({ ...prune, servers: { web } });
      const bought = scene.live;
      const second = scene.operator();
      second.write({ ...prune, servers: { web } });
      return { scene, second, bought };
    }

    test('finds the server under its key, and does not delete it with its entry', async () => {
      const { scene, second, bought } = await secondFile();
      await second.apply();
      second.write(prune);
      await second.apply();
      expect(scene.live).toEqual(bought);
      await second.converge({ 'servers.web': bought.servers[0] ?? '' });
      expect(scene.live.servers).toEqual([]);
    });

    test('finds the server under its key, and `destroy` leaves it', async () => {
      const { scene, second, bought } = await secondFile();
      await second.apply();
      await second.vdcsync('destroy', '--yes');
      expect(scene.live).toEqual(bought);
    });

    test('does not delete the server that the operator has ignored', async () => {
      const { scene, second, bought } = await secondFile(withNew);
      const [id] = bought.servers;
      expect(await second.vdcsync('ignore', String(id))).toMatchObject({ code: 0 });
      await second.apply();
      second.write(prune);
      await second.apply();
      await second.vdcsync('destroy', '--yes');
      expect(scene.live.servers).toContain(id);
    });
  });

  test('of two servers with named addresses, one is refused', async () => {
    const scene = await Scene.start();
    const operator = scene.operator();
    const file = {
      ips: { a: {}, b: {} },
      servers: {
        one: { ...bare, public_ipv4: { ip: 'a' } },
        two: { ...bare, public_ipv4: { ip: 'b' } },
      },
    };
    operator.write(file);
    scene.emulator.setFaults([faultRule({ path: 'create_server', nth: 1 }, { do: 'answer', status: 422 })]);
    expect((await operator.apply()).code).toBe(3);
    expect(scene.project.ips.filter(({ serverId }) => serverId === null).length).toBeLessThanOrEqual(1);
    // The refused body changes, as an operator mends it.
    operator.write({
      ...file,
      servers: { one: { ...file.servers.one, cores: 2 }, two: file.servers.two },
    });
    await operator.converge({});
    expect(scene.live).toMatchObject({ servers: [expect.anything(), expect.anything()] });
    expect(new Set(scene.project.ips.map(({ serverId }) => serverId))).toEqual(new Set(scene.live.servers));
  });

  test('another user has a free address beside a named one', async () => {
    const scene = await Scene.start();
    const { id } = scene.emulator.mutate({ do: 'add_ip' }) as { readonly id: number };
    const operator = scene.operator();
    operator.write({
      settings: { unmanaged: 'ignore' },
      ips: { web: {} },
      servers: { web: { ...bare, public_ipv4: { ip: 'web' } } },
    });
    const { code, blocked } = await operator.apply();
    expect(code).toBe(3);
    expect(blocked.map(({ resolve }) => resolve).join(' ')).not.toContain('reuse: true');
    expect(scene.live).toMatchObject({ servers: [], ips: [id] });
    scene.emulator.mutate({ do: 'delete_ip', id });
    await operator.converge({});
    expect(scene.project.ips).toMatchObject([{ serverId: scene.live.servers[0] }]);
  });

  test('the address of a living server is declared `new` in place of `reuse`', async () => {
    const scene = await Scene.start();
    const { id } = scene.emulator.mutate({ do: 'add_ip' }) as { readonly id: number };
    const operator = scene.operator();
    const settings = { ...prune.settings, unmanaged: 'ignore' };
    await operator.applied({ settings, servers: { web: { ...bare, public_ipv4: { reuse: true } } } });
    expect(scene.project.ips).toMatchObject([{ id, serverId: scene.live.servers[0] }]);
    operator.write({ settings, servers: { web: withNew } });
    const { code } = await operator.apply();
    const { stdout } = await operator.vdcsync('status', '--format', 'json');
    const { resources } = JSON.parse(stdout) as { readonly resources: readonly { readonly key: string }[] };
    const isBound = resources.some(({ key }) => key === 'servers.web.public_ipv4');
    expect({ code, isBound }).not.toEqual({ code: 0, isBound: false });
    expect(scene.project.ips).toMatchObject([{ id, serverId: scene.live.servers[0] }]);
  });
});
