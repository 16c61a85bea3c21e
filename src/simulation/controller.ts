import type { Desired } from '../core/desired.ts';
import type { Operation, OperationId, Plan } from '../core/plan.ts';
import type { Intent, StateStore } from '../core/state.ts';
import type { Approval } from '../engine/run/approval.ts';
import type { Crashable } from './crashable.ts';
import type { Disk, Mirror } from './durable.ts';
import type { SpecFile } from './spec-file.ts';
import type { StateBox } from './state-box.ts';
import type { TokenName } from './tokens.ts';

/** One machine that runs the program again and again, with a state of its own. */
export interface Controller {
  readonly name: string;
  /** The spec that it applies. */
  readonly file: SpecFile;
  readonly box: StateBox;
  readonly disk: Disk;
  /** Increases when its state differs from the state that it wrote last. */
  epoch: number;
  /** Its state is an old copy. Only a new state asks about servers that no list shows, only a network's count of servers. */
  behind: boolean;
  /** How its writes ended, the last one by key and verb. */
  readonly endings: Map<string, Intent>;
  /** How far its wall is off, in ms; each process starts with it. */
  skewMs: number;
  clockWasSet: boolean;
  /** Its record of sent requests does not hold all requests that were sent with its token. */
  budgetUnknown(): boolean;
  forgetBudget(): void;
  /** Other controllers that have shared the token know nothing of their budgets from then on. */
  exchangeToken(to: TokenName): void;
  /** The secrets that it has now. */
  tokens(): readonly string[];
  runs: number;
  /** The plans that the operator has approved, the last one at the end. */
  readonly approved: ApprovedPlan[];
  /** Changes of its disk that take effect once its process has ended. */
  readonly onRelease: (() => Promise<void>)[];
  /** The resources, by birth, that the operator has confirmed as this spec's in the current state. */
  readonly confirmed: Set<number>;
  /** The resources before this birth are older than its state, which is empty at first after a loss. */
  readonly stateSince: number;
  /** Its state is lost, or exchanged for a copy. */
  exchanged(how: 'lost' | 'copied'): void;
}

/** A plan that the operator has approved, and the spec that it is for. */
export interface ApprovedPlan {
  readonly desired: string;
  /** The state that waited. */
  readonly epoch: number;
  readonly operations: ReadonlyMap<OperationId, Operation>;
  /** The operations that are not done yet. */
  readonly left: Map<OperationId, Operation>;
}

/** One process of a machine. */
export interface Running {
  readonly name: string;
  readonly controller: Controller;
  readonly crashable: Crashable;
  readonly mirror: Mirror;
  readonly store: StateStore;
  readonly approval: Approval;
  readonly desired: Desired;
  readonly dry: boolean;
  /** An operator has asked for the deletion of everything. */
  destroys: boolean;
  /** The operations that it has begun. */
  readonly done: Set<OperationId>;
  /** Idempotency keys whose answer has come back. */
  readonly answered: Set<string>;
  /** An operator's command is being carried out. */
  byOperator: boolean;
  /** The plan of its current round. */
  plan: Plan | undefined;
  /** The plan of its first round. A run that no operator attends adds no other operations. */
  firstPlan: Plan | undefined;
  readonly stop: AbortController;
  readonly halt: AbortController;
}

/** A member of `done`: the run asked the API about keys that its state had not used. */
export const keysAsked = 'keys asked' as OperationId;

/** Identifies a machine's state until the state is lost or exchanged. */
export function stateOf({ controller }: Running): string {
  return `${controller.name}${controller.epoch}`;
}
