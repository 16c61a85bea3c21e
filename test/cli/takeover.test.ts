import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Plan } from '../../src/core/plan.ts';
import { type RunningEmulator, startEmulator } from '../../src/emulator/http-server.ts';
import { loadProfile } from '../../src/emulator/profile.ts';
import { folderWith, inProcess } from './run.ts';

const profile = readFileSync(new URL('../../examples/profile.yaml', import.meta.url), 'utf8');
const speed = 2_000;

let emulator: RunningEmulator;
let env: Record<string, string>;

/** Twenty servers that somebody made elsewhere, each of them odd in some way. */
beforeAll(async () => {
  emulator = await startEmulator({ speed, profile: loadProfile(profile) });
  const { mutate } = emulator.emulator;
  mutate({ do: 'add_network', name: 'back end', cidr: '10.20.0.0/24' });
  mutate({ do: 'add_network', name: 'wide', cidr: '10.20.0.0/16' });
  for (let at = 1; at <= 20; at++) {
    const server = mutate({
      do: 'add_server',
      name: at % 7 === 0 ? `Web "${at}" @home` : `web-${at % 5}`,
      public: at % 4 !== 0,
    }) as { id: number; cards: object[]; nextCard: number };
    if (at % 3 === 0)
      server.cards.push({
        id: `net${server.nextCard++}`,
        public: false,
        networkId: 32,
        ips: [],
        hidden: false,
      });
    if (at % 4 === 1) {
      mutate({
        do: 'set_firewall',
        server_id: server.id,
        enabled: true,
        rules: [
          {
            direction: 'in',
            action: 'accept',
            enabled: true,
            protocol: 'tcp',
            destination_port: '22,443',
            description: 'a: b',
          },
        ],
      });
    }
  }
  mutate({ do: 'add_ip' });
  env = { VDC_BASE_URL: emulator.baseUrl, VDC_TOKEN: emulator.projects[0]?.tokens.readWrite ?? '' };
});

afterAll(() => emulator.close());

function folder(operations: boolean): string {
  const text = operations
    ? profile.replace('limits:', `time_scale: ${speed}\nlimits:`)
    : `time_scale: ${speed}\n`;
  return folderWith({ 'profile.yaml': text });
}

describe('src/cli/commands: taking over a project', () => {
  test('a file that is there is not overwritten', async () => {
    const cwd = folder(false);
    writeFileSync(`${cwd}/mine.yaml`, 'mine');
    const { code, stderr } = await inProcess(['export', '--out', 'mine.yaml'], { cwd, env });
    expect(code).toBe(1);
    expect(stderr).toContain('does not overwrite it');
    expect(readFileSync(`${cwd}/mine.yaml`, 'utf8')).toBe('mine');
  });

  test('a moved server keeps its name, and a plan changes nothing', async () => {
    const server = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
    const file = (entry: string) => `version: 1\nproject: { id: 4711 }\nservers:\n  ${entry}\n`;
    const cwd = folderWith({
      'a.yaml': file(`w: {${server}, public_ipv4: {new: true}}`),
      'b.yaml': file(`w2: {moved: {from: w}, ${server}, public_ipv4: {new: true}}`),
    });
    const call = (...args: string[]) => inProcess([...args, '--emulator'], { cwd });
    for (const name of ['a.yaml', 'b.yaml']) expect((await call('apply', '--yes', '-f', name)).code).toBe(0);
    expect((await call('export', '--out', 'ex.yaml')).code).toBe(0);
    const text = readFileSync(`${cwd}/ex.yaml`, 'utf8');
    const { id, name } = parse(text).servers.w2;
    expect(name).toBe('w');
    const plan = JSON.parse((await call('plan', '-f', 'ex.yaml', '--format', 'json')).stdout) as Plan;
    expect(plan.blocked).toEqual([]);
    expect([...new Set(plan.operations.map(({ verb }) => verb))]).toEqual(['adopt']);

    writeFileSync(`${cwd}/c.yaml`, file(`w2: {id: ${id}, name: other, public_ipv4: {new: true}}`));
    const other = JSON.parse((await call('plan', '-f', 'c.yaml', '--format', 'json')).stdout) as Plan;
    expect(other.blocked.filter(({ key }) => key === 'servers.w2')).toMatchObject([
      {
        code: 'entry_incomplete',
        reason: expect.stringMatching(/^name is "w", not "other"\. .* lacks server_type and image$/),
        resolve: 'write `name: w` in servers.w2 | set `server_type` and `image` in servers.w2',
      },
    ]);
  });

  test('of the embedded emulator, where nothing is yet', async () => {
    const { code, stdout } = await inProcess(['export', '--emulator'], { cwd: folderWith() });
    expect(code).toBe(0);
    expect(parse(stdout)).toEqual({
      version: 1,
      project: { id: 4711 },
      networks: { default: { id: 31, managed: false } },
    });
  });
});
