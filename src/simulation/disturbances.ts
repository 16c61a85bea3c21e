import type { Mutation } from '../emulator/mutations.ts';
import type { Running } from './controller.ts';
import type { StoryParts, Wishes } from './parts.ts';
import type { StoryStage } from './stage.ts';
import type { Incident } from './story.ts';

/** Lets each incident strike at its moment. */
export function plantIncidents(
  stage: StoryStage,
  wishes: Wishes,
  strike: NonNullable<StoryParts['strike']>,
  crossed: (running: Running, name: string) => void,
): void {
  const byName = new Map<string, Incident[]>();
  for (const incident of stage.story.incidents) {
    const { boundary } = incident.at;
    byName.set(boundary, [...(byName.get(boundary) ?? []), incident]);
  }
  stage.onCrossed = (running, name, nth) => {
    crossed(running, name);
    for (const incident of byName.get(name) ?? []) {
      if (incident.at.nth !== nth || !wishes.left.delete(incident)) continue;
      stage.trace.add('!', `${incident.what.do} ${JSON.stringify(incident.what)} at ${name} #${nth}`);
      stage.observer.count(`incident ${incident.what.do}`);
      if (incident.what.do === 'crash') {
        stage.observer.crashes(running, name);
        running.crashable.kill();
      } else strike(stage, wishes, running, incident.what);
    }
  };
}

export function mutate(stage: StoryStage, mutation: Mutation): void {
  // Resources that exist by now do not count as made by another user.
  stage.history.look(false);
  const ip = mutation.do === 'delete_ip' && ipOf(stage, mutation.id);
  if (ip && ip.serverId !== null) stage.history.bare(String(ip.serverId));
  try {
    stage.emulator.mutate(mutation);
  } catch (error) {
    stage.trace.add('!', `not possible: ${error instanceof Error ? error.message : String(error)}`);
  }
  stage.history.look(true);
}

function ipOf({ emulator }: StoryStage, id: number) {
  return emulator.world.projects[0]?.ips.find((each) => each.id === id);
}
