import type { Desired } from '../../core/desired.ts';
import type { StateStore } from '../../core/state.ts';
import { memoryNote, type ReconciliationMemory, readMemory } from './memory.ts';
import type { ProjectParts, Worker } from './workspace.ts';

/** The parts of a project that outlive its turns. */
type RecordedParts = Pick<ProjectParts, 'history' | 'backOff' | 'wayBack'>;

/** The record of a project's last turn, in its state: a restart, or another replica, continues from it. */
export class LastReconciliation {
  readonly #project: number;
  readonly #worker: Worker;
  readonly #parts: RecordedParts;
  #last: ReconciliationMemory | undefined;

  constructor(project: number, worker: Worker, parts: RecordedParts) {
    this.#project = project;
    this.#worker = worker;
    this.#parts = parts;
  }

  /** Continues from the last turn. */
  async recall(store: Pick<StateStore, 'note'>, desired: Desired | undefined): Promise<void> {
    const { history, backOff, wayBack } = this.#parts;
    const last = readMemory(await store.note(memoryNote));
    this.#last = last;
    if (last === undefined) return;
    history.recall(last.history);
    wayBack.recall(last.wayBack, desired);
    backOff.recall(last.backOff);
    if (desired !== undefined) backOff.follow(desired);
    this.#worker.notified.recall(last.notified);
  }

  /** @param given marks the spec that the turn was for. A refused spec is not the spec in force. */
  async write(store: Pick<StateStore, 'putNote'>, given: string): Promise<void> {
    const { replica, notified, now: time } = this.#worker;
    const { history, backOff, wayBack } = this.#parts;
    const returned = wayBack.remember();
    const spec = returned.refused === undefined ? given : '';
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
      wayBack: returned,
    };
    await store.putNote(memoryNote, this.#last);
  }
}
