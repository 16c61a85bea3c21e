import type { Blocked } from '../../../src/core/plan.ts';
import type { Project } from '../../../src/emulator/world.ts';
import type { Controller } from '../../../src/simulation/controller.ts';
import { mutate } from '../../../src/simulation/disturbances.ts';
import type { StoryStage } from '../../../src/simulation/stage.ts';

/** Rules that the spec cannot carry are removed in the client area. */
export async function clearRules(stage: StoryStage, { box }: Controller, { key }: Blocked): Promise<void> {
  const store = await box.open(stage.clock.now());
  const server = (await store.bindings()).find((each) => `${each.key}.firewall` === key);
  await box.release();
  stage.trace.add('op', `removes the rules of ${key} in the client area`);
  if (server !== undefined)
    mutate(stage, { do: 'set_firewall', server_id: Number(server.id), policy_in: 'drop', rules: [] });
}

export async function eject(stage: StoryStage, { box }: Controller, { key }: Blocked): Promise<void> {
  const store = await box.open(stage.clock.now());
  const iso = (await store.bindings()).find((each) => each.key === key);
  await box.release();
  stage.trace.add('op', `ejects ${key} in the client area`);
  const { servers } = stage.emulator.world.projects[0] as Project;
  for (const server of servers.filter(({ isoInDrive }) => isoInDrive === iso?.id)) server.isoInDrive = null;
  showChange(stage);
}

/** The copies of the world from which stale reads are answered follow the mutations of the emulator. */
function showChange(stage: StoryStage): void {
  mutate(stage, { do: 'forward_clock', ms: 0 });
}

/** The spec has a network with the same subnet by now, so the old one cannot come back: the servers leave it. */
export async function leave(stage: StoryStage, { box }: Controller, { key }: Blocked): Promise<void> {
  const store = await box.open(stage.clock.now());
  const network = (await store.bindings()).find((each) => each.key === key);
  await box.release();
  stage.trace.add('op', `removes all servers from ${key} in the client area`);
  const { servers } = stage.emulator.world.projects[0] as Project;
  for (const server of servers)
    server.cards = server.cards.filter(({ networkId }) => String(networkId) !== network?.id);
  showChange(stage);
}

export function releaseFree(stage: StoryStage, id: string): void {
  const project = stage.emulator.world.projects[0] as Project;
  const ip = project.ips.find((each) => String(each.id) === id && each.serverId === null);
  if (ip === undefined) return;
  stage.trace.add('op', `releases ${ip.address} in the client area`);
  mutate(stage, { do: 'delete_ip', id: ip.id });
}
