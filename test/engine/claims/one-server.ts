import { expect } from 'vitest';
import { memoryState } from '../../../src/state/sqlite-driver.ts';
import type { Rig } from '../../support/rig.ts';

/** The spec of one server with an address of its own, and what tests ask about it. */
export const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
export const head = 'settings: {prune: true, max_deletions: 10}\n';
export const web = `servers:\n  web: {${size}, public_ipv4: {new: true}, replace: allowed}\n`;

export const project = ({ emulator }: Rig) => emulator.world.projects[0] ?? expect.fail('no project');
/** Servers and addresses that are there. */
export const count = (played: Rig) => [project(played).servers.length, project(played).ips.length];
/** A state that knows nothing yet. */
export const state = (played: Rig, lineage: string) =>
  memoryState({ createdAt: played.clock.now(), lineage });
