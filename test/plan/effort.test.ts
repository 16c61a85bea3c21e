import { describe, expect, test } from 'vitest';
import { rig } from '../support/rig.ts';

const servers = (count: number) =>
  `networks: {backend: {cidr: 10.20.0.0/20}}\nservers:\n${Array.from(
    { length: count },
    (_, at) =>
      `  w${at}: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}, network_interfaces: [backend], firewall: {enabled: true}}\n`,
  ).join('')}`;

const prune = 'settings: {prune: true, max_deletions: 1000}\n';

describe('src/plan/totals.ts', () => {
  test.each([
    ['one network', 'networks: {a: {cidr: 10.1.0.0/24}}\n'],
    ['ten servers', servers(10)],
    ['forty servers', servers(40)],
  ])('%s: the plan shows the exact writes, and no more reads or time than the run takes', async (_name, text) => {
    const { apply, plan, emulator } = rig();
    for (const step of [text, prune]) {
      const { effort } = await plan(step);
      const before = emulator.requests.length;
      const { durationMs, outcome } = await apply(step);
      const sent = emulator.requests.slice(before);
      const reads = sent.filter(({ method }) => method === 'GET').length;

      expect(outcome).toBe('converged');
      expect(effort.writes).toBe(sent.length - reads);
      expect(effort.reads).toBeLessThanOrEqual(reads);
      expect(effort.reads).toBeGreaterThan(reads / 3);
      expect(effort.seconds_at_least).toBeLessThanOrEqual(durationMs / 1000);
      expect(effort.seconds_at_least).toBeGreaterThanOrEqual((Math.ceil(effort.writes / 20) - 1) * 60);
    }
    expect((await plan(prune)).effort).toEqual({ writes: 0, reads: 0, seconds_at_least: 0 });
  });
});
