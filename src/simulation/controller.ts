import type { Desired } from '../core/desired.ts';
import type { OperationId } from '../core/plan.ts';
import type { Intent, StateStore } from '../core/state.ts';
import type { Disk, Mirror } from './durable.ts';
import type { Mortal } from './mortal.ts';
import type { StateBox } from './state-box.ts';
import type { MachineClock } from './virtual-clock.ts';

/** One machine that runs the program again and again, with a state of its own. */
export interface Controller {
  readonly name: string;
  readonly box: StateBox;
  readonly disk: Disk;
  /** Goes up when its state is no longer what it wrote last. */
  epoch: number;
  /** Its state is an old copy: not new, so it asks about nothing that only a network's count shows. */
  behind: boolean;
  /** How its writes ended, the last one by key and verb. */
  readonly endings: Map<string, Intent>;
  /** How far its wall is off, in ms; each process starts with it. */
  skewMs: number;
  clockWasSet: boolean;
  /** What it remembers of its requests is not all that its token has sent. */
  budgetUnknown(): boolean;
  forgetBudget(): void;
  /** The secrets that it has now. */
  tokens(): readonly string[];
  runs: number;
  /** What its last process began. */
  readonly done: Set<OperationId>;
  /** What happens to its disk once its process is gone. */
  readonly onRelease: (() => Promise<void>)[];
}

/** One process of a machine. */
export interface Running {
  readonly name: string;
  readonly controller: Controller;
  readonly mortal: Mortal;
  readonly machine: MachineClock;
  readonly mirror: Mirror;
  readonly store: StateStore;
  readonly desired: Desired;
  readonly dry: boolean;
  readonly mostDeletions: number;
  readonly deleted: Set<string>;
  /** What answers of this run forbid for the rest of it. */
  readonly holds: {
    everything: boolean;
    spendingUntil: number;
    readonly names: Set<string>;
    /** By token of several: writes that it has been refused; `*` is every write. */
    readonly tokens: Map<string, Set<string>>;
  };
  /** Paths of tasks whose end it has seen, and when. */
  readonly endedTasks: Map<string, number>;
  /** Polls of a task right behind its end. */
  repolls: number;
  /** Idempotency keys whose answer has come back. */
  readonly answered: Set<string>;
  /** An operator's command is being carried out. */
  byPerson: boolean;
  readonly stop: AbortController;
  readonly halt: AbortController;
}

/** Among what a run did: it asked keys that its state had not used. */
export const keysAsked = 'keys asked' as OperationId;

/** A machine's state, for as long as it is not lost. */
export function stateOf({ controller }: Running): string {
  return `${controller.name}${controller.epoch}`;
}
