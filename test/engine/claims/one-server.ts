import type { Rig } from '../../support/rig.ts';

/** The spec of one server with an address of its own, and what tests ask about it. */
export const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
export const head = 'settings: {prune: true, max_deletions: 10}\n';
export const web = `servers:\n  web: {${size}, public_ipv4: {new: true}, replace: allowed}\n`;

/** Servers and addresses that are there. */
export const count = ({ project }: Rig) => [project.servers.length, project.ips.length];
