import { expect } from 'vitest';
import { expectFixedPoint, expectInvariants } from '../support/invariants.ts';
import { applyWithHelp } from '../support/operator.ts';
import type { Rig } from '../support/rig.ts';

export const hour = 3_600_000;
export const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';
export const ips = (...names: string[]) =>
  `${head}ips:\n${names.map((name) => `  ${name}: {server_type_id: 3}\n`).join('')}`;
export const server = (more = '') =>
  `${head}servers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}${more}}\n`;
export const gpu = `${head}servers:\n  gpu: {server_type: gpu-fixed, image: ubuntu-24.04, gpu_package: [l40s-2, l40s-1]}\n`;
export const shop = `${server(', network_interfaces: [backend], firewall: {enabled: true, policy_in: drop, rules: []}')}networks:
  backend: {cidr: 10.20.0.0/24}
ips:
  one: {server_type_id: 3}
  two: {server_type_id: 3}
`;

export function executed({ emulator }: Rig, kind: string): number {
  return emulator.world.executions.filter((each) => each.kind === kind).length;
}

export async function converges(played: Rig, spec: string): Promise<void> {
  const { reports } = await applyWithHelp(played, spec);
  expect(reports.at(-1)?.outcome, JSON.stringify(reports.at(-1)?.blocked)).toBe('converged');
  expectFixedPoint(await played.plan(spec));
  await expectInvariants(played);
}
