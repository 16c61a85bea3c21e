import { describe, expect, test } from 'vitest';
import { load, rig } from '../support/rig.ts';
import { converges, executed, shop as small } from './shop.ts';

const shop = `
settings: {prune: true, max_deletions: 10}
networks:
  default: {managed: false}
  backend: {cidr: 10.20.0.0/24}
ips:
  web: {server_type_id: 3}
isos:
  rescue: {url: "https://mirror.example.com/rescue.iso"}
servers:
  web-1:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 4
    memory_mb: 8192
    disk_gb: 80
    ssh_keys: [101]
    public_ipv4: {ip: web}
    network_interfaces: [backend]
    firewall:
      enabled: true
      policy_in: drop
      rules:
        - {direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "22,443", description: ssh and https}
    backup: {max_age: 24h}
  web-2:
    server_type: 5
    plan_id: 51
    image: debian-13
    public_ipv4: {new: true}
    network_interfaces: [backend]
  gpu-1:
    server_type: gpu-fixed
    gpu_package: [l40s-2, l40s-1]
    image: ubuntu-24.04
`;

describe('src/engine/run/apply.ts', () => {
  test('converges on the whole of a spec, and the next plan is empty', async () => {
    const { plan, apply, events, emulator } = rig();

    const report = await apply(shop);
    const again = await plan(shop);

    expect(
      { outcome: report.outcome, blocked: report.blocked },
      JSON.stringify(events.slice(-30), null, 1),
    ).toEqual({ outcome: 'converged', blocked: [] });
    expect(again.operations).toEqual([]);
    expect(emulator.billed().length).toBeGreaterThan(0);
  });

  test('removes all of it again; what is billed still is the backup, and the plan said so', async () => {
    const { apply, emulator } = rig();
    await apply(shop);

    const report = await apply('settings: {prune: true, max_deletions: 10}\n');

    expect(report.outcome).toBe('converged');
    expect(emulator.billed().map(({ kind }) => kind)).toEqual(['backup']);
  });

  test('of many servers in flight at once none is taken for an unmanaged one', async () => {
    const server = `{server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}, network_interfaces: [n]}`;
    const names = Array.from({ length: 60 }, (_, at) => `  web-${at}: ${server}\n`);

    const { results } = await rig().apply(`networks: {n: {cidr: 10.9.0.0/24}}\nservers:\n${names.join('')}`);

    expect(results.filter(({ outcome }) => outcome !== 'done')).toEqual([]);
  });

  test('two runs at once are one after the other', async () => {
    const played = rig();

    await played.clock.run(
      Promise.all([
        played.engine.apply(load(small), { approve: async () => true }),
        played.engine.apply(load(small), { approve: async () => true }),
      ]),
    );

    await converges(played, small);
    expect(executed(played, 'ip')).toBe(2);
  });
});
