import { describe, expect, test } from 'vitest';
import type { Ip } from '../../src/core/resources.ts';
import { load } from '../support/rig.ts';
import { planOf, worldOf } from './support.ts';

/** Servers with an address of their own in the file, a card, a firewall and a backup: six resources each. */
function file(servers: number): string {
  const names = Array.from({ length: servers }, (_, at) => `n${at}`);
  const entry = (name: string) =>
    `  ${name}: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {ip: ${name}}, network_interfaces: [${name}], firewall: {enabled: true}, backup: {max_age: 24h}}`;
  return [
    'networks:',
    ...names.map((name, at) => `  ${name}: {cidr: 10.${at >> 8}.${at & 255}.0/24}`),
    'ips:',
    ...names.map((name) => `  ${name}: {}`),
    'servers:',
    ...names.map(entry),
    '',
  ].join('\n');
}

/** Milliseconds of the quickest of three. */
function timeOf(work: () => unknown): number {
  const times = [1, 2, 3].map(() => {
    const before = performance.now();
    work();
    return performance.now() - before;
  });
  return Math.min(...times);
}

describe('plan: scale', () => {
  test('planning ten thousand resources takes about ten times as long as a thousand', () => {
    const [small, large] = [170, 1700].map((servers) => {
      const desired = load(file(servers));
      return { desired, ms: timeOf(() => planOf(worldOf(desired))) };
    });

    expect(large?.desired.resources).toHaveLength(10_200);
    expect((large?.ms ?? 0) / (small?.ms ?? 0)).toBeLessThan(30);
  });

  test('so does planning their deletion', () => {
    const [small, large] = [170, 1700].map((servers) => {
      const desired = load(file(servers));
      const at = new Map(
        desired.resources
          .filter(({ parent }) => parent === undefined)
          .map(({ key }, index) => [key, index + 1]),
      );
      const idOf = (key: string) => at.get(key as never) ?? 0;
      const observed = new Map<never, unknown>();
      const ips: Ip[] = [];
      const subjects = desired.resources.map(({ key, kind, parent }) => {
        const own = key.split('.')[1] ?? '';
        const [server, net] = [idOf(`servers.${own}`), idOf(`networks.${own}`)];
        const ip = { id: idOf(key), address: own, server_id: server, primary: true } as unknown as Ip;
        if (kind === 'ip') ips.push(ip);
        const seen = {
          network: {
            id: String(idOf(key)),
            live: { id: idOf(key), name: own, cidr: '', is_default: false, server_count: 1 },
            sameName: [],
          },
          ip: { id: String(idOf(key)), live: ip },
          server: {
            id: String(idOf(key)),
            cards: [{ id: 'net1', public: false, network_id: net, addresses: [] }],
            addresses: [{ ...ip, id: idOf(`ips.${own}`) }],
            backups: 1,
          },
        }[kind as string];
        if (seen !== undefined) observed.set(key as never, seen);
        const binding = {
          key,
          kind,
          id: String(idOf(key)),
          identity: kind === 'ip' ? { address: own } : {},
          applied: null,
          protect: false,
          keep: false,
          boundAt: 0,
        };
        return [
          key,
          {
            key,
            kind,
            ...(parent === undefined ? {} : { parent }),
            ...(parent === undefined ? { binding } : {}),
          },
        ] as const;
      });
      const settings = { ...desired.settings, prune: true, max_deletions: 100_000 };
      const parts = { ips, observed, settings, subjects: new Map(subjects) };
      const make = () => planOf(worldOf(desired, parts));
      return { plan: make(), ms: timeOf(make) };
    });

    expect(large?.plan.summary).toMatchObject({ delete: 5100, blocked: 0 });
    expect((large?.ms ?? 0) / (small?.ms ?? 0)).toBeLessThan(30);
  });
});
