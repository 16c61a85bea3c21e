import type { ApplyReport } from '../../src/core/progress.ts';
import type { Controller, Running } from '../../src/simulation/controller.ts';
import {
  type CalledMachine,
  type Director,
  type End,
  isConverged,
  type RunCall,
} from '../../src/simulation/parts.ts';
import { mostFaultyRuns } from '../../src/simulation/scenario.ts';
import type { StoryStage } from '../../src/simulation/stage.ts';
import type { SpecModel } from '../../src/simulation/story.ts';
import type { StoryObserver } from './story-observer.ts';
import { cutAtRest, strike, type Wishes } from './strike.ts';

/** The actions of operators between the runs. */
export interface Actions {
  readonly isOver: boolean;
  /** The machines of other specs. */
  readonly others: readonly Controller[];
  /** How the next run of the machine is called, once. */
  takeCall(controller: Controller): RunCall;
  crossed(running: Running, name: string): void;
  /** A run of the machine has ended. */
  ended(controller: Controller, report: ApplyReport | undefined): void;
  /** Carries out the actions that are due; `isAtRest`: the runs have nothing left to do. */
  act(isAtRest: boolean): Promise<void>;
}

const runsForAction = 3;

/** What a director needs besides the story. */
interface DirectorParts {
  readonly observer: StoryObserver;
  readonly actions: Actions;
  /** The lines of the trace so far. */
  readonly lines: readonly string[];
}

/** All disturbances of a story: incidents, edits of the spec, other machines, and the actions of operators. */
export class StoryDirector implements Director {
  readonly isCalm: boolean;
  readonly mostRuns: number;
  readonly #stage: StoryStage;
  readonly #main: Controller;
  readonly #player: Actions;
  readonly #lines: readonly string[];
  readonly #wishes: Wishes;
  #other: Controller | undefined;
  /** From then on, no action is due any more: it would end a run that nothing may disturb. */
  #isHealed = false;
  /** The spec of that number comes into the spec once. */
  #written = 0;
  #left: number;
  #idle = 0;
  #stuckOn: string | undefined;

  constructor(stage: StoryStage, main: Controller, { observer, actions, lines }: DirectorParts) {
    const { story } = stage;
    this.#stage = stage;
    this.#main = main;
    this.#player = actions;
    this.#lines = lines;
    this.#wishes = { spec: 0, second: undefined, tokenRuns: 0, left: new Set(story.incidents) };
    this.#left = story.incidents.length;
    this.isCalm = story.faults.length + story.incidents.length === 0 && actions.isOver;
    this.mostRuns = mostFaultyRuns + runsForAction * (story.actions?.length ?? 0);
    this.#plantIncidents(observer);
  }

  async machines(): Promise<readonly CalledMachine[]> {
    const stage = this.#stage;
    const wishes = this.#wishes;
    const player = this.#player;
    if (wishes.tokenRuns > 0 && --wishes.tokenRuns === 0) this.#main.exchangeToken('readWrite');
    this.#current();
    await player.act(this.#idle > 0);
    if (stage.violation !== undefined || stage.givenUp) return [];
    if (wishes.second !== undefined)
      this.#other ??= stage.controller('b', wishes.second === 'same' ? 'readWrite' : 'member');
    const controllers = [this.#main, ...(this.#other === undefined ? [] : [this.#other]), ...player.others];
    return controllers.map((controller) => ({ controller, call: player.takeCall(controller) }));
  }

  ended(machines: readonly CalledMachine[], ends: readonly End[]): boolean {
    const { story } = this.#stage;
    const wishes = this.#wishes;
    const player = this.#player;
    for (const [at, { controller }] of machines.entries()) {
      const end = ends[at];
      player.ended(controller, end?.end === 'report' ? end.report : undefined);
    }
    const [end] = ends;
    const last = story.specs.length - 1;
    const isDeclined = end?.end === 'report' && end.report.outcome === 'declined';
    const isEdited = story.editedOnceApproved && this.#main.approved.length === 1 && isDeclined;
    if (isEdited && wishes.spec < last) wishes.spec += 1;
    const struck = wishes.left.size;
    const blocks = blocksOf(end);
    const isStuck = story.actions !== undefined && blocks !== undefined && blocks === this.#stuckOn;
    this.#stuckOn = blocks;
    const isIdle = (end === undefined || isConverged(end) || isStuck) && struck === this.#left;
    this.#idle = isIdle ? this.#idle + 1 : 0;
    this.#left = struck;
    if (this.#idle < (struck === 0 ? 1 : 2)) return false;
    if (wishes.spec >= last) return player.isOver;
    // An edit that no incident brings comes once there is nothing left to do.
    wishes.spec += 1;
    this.#idle = 0;
    return false;
  }

  heal(): void {
    this.#isHealed = true;
    this.#wishes.left.clear();
  }

  async *specs() {
    const stage = this.#stage;
    const { specs, cut } = stage.story;
    const { isCalm } = this;
    for (; this.#wishes.spec < specs.length - 1; this.#wishes.spec++) yield { spec: this.#current(), isCalm };
    yield { spec: this.#current(), isCalm };
    if (cut === undefined || stage.violation !== undefined || stage.givenUp) return;
    await cutAtRest(stage, this.#main, cut, this.#lines);
    yield { spec: this.#current(), isCalm: false };
  }

  #current(): SpecModel {
    const { file, story } = this.#stage;
    const { spec } = this.#wishes;
    if (spec !== this.#written) file.model = story.specs[Math.min(spec, story.specs.length - 1)] as SpecModel;
    this.#written = spec;
    return file.model;
  }

  /** Lets each incident strike at its moment. */
  #plantIncidents(observer: StoryObserver): void {
    const stage = this.#stage;
    const wishes = this.#wishes;
    const byName = Map.groupBy(stage.story.incidents, ({ at }) => at.boundary);
    stage.onCrossed = (running, name, nth) => {
      if (!this.#isHealed) this.#player.crossed(running, name);
      for (const incident of byName.get(name) ?? []) {
        if (incident.at.nth !== nth || !wishes.left.delete(incident)) continue;
        stage.trace.add('!', `${incident.what.do} ${JSON.stringify(incident.what)} at ${name} #${nth}`);
        observer.count(`incident ${incident.what.do}`);
        if (incident.what.do === 'crash') {
          observer.crashes(running, name);
          running.crashable.kill();
        } else strike(stage, wishes, running, incident.what);
      }
    };
  }
}

/** The blocks of a run that has done nothing else; an operator will not wait for the next run. */
function blocksOf(end: End | undefined): string | undefined {
  if (end?.end !== 'report' || end.report.outcome !== 'blocked' || end.done.size > 0) return undefined;
  return end.report.blocked.map(({ key, code }) => `${key} ${code}`).join(' ');
}
