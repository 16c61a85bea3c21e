import type { Blocked, OperationId, Plan, Selection } from '../core/plan.ts';
import type { ApplyReport } from '../core/progress.ts';
import type { Controller } from './controller.ts';
import type { Observer } from './observer.ts';
import type { Operator } from './operator-command.ts';
import type { RestJudge } from './rest.ts';
import type { StageOptions, StoryStage } from './stage.ts';
import type { SpecModel } from './story.ts';

/** The parts of a story in addition to crashes and faults of the service. `rehearse` has none of them. */
export interface StoryParts extends StageOptions {
  readonly observer?: Observer;
  readonly director?: (stage: StoryStage, main: Controller) => Director;
  /** The answers of an operator who also edits the spec. */
  readonly answer?: OperatorAnswer;
  readonly dryRun?: DryRun;
  readonly rest?: RestJudge;
  /** Judges a story that has come to rest. */
  readonly atEnd?: (stage: StoryStage, main: Controller) => Promise<void>;
}

/** Disturbs the runs of a story, and decides which machines run. */
export interface Director {
  /** Nothing disturbs the story. */
  readonly isCalm: boolean;
  /** Of the runs that something may disturb. */
  readonly mostRuns: number;
  /** The machines of the next run. Carries out the actions that are due before the run. */
  machines(): Promise<readonly CalledMachine[]>;
  /** The machines have run. Returns whether no disturbance is left. */
  ended(machines: readonly CalledMachine[], ends: readonly End[]): boolean;
  /** From then on, nothing disturbs a run. */
  heal(): void;
  /** The specs that then have to be applied, one after the other. */
  specs(): AsyncIterable<{ readonly spec: SpecModel; readonly isCalm: boolean }>;
}

export interface CalledMachine {
  readonly controller: Controller;
  readonly call: RunCall;
}

/** How the operator answers a block, one of `all`. Gives the spec, edited where the message asks for an edit. */
export type OperatorAnswer = (
  operator: Operator,
  blocked: Blocked,
  all: readonly Blocked[],
) => Promise<SpecModel>;

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

/** How a process ended. */
export type End =
  | ({ readonly end: 'report' } & Reported)
  | { readonly end: 'error'; readonly error: unknown }
  | { readonly end: 'crash' };

export function isConverged(end: End): boolean {
  return end.end === 'report' && end.report.outcome === 'converged';
}
