import { type FaultAction, faultRule } from '../emulator/faults.ts';
import type { Mutation } from '../emulator/mutations.ts';
import type { Project } from '../emulator/world.ts';
import type { Controller, Running } from './controller.ts';
import { operations, writes } from './operations.ts';
import type { StoryStage } from './stage.ts';
import type { Disturbance, Incident } from './story.ts';

/** Changes that the incidents request of the scenario, in addition to their immediate effect. */
export interface Wishes {
  /** The spec of that number from the next run on. */
  spec: number;
  /** Another machine, from the next run on. */
  second: 'same' | 'member' | undefined;
  /** Runs until the token is the right one again. */
  tokenRuns: number;
  /** Incidents that have not struck yet. */
  left: Set<Incident>;
}

/** Lets each incident strike at its moment. */
export function plantIncidents(
  stage: StoryStage,
  wishes: Wishes,
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
      strike(stage, wishes, running, incident.what, name);
    }
  };
}

function strike(
  stage: StoryStage,
  wishes: Wishes,
  running: Running,
  what: Disturbance,
  boundary: string,
): void {
  const { controller, crashable } = running;
  switch (what.do) {
    case 'crash':
      crash(stage, running, boundary);
      return;
    case 'stop':
      running.stop.abort(new Error('stop'));
      return;
    case 'halt':
      running.halt.abort(new Error('halt'));
      return;
    case 'disk_full':
      Object.assign(controller.disk, { failing: what.writes, durable: what.durable });
      controller.forgetBudget();
      return;
    case 'lose_state':
      afterDeath(controller, crashable.kill, () => controller.box.lose(), false);
      return;
    case 'restore_state':
      afterDeath(controller, crashable.kill, () => controller.box.restore(what.back));
      return;
    case 'cut_state':
      afterDeath(controller, crashable.kill, () => controller.box.cut(what.back));
      return;
    case 'set_clock':
      crashable.kill();
      controller.skewMs += what.ms;
      controller.clockWasSet = true;
      // For a process that starts now, the age of earlier requests follows the new clock.
      controller.forgetBudget();
      return;
    case 'replace':
      void replace(stage, running, what);
      return;
    case 'suspend':
      stage.clock.jump(what.ms);
      return;
    case 'outage':
      void beginOutage(stage, what.action, what.ms);
      return;
    case 'edit':
      wishes.spec = what.spec;
      running.halt.abort(new Error('halt'));
      return;
    case 'token':
      controller.exchangeToken(what.to);
      wishes.tokenRuns = what.runs;
      return;
    case 'mutate':
      mutate(stage, what.mutation);
      return;
    case 'remove':
    case 'open_firewall':
      mutateAt(stage, what);
      return;
    case 'second':
      wishes.second = what.token;
      return;
  }
}

/** The next run of the machine is the process that takes the state. */
async function replace(
  { clock }: StoryStage,
  { controller, crashable }: Running,
  { ms, knows }: Disturbance & { do: 'replace' },
): Promise<void> {
  crashable.suspend(knows);
  controller.forgetBudget();
  await clock.sleep(ms);
  controller.forgetBudget();
  crashable.resume();
}

/** Behind the rules of the story, so that their hits stay theirs. */
async function beginOutage({ emulator, clock }: StoryStage, action: FaultAction, ms: number): Promise<void> {
  const outage = faultRule({}, action);
  emulator.setFaults([...emulator.faults, outage]);
  await clock.sleep(ms);
  emulator.setFaults(emulator.faults.filter((rule) => rule !== outage));
}

/** The row of the outcome table that the moment of death belongs to. */
export function crash(stage: StoryStage, running: Running, boundary: string): void {
  const begun = /^beginIntent (\w+):before$/.exec(boundary)?.[1];
  if (begun !== undefined) stage.observer.hit('crash before the intent is durable', begun);
  const probed = /^probe (.+):(?:before|after)$/.exec(boundary)?.[1];
  for (const name of operations)
    if (writes[name].path === probed) stage.observer.hit('crash around a probe', name);
  for (const intent of running.mirror.open.values()) {
    if (intent.phase !== 'sending') continue;
    const row = running.answered.has(intent.idempotencyKey)
      ? 'crash after the answer'
      : 'crash with the answer unknown';
    stage.observer.hit(row, intent.request.name);
  }
  running.crashable.kill();
}

/** The state is another one when the next process opens it. */
function afterDeath(controller: Controller, kill: () => void, change: () => unknown, behind = true): void {
  kill();
  controller.onRelease.push(() => exchangeState(controller, change, behind));
}

/** Gives the machine another state than the one it wrote last. */
export async function exchangeState(
  controller: Controller,
  change: () => unknown,
  behind = true,
): Promise<void> {
  await change();
  controller.behind = behind;
  controller.exchanged(behind ? 'copied' : 'lost');
  controller.epoch += 1;
  controller.forgetBudget();
  controller.endings.clear();
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

function mutateAt(stage: StoryStage, what: Disturbance & { do: 'remove' | 'open_firewall' }): void {
  const project = stage.emulator.world.projects[0] as Project;
  const at = <Value>(list: readonly Value[]): Value | undefined =>
    list[what.place % Math.max(1, list.length)];
  if (what.do === 'open_firewall') {
    const server = at(project.servers);
    if (server) mutate(stage, { do: 'set_firewall', server_id: server.id, policy_in: 'accept', rules: [] });
    return;
  }
  const { sort } = what;
  if (sort === 'iso') {
    const iso = at(project.isos);
    if (iso) mutate(stage, { do: 'delete_iso', id: iso.id });
    return;
  }
  const lists = {
    server: project.servers,
    ip: project.ips,
    network: project.networks.filter(({ isDefault }) => !isDefault),
  };
  const found = at<{ readonly id: number }>(lists[sort]);
  if (found) mutate(stage, { do: `delete_${sort}`, id: found.id } as Mutation);
}
