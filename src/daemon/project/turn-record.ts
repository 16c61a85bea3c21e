import type { Desired } from '../../core/desired.ts';
import type { StateStore } from '../../core/state.ts';
import type { Notifier } from '../notifications/notifier.ts';
import type { KeyBackOff } from '../scheduling/back-off.ts';
import type { ProjectHistory } from './history.ts';
import { memoryNote, type ReconciliationMemory, readMemory } from './memory.ts';

/** This process, as the records name it. */
export interface Worker {
  /** The name of the process, among all that share the project. */
  readonly replica: string;
  /** The notifications that were sent, by any process. */
  readonly notified: Pick<Notifier, 'notifiedOf' | 'recall'>;
  /** The time that all processes share. Wall ms. */
  readonly now: () => number;
}

/** The parts of a project that outlive its turns. */
interface Parts {
  readonly history: ProjectHistory;
  readonly backOff: KeyBackOff;
}

/** The record of a project's last turn, in its state: a restart, or another replica, continues from it. */
export class TurnRecord {
  readonly #project: number;
  readonly #worker: Worker;
  readonly #parts: Parts;
  #last: ReconciliationMemory | undefined;

  constructor(project: number, worker: Worker, { history, backOff }: Parts) {
    this.#project = project;
    this.#worker = worker;
    this.#parts = { history, backOff };
  }

  /** Continues from the last turn. */
  async recall(store: Pick<StateStore, 'note'>, desired: Desired | undefined): Promise<void> {
    const { history, backOff } = this.#parts;
    const last = readMemory(await store.note(memoryNote));
    this.#last = last;
    if (last === undefined) return;
    history.recall(last.history);
    backOff.recall(last.backOff);
    if (desired !== undefined) backOff.follow(desired);
    this.#worker.notified.recall(last.notified);
  }

  /** @param spec marks the spec that the turn used */
  async write(store: Pick<StateStore, 'putNote'>, spec: string): Promise<void> {
    const { replica, notified, now: time } = this.#worker;
    const { history, backOff } = this.#parts;
    const now = time();
    const remembered = history.remember();
    const { condition, conditionSince } = this.#last?.history ?? {};
    const isSame = condition === remembered.condition && conditionSince === remembered.conditionSince;
    this.#last = {
      ...{ replica, spec, turnedAt: now },
      since: isSame && this.#last?.spec === spec ? this.#last.since : now,
      history: remembered,
      backOff: backOff.remember(),
      notified: notified.notifiedOf(this.#project),
    };
    await store.putNote(memoryNote, this.#last);
  }
}
