import { describe, expect, test } from 'vitest';
import type { Readings } from '../../src/emulator/readings.ts';
import { Scene, type Sections } from './edits-scene.ts';

const size = { server_type: 'sliders-1', image: 'ubuntu-24.04', memory_mb: 1024, disk_gb: 20 };
const firewall = { enabled: true, policy_in: 'drop' };
const networks = { backend: { cidr: '10.20.0.0/24' } };

/** A server with a firewall and a network interface. */
const web = (cores: number, more: object) => ({
  networks,
  servers: { web: { ...size, cores, firewall, network_interfaces: ['backend'], ...more } },
});
const newFirst = (cores: number) => web(cores, { public_ipv4: { new: true }, replace: 'allowed' });
const oldFirst = (cores: number) =>
  web(cores, { public_ipv4: { new: true }, replace: { order: 'delete_first' } });
/** The new server needs the address of the old one, so the old one is deleted first. */
const named = (cores: number) => ({
  ips: { web: {} },
  ...web(cores, { public_ipv4: { ip: 'web' }, replace: 'allowed' }),
});
const orders = [
  ['the new server first', newFirst],
  ['the old server first', oldFirst],
  ['the old server first, for its address', named],
] as const;

/** Each server with its size, and each address with its server. */
const shown = ({ project }: Scene) => ({
  servers: project.servers.map(({ id, cores, firewall: { enabled } }) => [id, cores, enabled]),
  ips: project.ips.map(({ id, serverId }) => [id, serverId]),
});

const applied = (sections: Sections, readings: Partial<Readings> = {}) =>
  Scene.applied(sections, { sizeBounds: 'on', besideUnknownField: 'everything', ...readings });

/** One server and one address remain, as the spec asks. */
function expectOne({ project }: Scene, cores: number): void {
  expect(project.servers).toMatchObject([{ cores, firewall: { enabled: true } }]);
  expect(project.ips).toMatchObject([{ serverId: project.servers[0]?.id }]);
}

describe('src/cli: a replacement that the API refuses', () => {
  const refusals = [
    ['402', { paymentCheck: 'beforeKey' }, { status: 402, code: 'payment_required' }],
    ['403 for the quota', {}, { status: 403, code: 'quota_exceeded' }],
    ['a permanent 409', {}, { status: 409, code: 'name_taken' }],
  ] as const;
  const cases = refusals.flatMap(([name, readings, answer]) =>
    orders.map(([order, file]) => [name, order, file, readings, answer] as const),
  );

  test.each(cases)('%s, %s: the server and its address stay', async (name, order, file, readings, answer) => {
    const { scene: played, operator } = await applied(file(1), readings);
    const before = shown(played);
    operator.declare(file(2));
    await played.answering('create_server', answer, () => operator.run('apply --yes --timeout 5m'));

    // The entry asks for the deletion first, because the old server may be the reason of the conflict.
    if (file !== oldFirst || answer.status !== 409)
      expect(shown(played), `${name}, ${order}`).toEqual(before);
    if (answer.status !== 409 && file !== newFirst) await operator.out('resolve servers.web --retry');
    await operator.converge({});
    expectOne(played, 2);
  });

  test('a conflict that lasts ends the apply, and the entry may then ask for the deletion first', async () => {
    const { scene: played, operator } = await applied(newFirst(1));
    const [old] = played.live.servers;
    const quota = { status: 409, code: 'quota_exceeded' };
    await played.answering('create_server', quota, async () => {
      const { code, blocked } = await operator.edit(newFirst(2));
      expect([code, blocked[0]?.code, blocked[0]?.resolve]).toEqual([
        3,
        'quota_exceeded',
        expect.stringContaining('write `replace: {order: delete_first}` in servers.web'),
      ]);
      expect(played.live.servers).toEqual([old]);
      operator.declare(oldFirst(2));
      await operator.run('apply --yes --timeout 30m');
      expect(played.live.servers).toEqual([]);
    });
    await operator.converge({});
    expectOne(played, 2);
  });

  test.each([
    ['another package', 'l40s-2', 'ubuntu-24.04'],
    ['the same package', 'l40s-1', 'debian-13'],
  ])('the API has no free GPU capacity, and the new server has %s', async (_, gpu_package, image) => {
    const gpu = (entry: object) => ({
      servers: { gpu: { server_type: 'gpu-fixed', replace: 'allowed', ...entry } },
    });
    const { scene: played, operator } = await applied(gpu({ gpu_package: 'l40s-1', image: 'ubuntu-24.04' }));
    const [old] = played.live.servers;
    for (const { packages } of played.emulator.world.serverTypes)
      for (const sold of packages) sold.capacity = 0;

    operator.declare(gpu({ gpu_package, image }));
    await operator.run('apply --yes --timeout 10m');

    // The deletion of the old server frees the cards that the same package needs.
    if (gpu_package === 'l40s-1')
      expect(played.project.servers).toMatchObject([{ id: expect.not.toSatisfy((id) => id === old) }]);
    else expect(played.live.servers).toEqual([old]);
    for (const { packages } of played.emulator.world.serverTypes)
      for (const sold of packages) sold.capacity = 1;
    await operator.converge({});
    expect(played.project.servers).toMatchObject([{ gpuPackage: gpu_package }]);
    expect(played.live.servers).not.toEqual([old]);
  });
});

