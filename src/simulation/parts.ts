import type { Blocked, OperationId, Plan, Selection } from '../core/plan.ts';
import type { ApplyReport } from '../core/progress.ts';
import type { Controller, Running } from './controller.ts';
import type { Observer } from './observer.ts';
import type { Operator } from './operator-command.ts';
import type { RestJudge } from './rest.ts';
import type { StageOptions, StoryStage } from './stage.ts';
import type { Disturbance, Incident, SpecModel, Story } from './story.ts';

/** The parts of a story in addition to crashes and faults of the service. `rehearse` has none of them. */
export interface StoryParts extends StageOptions {
  readonly observer?: Observer;
  readonly actions?: (stage: StoryStage, main: Controller) => Actions;
  /** The effect of an incident other than a crash. */
  readonly strike?: (
    stage: StoryStage,
    wishes: Wishes,
    running: Running,
    what: Exclude<Disturbance, { do: 'crash' }>,
  ) => void;
  /** The answers of an operator who also edits the spec. */
  readonly answer?: OperatorAnswer;
  readonly dryRun?: DryRun;
  readonly rest?: RestJudge;
  /** Judges a story that has come to rest. */
  readonly atEnd?: (stage: StoryStage, main: Controller) => Promise<void>;
  /** Gives the machine an earlier state once its runs have converged. */
  readonly cut?: (stage: StoryStage, main: Controller, cut: NonNullable<Story['cut']>) => Promise<void>;
}

/** How the operator answers a block, one of `all`. Gives the spec, edited where the message asks for an edit. */
export type OperatorAnswer = (
  operator: Operator,
  blocked: Blocked,
  all: readonly Blocked[],
) => Promise<SpecModel>;

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

export const noActions: Actions = {
  isOver: true,
  others: [],
  takeCall: () => ({}),
  crossed: () => {},
  ended: () => {},
  act: async () => {},
};

/** How the next run of a machine is called. */
export interface RunCall {
  readonly selection?: Selection;
  readonly destroy?: true;
  readonly saved?: Plan;
}

/** A dry run before each run, and the comparison of both. */
export interface DryRun {
  show(stage: StoryStage, controller: Controller, spec: SpecModel): Promise<Plan | undefined>;
  compare(stage: StoryStage, controller: Controller, shown: Plan, ended: Reported): void;
}

/** The report of a run, and the operations that the run has begun. */
export interface Reported {
  readonly report: ApplyReport;
  readonly done: ReadonlySet<OperationId>;
}

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
