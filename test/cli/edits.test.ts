import { describe, expect, test } from 'vitest';
import { bare, from, prune, Scene, withNew } from './edits-scene.ts';

const iso = { url: 'https://mirror.example.com/rescue.iso' };
const larger = { ...bare, cores: 2 };
const forbidden = { status: 403, code: 'forbidden' };

const isOwn = (each: object) => !('isDefault' in each && each.isDefault);

describe('src/cli: no edit of the spec, the state or the project creates a resource twice', () => {
  const kinds = [
    ['servers', bare],
    ['networks', { cidr: '10.20.0.0/24' }],
    ['isos', iso],
    ['ips', {}],
  ] as const;

  test.each(kinds)('%s: an entry is renamed twice, and the state is lost', async (map, body) => {
    const { scene, operator } = await Scene.start();
    await operator.applied({ [map]: { a: body } });
    await operator.applied({ [map]: { b: from(`${map}.a`, body) } });
    await operator.applied({ [map]: { c: from(`${map}.b`, body) } });
    const bought = scene.live;
    operator.loseState();
    for (let runs = 0; runs < 2; runs++) await operator.apply();
    expect(scene.live).toEqual(bought);
    await scene.keeps(bought, operator, { [`${map}.c`]: bought[map][0] ?? '' });
  });

  const named = [
    ['networks', (n: number) => ({ cidr: `10.2${n}.0.0/24` })],
    ['isos', (n: number) => ({ url: `https://mirror.example.com/${n}.iso` })],
  ] as const;

  test.each(named)('%s: two entries exchange their names', async (map, body) => {
    const { scene, operator } = await Scene.applied({ ...prune, [map]: { a: body(1), b: body(2) } });
    await operator.applied({
      ...prune,
      [map]: { a: { ...body(1), name: 'b' }, b: { ...body(2), name: 'a' } },
    });
    const names = scene.project[map].filter(isOwn).map(({ name }) => name);
    expect(names.toSorted()).toEqual(['a', 'b']);
  });

  test.each([
    ['a lost state', 'with an address', withNew, 'ask'],
    ['a lost state', 'without an address', bare, 'ask'],
    ['a lost state', 'that `unmanaged: ignore` ignores', bare, 'ignore'],
    ['an older copy of the state', 'without an address', bare, 'ask'],
  ])('`destroy` with %s reports that a server %s is still billed', async (state, _, web, unmanaged) => {
    const networks = { n: { cidr: '10.20.0.0/24' } };
    const settings = { unmanaged };
    const { scene, operator } = await Scene.applied({ settings, networks });
    const putBack = operator.copyState();
    await operator.applied({ settings, networks, servers: { web } });
    const [id] = scene.live.servers;
    if (state === 'a lost state') operator.loseState();
    else putBack();
    const { code, stdout } = await operator.run('destroy --yes');
    expect(code).toBe(0);
    expect(stdout).toContain(`vdcsync ignore ${id}`);
    expect(scene.live.servers).toEqual([id]);
  });

  test('the state is lost, an entry adopts another server, and the plan warns of the server of its key', async () => {
    const { scene, operator } = await Scene.applied({ servers: { a: bare, b: { ...bare, cores: 2 } } });
    const [a, b] = scene.live.servers;
    operator.loseState();
    operator.declare({ servers: { b: { ...bare, cores: 2 } } });
    await operator.run(`adopt servers.b ${a}`);
    await operator.apply();
    const { stdout } = await operator.run('plan');
    expect(stdout).toContain('[key_used_elsewhere]');
    expect(scene.live.servers).toEqual([a, b]);
  });

  const idOf = ({ project }: Scene, name: string) =>
    project.servers.find((each) => each.name === name)?.id ?? '';

  test.each([
    ['without an address', bare, larger],
    ['with an address', withNew, { ...larger, public_ipv4: { new: true } }],
  ])('a wrong adoption of a server %s is corrected', async (_, a, b) => {
    const { scene, operator, bought } = await Scene.applied({ servers: { a, b } });
    const truth = { 'servers.a': idOf(scene, 'a'), 'servers.b': idOf(scene, 'b') };
    operator.loseState();
    for (const id of [truth['servers.b'], truth['servers.a']]) {
      await operator.out(`adopt servers.a ${id}`);
      await operator.apply();
      expect(scene.live).toEqual(bought);
    }
    await scene.keeps(bought, operator, truth);
  });

  test('a server is created again, an older copy of the state is restored, and the entry is renamed', async () => {
    const { scene, operator } = await Scene.applied({ servers: { web: bare } });
    const putBack = operator.copyState();
    scene.emulator.mutate({ do: 'delete_server', id: Number(scene.live.servers[0]) });
    expect((await operator.apply()).code).toBe(0);
    const again = scene.live;
    expect(again.servers).toHaveLength(1);
    putBack();
    operator.declare({ servers: { www: from('servers.web', bare) } });
    await scene.keeps(again, operator, { 'servers.www': again.servers[0] ?? '' });
  });

  describe('a new entry takes the key of a renamed entry, and an older copy of the state is restored', () => {
    test.each([
      ['a server', bare, larger],
      ['a server with an address, and a server without an address', withNew, bare],
      ['a server with another disk', bare, { ...bare, disk_gb: 40, replace: 'allowed' }],
    ])('%s', async (_name, first, second) => {
      const { scene, operator } = await Scene.applied({ ...prune, servers: { a: first } });
      const putBack = operator.copyState();
      await operator.applied({ ...prune, servers: { c: from('servers.a', first) } });
      await operator.applied({ ...prune, servers: { c: first, a: second } });
      const { live } = scene;
      putBack();
      for (let runs = 0; runs < 2; runs++) {
        const { blocked } = await operator.apply();
        expect(blocked.map(({ key, code }) => `${key} ${code}`)).toContainEqual('servers.c key_conflict');
        expect(scene.live).toEqual(live);
      }
      const [c, a] = live.servers.map(String);
      await operator.run(`adopt servers.a ${a}`);
      await operator.out(`resolve servers.c --adopt ${c}`);
      await scene.keeps(live, operator, { 'servers.a': `${a}` });
    });
  });

  test('the state is lost, the entry is edited, and the server keeps its data once the edit is reverted', async () => {
    const web = { ...bare, replace: 'allowed' };
    const { scene, operator, bought } = await Scene.applied({ servers: { web } });
    operator.loseState();
    operator.declare({ servers: { web: { ...web, image: 'debian-13' } } });
    await operator.converge({ 'servers.web': bought.servers[0] ?? '' });
    await operator.applied({ servers: { web } });
    expect(scene.live).toEqual(bought);
  });

  test.each([
    ['', 'a'],
    [' again', 'z'],
  ])('a server is renamed%s after an older copy of the state is restored during its replacement', async (_again, first) => {
    const edited = { ...bare, image: 'debian-13', replace: 'allowed' };
    const { scene, operator } = await Scene.applied({ servers: { [first]: bare } });
    if (first !== 'a') await operator.applied({ servers: { a: from('servers.z', bare) } });
    const putBack = operator.copyState();
    const edit = () => operator.edit({ servers: { a: edited } });
    expect((await scene.answering('delete_server', forbidden, edit)).code).toBe(3);
    const bought = scene.live;
    expect(bought.servers).toHaveLength(2);
    putBack();
    operator.declare({ servers: { b: from('servers.a', edited) } });
    await scene.keeps(bought, operator, { 'servers.b': bought.servers[1] ?? '' });
  });

  test('a server is replaced a day after its creation, and the state is lost', async () => {
    const networks = { n: { cidr: '10.20.0.0/24' } };
    const edited = { ...bare, image: 'debian-13', replace: 'allowed' };
    const { scene, operator } = await Scene.applied({ networks, servers: { web: bare } });
    scene.emulator.mutate({ do: 'forward_clock', ms: 25 * 3_600_000 });
    await operator.applied({ networks, servers: { web: edited } });
    const bought = scene.live;
    operator.loseState();
    await scene.keeps(bought, operator, { 'networks.n': bought.networks[0] ?? '' });
    await operator.applied({ networks, servers: { web: edited } });
  });

  test('a second spec with the same names and an empty state does not delete the server with its entry', async () => {
    const { scene, bought } = await Scene.applied({ ...prune, servers: { web: bare } });
    const second = scene.operator();
    await second.edit({ ...prune, servers: { web: bare } });
    await second.edit(prune);
    expect(scene.live).toEqual(bought);
    await second.converge({ 'servers.web': bought.servers[0] ?? '' });
    expect(scene.live.servers).toEqual([]);
  });

  test('the state is lost after refusals for an invoice that is paid by now', async () => {
    const { scene, operator } = await Scene.start();
    operator.declare({ servers: { web: bare } });
    scene.emulator.mutate({ do: 'set_standing', standing: 'unpaid' });
    for (const _ of Array.from({ length: 10 })) expect((await operator.apply()).code).toBe(3);
    scene.emulator.mutate({ do: 'set_standing', standing: 'active' });
    expect((await operator.apply()).code).toBe(0);
    const bought = scene.live;
    operator.loseState();
    expect((await operator.apply()).code).toBe(0);
    expect(scene.live).toEqual(bought);
  });

  describe('a wrong `project.scope`', () => {
    const servers = { a: withNew, n: bare };
    const inX = { project: { id: 4711, scope: 'x' }, ...prune };

    test('is corrected after the state is lost', async () => {
      const { scene, operator, bought } = await Scene.applied({ servers });
      operator.loseState();
      expect((await operator.edit({ project: { id: 4711, scope: 'x' }, servers })).code).toBe(3);
      operator.declare({ servers });
      const adopted = scene.project.servers.find(({ name }) => name === 'a')?.id;
      await operator.out(`adopt servers.a ${adopted}`);
      expect((await operator.apply()).code).toBe(0);
      expect(scene.live).toEqual(bought);
    });

    test('counts a deleted server only in its own scope', async () => {
      const { scene, operator, bought } = await Scene.applied({ servers: { n: bare } });
      operator.loseState();
      await operator.applied({ ...inX, servers: { n: bare } });
      await operator.applied(inX);
      expect(scene.live).toEqual(bought);
      await operator.applied({ servers: { n: bare } });
      expect(scene.live).toEqual(bought);
    });

    const other = { ...bare, image: 'debian-13', replace: 'allowed' };
    test.each([
      ['created again', [{}, { n: bare }]],
      ['replaced', [{ n: other }]],
      ['replaced twice', [{ n: other }, { n: { ...bare, replace: 'allowed' } }]],
    ])('a new state finds the server that was %s in the wrong scope', async (_, edits) => {
      const { scene, operator } = await Scene.applied({ servers: { n: bare } });
      for (const each of edits) await operator.applied({ ...inX, servers: { ...each } });
      const bought = scene.live;
      expect(bought.servers).toHaveLength(1);
      operator.loseState();
      expect((await operator.apply()).code).toBe(0);
      expect(scene.live).toEqual(bought);
    });
  });

  test('keys pass from one server to another, and the state is lost', async () => {
    const { scene, operator, bought } = await Scene.applied({ servers: { a: bare, b: larger } });
    await operator.applied({ servers: { c: from('servers.a', bare), b: larger } });
    await operator.applied({ servers: { c: bare, a: from('servers.b', larger) } });
    operator.loseState();
    const { blocked } = await operator.apply();
    expect(blocked.map(({ key, code }) => [key, code])).toContainEqual(['servers.a', 'key_conflict']);
    expect(scene.live).toEqual(bought);
  });

  describe('a new entry has the earlier key of a renamed server, and the state is lost', () => {
    /** @returns the ids of `www`, and of `web` if that is bought before the loss */
    async function lost(web: object, isBought: boolean) {
      const { scene, operator } = await Scene.applied({ servers: { web: bare } });
      await operator.applied({ servers: { www: from('servers.web', bare) } });
      operator.declare({ servers: { www: bare, web } });
      if (isBought) expect((await operator.apply()).code).toBe(0);
      const before = scene.live;
      operator.loseState();
      const { blocked } = await operator.apply();
      expect(blocked.map(({ key }) => key)).toContain('servers.www');
      expect(scene.live).toEqual(before);
      return { scene, operator, ids: before.servers };
    }

    test.each([false, true])('the new entry is created before the loss: %s', async (isBought) => {
      const { scene, operator, ids } = await lost({ ...bare, cores: 2 }, isBought);
      const [www = '', web] = ids;
      await operator.converge({ 'servers.www': www, ...(web !== undefined && { 'servers.web': web }) });
      expect(scene.project.servers.map(({ cores }) => cores)).toEqual([1, 2]);
    });

    test('the new entry is created before the loss, with equal values', async () => {
      const { scene, operator, ids } = await lost(bare, true);
      const [www, web] = ids.map(String);
      await operator.out(`adopt servers.web ${web}`);
      await operator.out(`resolve servers.www --adopt ${www}`);
      expect(await operator.apply()).toEqual({ code: 0, blocked: [] });
      expect(scene.live.servers.map(String)).toEqual([www, web]);
    });

    test.each([
      0, 1,
    ])('the new entry is created before the loss, and server %i of the two is deleted after the loss', async (at) => {
      const { scene, operator, ids } = await lost(at === 0 ? bare : { ...bare, cores: 2 }, true);
      const [gone = 0, left = 0] = at === 0 ? ids : ids.toReversed();
      scene.emulator.mutate({ do: 'delete_server', id: Number(gone) });
      for (let runs = 0; runs < 3; runs++) await operator.apply();
      expect(scene.live.servers).toContain(left);
      expect(scene.live.servers.length).toBeLessThanOrEqual(2);
      await operator.converge(at === 0 ? {} : { 'servers.www': left });
      expect(scene.live.servers).toHaveLength(2);
    });
  });

  test('the creation of a server is unconfirmed, and its entry is renamed, with `moved` and then without', async () => {
    const { scene, operator } = await Scene.start();
    const fails = { status: 500, code: 'internal', effect: 'done' } as const;
    const edit = () => operator.edit({ servers: { web: bare } });
    expect(await scene.answering('create_server', fails, edit)).toMatchObject({ code: 3 });
    const { live } = scene;
    for (const www of [from('servers.web', bare), bare]) {
      const { blocked } = await operator.edit({ servers: { www } });
      expect(blocked.map(({ key }) => key)).toContain('servers.www');
      expect(scene.live).toEqual(live);
    }
  });

  test('the state is lost, the entry is edited, and the API stores no refusals', async () => {
    const { scene, operator, bought } = await Scene.applied(
      { servers: { web: bare } },
      { bodyCheck: 'beforeKeyUnstored' },
    );
    operator.loseState();
    const { blocked } = await operator.edit({
      servers: { web: { ...bare, image: 'debian-13', replace: 'allowed' } },
    });
    expect(blocked).toMatchObject([{ key: 'servers.web', code: 'key_conflict' }]);
    expect(scene.live).toEqual(bought);
  });

  test('an entry adopts a retiring server by its id, and the server keeps its address', async () => {
    const web = { ...withNew, replace: 'allowed' };
    const { scene, operator } = await Scene.applied({ ...prune, servers: { web } });
    const servers = { web: { ...web, image: 'debian-13' } };
    const edit = () => operator.edit({ ...prune, servers });
    expect((await scene.answering('delete_server', forbidden, edit)).code).toBe(3);
    await operator.applied({ ...prune, servers: { ...servers, old: { ...withNew, id: 2001 } } });
    expect(scene.live).toMatchObject({ servers: [2001, 2002], ips: [5001, 5002] });
    await operator.applied({ ...prune, servers });
    expect(scene.live).toMatchObject({ servers: [2002], ips: [5002] });
  });

  test('the state is lost, and an entry with the id of a server precedes the key that created the server', async () => {
    const { scene, operator } = await Scene.applied({ servers: { a: withNew } });
    const b = { ...withNew, id: 2001 };
    await operator.applied({ servers: { b } });
    await operator.applied({ servers: { b, a: withNew } });
    const bought = scene.live;
    operator.loseState();
    await scene.keeps(bought, operator, { 'servers.a': 2002 });
    expect((await operator.json('status')).resources).toContainEqual(
      expect.objectContaining({ key: 'servers.b', id: '2001' }),
    );
  });

  test('an entry leaves the spec while the API refuses its creation with `name_taken`', async () => {
    const { scene, operator } = await Scene.start();
    operator.declare({ servers: { web: withNew } });
    await scene.answering('create_server', { status: 409, code: 'name_taken' }, () =>
      operator.refused(130, 'apply --yes --timeout 20m'),
    );
    expect(await operator.edit({ servers: {} })).toEqual({ code: 0, blocked: [] });
  });

  test('another user has a free address next to an address of the spec', async () => {
    const { scene, operator } = await Scene.start();
    const { id } = scene.emulator.mutate({ do: 'add_ip' }) as { readonly id: number };
    const { code, blocked } = await operator.edit({
      settings: { unmanaged: 'ignore' },
      ips: { web: {} },
      servers: { web: { ...bare, public_ipv4: { ip: 'web' } } },
    });
    expect(code).toBe(3);
    expect(blocked.map(({ resolve }) => resolve).join(' ')).not.toContain('reuse: true');
    expect(scene.live).toMatchObject({ servers: [], ips: [id] });
    scene.emulator.mutate({ do: 'delete_ip', id });
    await operator.converge({});
    expect(scene.project.ips).toMatchObject([{ serverId: scene.live.servers[0] }]);
  });

  test('the address of an existing server is declared `new` instead of `reuse`', async () => {
    const { scene, operator } = await Scene.start();
    const { id } = scene.emulator.mutate({ do: 'add_ip' }) as { readonly id: number };
    const settings = { ...prune.settings, unmanaged: 'ignore' };
    await operator.applied({ settings, servers: { web: { ...bare, public_ipv4: { reuse: true } } } });
    expect(scene.project.ips).toMatchObject([{ id, serverId: scene.live.servers[0] }]);
    const { code } = await operator.edit({ settings, servers: { web: withNew } });
    const isBound = (await operator.managed()).includes('servers.web.public_ipv4');
    expect({ code, isBound }).not.toEqual({ code: 0, isBound: false });
    expect(scene.project.ips).toMatchObject([{ id, serverId: scene.live.servers[0] }]);
  });
});
