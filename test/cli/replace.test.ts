import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import { type Operator, Scene } from './edits-scene.ts';

const size = { server_type: 'sliders-1', image: 'ubuntu-24.04', memory_mb: 1024, disk_gb: 20 };
const firewall = { enabled: true, policy_in: 'drop' };
const networks = { backend: { cidr: '10.20.0.0/24' } };

/** A server with a firewall and a network interface. */
const web = (cores: number, more: object) => ({
  networks,
  servers: { web: { ...size, cores, firewall, network_interfaces: ['backend'], ...more } },
});
const newFirst = (cores: number) => web(cores, { public_ipv4: { new: true }, replace: 'allowed' });

async function scene(readings: Partial<Readings> = {}): Promise<{ scene: Scene; operator: Operator }> {
  const started = await Scene.start({ sizeBounds: 'on', besideUnknownField: 'everything', ...readings });
  return { scene: started, operator: started.operator() };
}

/** One server and one address remain, as the spec asks. */
function expectOne({ project }: Scene, cores: number): void {
  expect(project.servers).toMatchObject([{ cores, firewall: { enabled: true } }]);
  expect(project.ips).toMatchObject([{ serverId: project.servers[0]?.id }]);
}

/** The status of each key. */
const standings = (resources: readonly { readonly key: string; readonly standing: string }[]) =>
  Object.fromEntries(resources.map(({ key, standing }) => [key, standing]));

describe('src/cli: a retired server that cannot be deleted', () => {
  test('plan, status and the next apply name it as billed', async () => {
    const { scene: played, operator } = await scene();
    await operator.applied(newFirst(1));
    const [old] = played.live.servers;
    played.emulator.setFaults([
      faultRule({ path: 'delete_server' }, { do: 'answer', status: 403, code: 'locked', effect: 'none' }),
    ]);
    operator.write(newFirst(2));
    const { code, blocked } = await operator.apply();
    const retired = `servers.web~${old}`;
    const json = async (command: string) =>
      JSON.parse((await operator.vdcsync(command, '--format', 'json')).stdout);
    const [plan, status] = [await json('plan'), await json('status')];

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
    played.emulator.setFaults([]);
    await operator.converge({});
    expectOne(played, 2);
  });

  test('the impact of the next replacement names the address of its own server', async () => {
    const { scene: played, operator } = await scene();
    await operator.applied(newFirst(1));
    played.emulator.setFaults([
      faultRule(
        { path: 'release_ip' },
        { do: 'answer', status: 403, code: 'insufficient_privileges', effect: 'none' },
      ),
    ]);
    operator.write(newFirst(2));
    await operator.apply();
    played.emulator.setFaults([]);
    operator.write(newFirst(1));

    const { stdout } = await operator.vdcsync('plan');

    const [project] = played.emulator.world.projects;
    const [server] = played.live.servers;
    const own = project?.ips.find(({ serverId }) => String(serverId) === String(server))?.address;
    expect(project?.ips).toHaveLength(2);
    expect(stdout).toContain(`its address ${own} is deleted`);
    expect(stdout.match(/its address .* is deleted/g)).toHaveLength(1);
  });
});
