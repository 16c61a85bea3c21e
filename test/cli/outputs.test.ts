import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Outputs } from '../../src/cli/outputs/outputs.ts';
import { lacks } from '../support/programs.ts';
import { oneNetwork, served } from './run.ts';
import { emulated, Workspace } from './workspace.ts';

const shop = readFileSync(new URL('../../examples/shop.yaml', import.meta.url), 'utf8');

let place: Workspace;
let live: Outputs;
const written = async (format: string, name: string) => {
  const path = join(place.cwd, name);
  await place.out(`output --format ${format} --out ${path}`);
  return path;
};
const printed = (program: string, ...args: readonly string[]) =>
  execFileSync(program, args, { encoding: 'utf8', stdio: 'pipe', cwd: place.cwd });

beforeAll(async () => {
  place = emulated(shop);
  await place.out('apply --yes');
  live = await place.json('output');
});

describe('src/cli/commands/outputs.ts: output', () => {
  test('--offline prints the same ids and public addresses without the API', async () => {
    const state: Outputs = await place.json('output --offline');
    const known = ({ servers, ips, networks }: Outputs) => ({
      servers: Object.values(servers).map(({ id, name, public_ipv4 }) => [id, name, public_ipv4]),
      ...{ ips, networks },
    });
    expect(known(state)).toEqual(known(live));
    expect(state.observed_at).toBeNull();
  });

  test('--key prints one resource in the same structure, and refuses an unbound key', async () => {
    const made: Outputs = await place.json('output --offline --key servers.db-1');
    expect(Object.keys(made.servers)).toEqual(['db-1']);
    expect(made.ips).toEqual({});
    expect(await place.refused(64, 'output --offline --key servers.nope')).toContain('vdcsync status');
  });

  test('env: a shell reads each value under its JSON path', async () => {
    const script = '. "$0"; echo "$SERVERS_WEB_1_PUBLIC_IPV4 $NETWORKS_BACKEND_CIDR"';
    const shown = printed('sh', '-euc', script, await written('env', 'project.env'));
    expect(shown.trim()).toBe(`${live.servers['web-1']?.public_ipv4} 10.20.0.0/24`);
  });

  test.skipIf(lacks('ansible-inventory'))(
    'ansible: ansible-inventory reads the hosts and groups',
    async () => {
      const path = await written('ansible', 'inventory.yaml');
      const listed = JSON.parse(printed('ansible-inventory', '-i', path, '--list'));
      expect(listed._meta.hostvars['web-1'].ansible_host).toBe(live.servers['web-1']?.public_ipv4);
      expect(listed._meta.hostvars['db-1'].ansible_host).toMatch(/^10\.20\.0\./);
      expect([...listed.network_backend.hosts].sort()).toEqual(['db-1', 'web-1']);
    },
  );

  test.skipIf(lacks('ssh'))('ssh-config: ssh finds each server by its name', async () => {
    const found = printed('ssh', '-G', '-F', await written('ssh-config', 'ssh.conf'), 'web-1');
    expect(found.split('\n')).toContain(`hostname ${live.servers['web-1']?.public_ipv4}`);
  });

  test('omits a deleted server, and names the server on standard error', async () => {
    const { emulator, env, files } = await served({ speed: 600 });
    const server = '{server_type: plans-1, plan_id: 51, image: debian-13, network_interfaces: [backend]}';
    const own = new Workspace({ ...files, 'vdcsync.yaml': `${oneNetwork}servers:\n  a: ${server}\n` }, env);
    await own.out('apply --yes');
    emulator.mutate({ do: 'delete_server', id: emulator.world.projects[0]?.servers[0]?.id ?? 0 });
    const { stdout, stderr } = await own.run('output');
    expect((JSON.parse(stdout) as Outputs).servers).toEqual({});
    expect(stderr).toContain('servers.a');
  });

  test('prints the unbound networks and private addresses of an adopted server', async () => {
    const own = emulated(undefined, { 'shop.yaml': shop });
    await own.out('apply --yes -f shop.yaml');
    own.remove('.vdcsync/state.db');
    await own.out('export --out vdcsync.yaml');
    await own.out('apply --yes');
    const { servers }: Outputs = await own.json('output');
    const addresses = Object.values(servers).map((each) => each.network_interfaces.backend?.addresses[0]);
    expect(addresses).toEqual([expect.stringMatching(/^10\.20\.0\./)]);
  });

  test('refuses two names that are equal in the output format', async () => {
    const own = emulated('version: 1\nproject: {id: 4711}\nips: {a-b: {}, a_b: {}}\n');
    await own.out('apply --yes');
    expect(await own.refused(1, 'output --offline --format env')).toMatch(/ips\.a-b.*ips\.a_b/);
  });

  test('ansible: names that are YAML 1.1 booleans stay names', async () => {
    const own = emulated(shop.replaceAll('web-1', 'yes'));
    await own.out('apply --yes');
    const stdout = await own.out('output --format ansible');
    expect(Object.keys(parse(stdout, { version: '1.1' }).all.hosts)).toContain('yes');
  });
});
