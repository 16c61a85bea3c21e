import { describe, expect, test } from 'vitest';
import { Scene } from './edits-scene.ts';

const size = { server_type: 'sliders-1', image: 'ubuntu-24.04', memory_mb: 1024, disk_gb: 20 };
const servers = (cores: number, names: readonly string[], more: object) => ({
  settings: { max_deletions: 9 },
  servers: Object.fromEntries(names.map((name) => [name, { ...size, cores, ...more }])),
});
const firewall = { enabled: true, policy_in: 'drop' };
const newFirst = { public_ipv4: { new: true }, firewall, replace: 'allowed' };
const oldFirst = { ...newFirst, replace: { order: 'delete_first' } };
/** More than the emulator can host. */
const tooLarge = 64;
const strict = { sizeBounds: 'on', besideUnknownField: 'everything' } as const;
const five = ['a', 'b', 'c', 'd', 'e'];
/** Of each server: its size, and its number of addresses. */
const sizes = ({ project }: Scene) =>
  project.servers.map(({ id, cores }) => [
    cores,
    project.ips.filter(({ serverId }) => serverId === id).length,
  ]);

describe('src/cli: a refused replacement costs no server', () => {
  test.each([
    ['two, the new one first', ['a', 'b'], newFirst],
    ['two, the old one first', ['a', 'b'], oldFirst],
    ['five, the new one first', five, newFirst],
    ['five, the old one first', five, oldFirst],
  ])('a size that the API refuses: %s', async (_, names, more) => {
    const scene = await Scene.start(strict);
    const operator = scene.operator();
    await operator.applied(servers(1, names, more));
    const before = scene.live;

    operator.write(servers(tooLarge, names, more));
    const { code, blocked } = await operator.apply();

    expect(code).toBe(3);
    expect(blocked[0]).toMatchObject({ key: 'servers.a', code: 'invalid_request' });
    expect(blocked[0]?.resolve).toMatch(/correct `cores` at vdcsync\.yaml:\d+:\d+/);
    expect(scene.live).toEqual(before);
    operator.write(servers(2, names, more));
    await operator.converge({});
    expect(sizes(scene)).toEqual(names.map(() => [2, 1]));
    expect(scene.project.ips).toHaveLength(names.length);
  });

  test.each([
    ['402, the new one first', newFirst, { standing: 'unpaid' }],
    ['402, the old one first', oldFirst, { standing: 'unpaid' }],
  ] as const)('%s', async (_, more, { standing }) => {
    const scene = await Scene.start({ ...strict, paymentCheck: 'beforeKey' });
    const operator = scene.operator();
    await operator.applied(servers(1, ['web'], more));
    const before = scene.live;
    scene.emulator.mutate({ do: 'set_standing', standing });

    operator.write(servers(2, ['web'], more));
    const { code, blocked } = await operator.apply();

    expect([code, blocked.map((each) => each.code)]).toEqual([
      3,
      expect.arrayContaining(['payment_required']),
    ]);
    expect(scene.live).toEqual(before);
  });

  test('no graphics cards are free: the old server stays until they are', async () => {
    const gpu = (image: string) => ({
      servers: {
        gpu: {
          ...{ server_type: 'gpu-fixed', gpu_package: 'l40s-1', image },
          replace: { order: 'create_first' },
        },
      },
    });
    const scene = await Scene.start();
    const operator = scene.operator();
    await operator.applied(gpu('ubuntu-24.04'));
    const before = scene.live;
    for (const { packages } of scene.emulator.world.serverTypes)
      for (const sold of packages) sold.capacity = 0;

    operator.write(gpu('debian-13'));
    await operator.vdcsync('apply', '--yes', '--timeout', '10m');

    expect(scene.live).toEqual(before);
  });
});

describe('src/engine/run/prove-plan.ts: `plan --prove`', () => {
  test('`plan --prove` names the line of a refused value, creates nothing, and changes no plan', async () => {
    const scene = await Scene.start(strict);
    const operator = scene.operator();
    operator.write({ ips: { web: {} }, ...servers(tooLarge, ['web'], {}) });
    const json = async (...args: string[]) => {
      const { code, stdout, stderr } = await operator.vdcsync('plan', '--format', 'json', ...args);
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
      return JSON.parse(stdout);
    };
    const { digest } = await json();

    const proved = await json('--prove');

    expect(proved.blocked).toMatchObject([
      {
        key: 'servers.web',
        code: 'invalid_request',
        resolve: expect.stringMatching(/`cores` at .*:\d+:\d+/),
      },
    ]);
    expect(proved.proofs).toMatchObject({
      writes: 4,
      results: expect.arrayContaining([
        { key: 'ips.web', outcome: 'accepted', unproven: [] },
        { key: 'servers.web', outcome: 'refused', unproven: [] },
      ]),
    });
    expect(scene.live).toMatchObject({ servers: [], ips: [] });
    const after = await json();
    expect([after.digest, after.blocked]).toEqual([digest, []]);
    const { stdout } = await operator.vdcsync('history');
    expect(stdout).toContain('proof of servers.web: creates nothing');
  });

  test('`plan --prove` with a token that may only read is an error', async () => {
    const scene = await Scene.start(strict, 'read');
    const operator = scene.operator();
    operator.write(servers(1, ['web'], {}));

    const { code, stderr } = await operator.vdcsync('plan', '--prove');

    expect(code).toBe(1);
    expect(stderr).toContain('needs a token that may write');
  });
});
