import type { Blocked } from '../../../src/core/plan.ts';
import { mutate } from '../../../src/simulation/client-area.ts';
import type { Operator } from '../../../src/simulation/operator-command.ts';
import type { StoryStage } from '../../../src/simulation/stage.ts';

/** Rules that the spec cannot carry are removed in the client area. */
export async function clearRules({ stage, controller }: Operator, { key }: Blocked): Promise<void> {
  const { bindings } = await stage.readState(controller);
  const server = bindings.find((each) => `${each.key}.firewall` === key);
  stage.trace.add('op', `removes the rules of ${key} in the client area`);
  if (server !== undefined)
    mutate(stage, { do: 'set_firewall', server_id: Number(server.id), policy_in: 'drop', rules: [] });
}

export async function eject({ stage, controller }: Operator, { key }: Blocked): Promise<void> {
  const { bindings } = await stage.readState(controller);
  const iso = bindings.find((each) => each.key === key);
  stage.trace.add('op', `ejects ${key} in the client area`);
  for (const server of stage.project.servers) if (server.isoInDrive === iso?.id) server.isoInDrive = null;
  showChange(stage);
}

/** The copies of the world from which stale reads are answered follow the mutations of the emulator. */
function showChange(stage: StoryStage): void {
  mutate(stage, { do: 'forward_clock', ms: 0 });
}

/** The spec has a network with the same subnet by now, so the old one cannot come back: the servers leave it. */
export async function leave({ stage, controller }: Operator, { key }: Blocked): Promise<void> {
  const { bindings } = await stage.readState(controller);
  const network = bindings.find((each) => each.key === key);
  stage.trace.add('op', `removes all servers from ${key} in the client area`);
  for (const server of stage.project.servers)
    server.interfaces = server.interfaces.filter(({ networkId }) => String(networkId) !== network?.id);
  showChange(stage);
}

export function releaseFree(stage: StoryStage, id: string): void {
  const ip = stage.project.ips.find((each) => String(each.id) === id && each.serverId === null);
  if (ip === undefined) return;
  stage.trace.add('op', `releases ${ip.address} in the client area`);
  mutate(stage, { do: 'delete_ip', id: ip.id });
}