describe('src/cli: an edit after the first half of a replacement', () => {
  test('a rename while the new server waits for a payment releases the retired address', async () => {
    const { scene: played, operator } = await applied(oldFirst(1));
    played.emulator.mutate({ do: 'set_standing', standing: 'unpaid' });
    await operator.edit(oldFirst(2));
    expect(played.live.servers).toEqual([]);
    played.emulator.mutate({ do: 'set_standing', standing: 'active' });

    const { networks: nets, servers } = oldFirst(2);
    const shop = { ...servers.web, moved: { from: 'servers.web' } };
    operator.declare({ networks: nets, servers: { shop } });
    await operator.converge({});

    expectOne(played, 2);
  });
});

/** The status of each key. */
const standings = (resources: readonly { readonly key: string; readonly standing: string }[]) =>
  Object.fromEntries(resources.map(({ key, standing }) => [key, standing]));

describe('src/cli: a retired server that cannot be deleted', () => {
  test('plan, status and the next apply report the server as billed', async () => {
    const { scene: played, operator } = await applied(newFirst(1));
    const [old] = played.live.servers;
    const retired = `servers.web~${old}`;
    const { code, blocked } = await played.answering('delete_server', { status: 403, code: 'locked' }, () =>
      operator.edit(newFirst(2)),
    );
    const [plan, status] = [await operator.json('plan'), await operator.json('status')];

    const keysOf = (each: readonly { readonly key: string }[]) => each.map(({ key }) => key);
    expect(code).toBe(3);
    expect(keysOf(blocked)).toContain(retired);
    expect(keysOf(plan.blocked)).toContain(retired);
    expect(played.live.servers).toContain(old);
    expect(status.billed.map(({ key }: { key: string }) => key)).toEqual(
      expect.arrayContaining(['servers.web', retired, `${retired}.public_ipv4`]),
    );
    expect(standings(status.resources)).toMatchObject({
      'servers.web': 'converged',
      [retired]: 'blocked',
      [`${retired}.firewall`]: 'retiring',
    });
    await operator.converge({});
    expectOne(played, 2);
  });

  test('the impact of the next replacement names the address of the current server', async () => {
    const { scene: played, operator } = await applied(newFirst(1));
    await played.answering('release_ip', { status: 403, code: 'insufficient_privileges' }, () =>
      operator.edit(newFirst(2)),
    );
    operator.declare(newFirst(1));

    const { stdout } = await operator.run('plan');

    const { ips, servers } = played.project;
    const own = ips.find(({ serverId }) => serverId === servers[0]?.id)?.address;
    expect(ips).toHaveLength(2);
    expect(stdout).toContain(`its address ${own} is deleted`);
    expect(stdout.match(/its address .* is deleted/g)).toHaveLength(1);
  });
});
