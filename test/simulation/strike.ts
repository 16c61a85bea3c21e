import { type FaultAction, faultRule } from '../../src/emulator/faults.ts';
import type { Mutation } from '../../src/emulator/mutations.ts';
import { mutate } from '../../src/simulation/client-area.ts';
import type { Controller, Running } from '../../src/simulation/controller.ts';
import { listsOf } from '../../src/simulation/resource-history.ts';
import type { StoryStage } from '../../src/simulation/stage.ts';
import type { Disturbance, Incident, Story } from '../../src/simulation/story.ts';
import { checkJournal } from './journal.ts';
import { boxOf } from './machine-box.ts';

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

/** The effect of an incident other than a crash. */
export function strike(
  stage: StoryStage,
  wishes: Wishes,
  running: Running,
  what: Exclude<Disturbance, { do: 'crash' }>,
): void {
  const { controller, crashable } = running;
  switch (what.do) {
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
      afterDeath(running, () => boxOf(controller).lose(), false);
      return;
    case 'restore_state':
      afterDeath(running, () => boxOf(controller).restore(what.back));
      return;
    case 'cut_state':
      afterDeath(running, () => boxOf(controller).cut(what.back));
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

/** The state is another one when the next process opens it. */
function afterDeath({ controller, crashable }: Running, change: () => unknown, behind = true): void {
  crashable.kill();
  controller.onRelease.push(() => exchangeState(controller, change, behind));
}

export function mutateAt(stage: StoryStage, what: Disturbance & { do: 'remove' | 'open_firewall' }): void {
  const lists = listsOf(stage.project);
  const idIn = (list: readonly { readonly id: number | string }[]) =>
    list[what.place % Math.max(1, list.length)]?.id;
  if (what.do === 'open_firewall') {
    const id = idIn(lists.server);
    if (id !== undefined)
      mutate(stage, { do: 'set_firewall', server_id: Number(id), policy_in: 'accept', rules: [] });
    return;
  }
  const { sort } = what;
  const id = idIn(sort === 'network' ? lists.network.filter(({ isDefault }) => !isDefault) : lists[sort]);
  if (id !== undefined) mutate(stage, { do: `delete_${sort}`, id } as Mutation);
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

/** Any earlier state recovers, or asks; it never guesses. */
export async function cutAtRest(
  stage: StoryStage,
  main: Controller,
  { back, afterMs }: NonNullable<Story['cut']>,
  lines: readonly string[],
): Promise<void> {
  await stage.clock.advance(afterMs);
  stage.trace.add('!', `the state is put back by ${back} changes`);
  stage.observer.count('states cut at rest');
  await exchangeState(main, () => boxOf(main).cut(back));
  await checkJournal(stage, main, lines);
}
