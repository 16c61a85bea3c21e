import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Outputs } from '../../src/cli/outputs/outputs.ts';
import { lacks } from '../support/programs.ts';
import { folderWith, inProcess, oneNetwork, served } from './run.ts';

const shop = readFileSync(new URL('../../examples/shop.yaml', import.meta.url), 'utf8');

let cwd: string;
const output = async (...args: string[]) => {
  const { code, stdout, stderr } = await inProcess(['output', ...args], { cwd });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
};
const written = async (format: string, name: string) => {
  const path = join(cwd, name);
  await output('--emulator', '--format', format, '--out', path);
  return path;
};

beforeAll(async () => {
  cwd = folderWith({ 'vdcsync.yaml': shop });
  await inProcess(['apply', '--emulator', '--yes'], { cwd });
});

describe('src/cli/commands/outputs.ts: output', () => {
  test('--offline gives the same ids and public addresses, and asks no API', async () => {
    const live = JSON.parse(await output('--emulator')) as Outputs;
    const state = JSON.parse(await output('--offline')) as Outputs;
    const known = ({ servers, ips, networks }: Outputs) => ({
      servers: Object.values(servers).map(({ id, name, public_ipv4 }) => [id, name, public_ipv4]),
      ...{ ips, networks },
    });
    expect(known(state)).toEqual(known(live));
    expect(state.observed_at).toBeNull();
  });

  test('--key keeps one resource, and the shape; a key that is not bound is refused', async () => {
    const made = JSON.parse(await output('--offline', '--key', 'servers.db-1')) as Outputs;
    expect(Object.keys(made.servers)).toEqual(['db-1']);
    expect(made.ips).toEqual({});
    const { code, stderr } = await inProcess(['output', '--offline', '--key', 'servers.nope'], { cwd });
    expect(code).toBe(64);
    expect(stderr).toContain('vdcsync status');
  });

  test('env: a shell reads it, each value under the path that it has in the JSON', async () => {
    const made = JSON.parse(await output('--emulator')) as Outputs;
    const path = await written('env', 'project.env');
    const shown = execFileSync('sh', [
      '-euc',
      '. "$0"; echo "$SERVERS_WEB_1_PUBLIC_IPV4 $NETWORKS_BACKEND_CIDR"',
      path,
    ]);
    expect(String(shown).trim()).toBe(`${made.servers['web-1']?.public_ipv4} 10.20.0.0/24`);
  });

  test.skipIf(lacks('ansible-inventory'))(
    'ansible: ansible-inventory takes it, with hosts and groups',
    async () => {
      const path = await written('ansible', 'inventory.yaml');
      const made = JSON.parse(await output('--emulator')) as Outputs;
      const listed = JSON.parse(
        execFileSync('ansible-inventory', ['-i', path, '--list'], { encoding: 'utf8', cwd }),
      );
      expect(listed._meta.hostvars['web-1'].ansible_host).toBe(made.servers['web-1']?.public_ipv4);
      expect(listed._meta.hostvars['db-1'].ansible_host).toMatch(/^10\.20\.0\./);
      expect([...listed.network_backend.hosts].sort()).toEqual(['db-1', 'web-1']);
    },
  );

  test.skipIf(lacks('ssh'))('ssh-config: ssh finds each server by its name', async () => {
    const path = await written('ssh-config', 'ssh.conf');
    const made = JSON.parse(await output('--emulator')) as Outputs;
    const found = execFileSync('ssh', ['-G', '-F', path, 'web-1'], { encoding: 'utf8', stdio: 'pipe' });
    expect(found.split('\n')).toContain(`hostname ${made.servers['web-1']?.public_ipv4}`);
  });

  test('a server that is gone is left out and named on standard error', async () => {
    const { emulator, env, files } = await served({ speed: 600 });
    const server = '{server_type: plans-1, plan_id: 51, image: debian-13, network_interfaces: [backend]}';
    const folder = folderWith({ ...files, 'vdcsync.yaml': `${oneNetwork}servers:\n  a: ${server}\n` });
    await inProcess(['apply', '--yes'], { cwd: folder, env });
    emulator.mutate({ do: 'delete_server', id: emulator.world.projects[0]?.servers[0]?.id ?? 0 });
    const { stdout, stderr } = await inProcess(['output'], { cwd: folder, env });
    expect((JSON.parse(stdout) as Outputs).servers).toEqual({});
    expect(stderr).toContain('servers.a');
  });

  test('an adopted server: its networks and private addresses, which are bound to no key', async () => {
    const folder = folderWith({ 'shop.yaml': shop });
    const run = (...args: string[]) => inProcess([...args, '--emulator'], { cwd: folder });
    await run('apply', '--yes', '-f', 'shop.yaml');
    rmSync(join(folder, '.vdcsync/state.db'));
    await run('export', '--out', 'vdcsync.yaml');
    await run('apply', '--yes');
    const { servers } = JSON.parse((await run('output')).stdout) as Outputs;
    const addresses = Object.values(servers).map((each) => each.network_interfaces.backend?.addresses[0]);
    expect(addresses).toEqual([expect.stringMatching(/^10\.20\.0\./)]);
  });

  test('two names that become one in a format are refused', async () => {
    const folder = folderWith({
      'vdcsync.yaml': 'version: 1\nproject: {id: 4711}\nips: {a-b: {}, a_b: {}}\n',
    });
    await inProcess(['apply', '--emulator', '--yes'], { cwd: folder });
    const { code, stderr } = await inProcess(['output', '--offline', '--format', 'env'], { cwd: folder });
    expect(code).toBe(1);
    expect(stderr).toContain('ips.a-b');
    expect(stderr).toContain('ips.a_b');
  });

  test('ansible: words that YAML 1.1 takes for truth values stay names', async () => {
    const folder = folderWith();
    writeFileSync(join(folder, 'vdcsync.yaml'), shop.replaceAll('web-1', 'yes'));
    await inProcess(['apply', '--emulator', '--yes'], { cwd: folder });
    const { stdout } = await inProcess(['output', '--emulator', '--format', 'ansible'], { cwd: folder });
    expect(Object.keys(parse(stdout, { version: '1.1' }).all.hosts)).toContain('yes');
  });
});
