import { describe, expect, test } from 'vitest';
import { Scene } from './edits-scene.ts';

const bare = { server_type: 'sliders-1', image: 'ubuntu-24.04', cores: 1, memory_mb: 1024, disk_gb: 20 };
const withNew = { ...bare, public_ipv4: { new: true } };
const prune = { settings: { prune: true, max_deletions: 9 } };

describe('src/cli: edits of the spec, the state and the project buy nothing twice', () => {
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

  describe('a wrong `project.scope`', () => {
    const servers = { a: withNew, n: bare };
    const inX = { project: { id: 4711, scope: 'x' }, ...prune };

    test('is corrected after the state was lost', async () => {
      const scene = await Scene.start();
      const operator = scene.operator();
      await operator.applied({ servers });
      const bought = scene.live;
      operator.loseState();
      operator.write({ project: { id: 4711, scope: 'x' }, servers });
      expect((await operator.apply()).code).toBe(3);
      operator.write({ servers });
      const adopted = scene.project.servers.find(({ name }) => name === 'a')?.id;
      expect(await operator.vdcsync('adopt', 'servers.a', String(adopted))).toMatchObject({ code: 0 });
      expect((await operator.apply()).code).toBe(0);
      expect(scene.live).toEqual(bought);
    });

    test('counts a deleted server in its own scope alone', async () => {
      const scene = await Scene.start();
      const operator = scene.operator();
      await operator.applied({ servers: { n: bare } });
      const bought = scene.live;
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
    ])('has a server that was %s, and that a new state finds', async (_, edits) => {
      const scene = await Scene.start();
      const operator = scene.operator();
      await operator.applied({ servers: { n: bare } });
      for (const each of edits) await operator.applied({ ...inX, servers: { ...each } });
      const bought = scene.live;
      expect(bought.servers).toHaveLength(1);
      operator.loseState();
      expect((await operator.apply()).code).toBe(0);
      expect(scene.live).toEqual(bought);
    });
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
