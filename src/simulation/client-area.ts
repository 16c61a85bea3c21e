import type { Blocked } from '../core/plan.ts';
import type { Remedy } from '../core/remedy.ts';
import type { Mutation } from '../emulator/mutations.ts';
import type { StoryStage } from './stage.ts';

/** The operator deletes the leftover of a failed write in the client area. */
export function cleanUp(stage: StoryStage, { key }: Blocked): void {
  const { project } = stage;
  for (const made of stage.executionsOf(key)) {
    if (!stage.history.isLive(made) || made.id === null) continue;
    const id = Number(made.id);
    stage.trace.add('op', `deletes ${made.kind} ${made.id} in the client area`);
    if (made.kind === 'server') {
      const addresses = project.ips.filter(({ serverId }) => serverId === id);
      mutate(stage, { do: 'delete_server', id });
      for (const each of addresses) mutate(stage, { do: 'delete_ip', id: each.id });
    } else if (made.kind === 'ip') mutate(stage, { do: 'delete_ip', id });
    else if (made.kind === 'network') mutate(stage, { do: 'delete_network', id });
    else if (made.kind === 'iso') mutate(stage, { do: 'delete_iso', id: made.id });
  }
}

/** Addresses that the remedies name as left behind and billed are released in the client area. */
export function releaseReported(stage: StoryStage, remedies: readonly Remedy[]): void {
  const traceLineOf = remedies.flatMap((each) => (each.type === 'outside' ? (each.about ?? []) : []));
  const { project } = stage;
  for (const ip of project.ips.filter(
    ({ address, serverId }) => traceLineOf.includes(address) && serverId === null,
  )) {
    stage.trace.add('op', `releases ${ip.address} in the client area`);
    mutate(stage, { do: 'delete_ip', id: ip.id });
  }
}

export function mutate(stage: StoryStage, mutation: Mutation): void {
  // Resources that exist by now do not count as made by another user.
  stage.history.recordExecutions(false);
  const ip = mutation.do === 'delete_ip' && ipOf(stage, mutation.id);
  if (ip && ip.serverId !== null) stage.history.bare(String(ip.serverId));
  try {
    stage.emulator.mutate(mutation);
  } catch (error) {
    stage.trace.add('!', `not possible: ${error instanceof Error ? error.message : String(error)}`);
  }
  stage.history.recordExecutions(true);
}

function ipOf({ emulator }: StoryStage, id: number) {
  return emulator.world.projects[0]?.ips.find((each) => each.id === id);
}
