import type { Desired } from '../../core/desired.ts';
import type { StateStore } from '../../core/state.ts';
import type { Notifier } from '../notifications/notifier.ts';
import type { Trigger } from '../ports.ts';
import type { KeyBackOff } from '../scheduling/back-off.ts';
import type { ProjectHistory } from './history.ts';
import { memoryNote, type ReconciliationMemory, readMemory } from './memory.ts';

/** One turn of work on a project that several replicas share. */
export interface Job {
  readonly trigger: Trigger;
  readonly replica: string;
  /** Marks the spec that the reconciliations of this turn use. Empty if the spec cannot be used. */
  readonly spec: string;
  /** The notifications that were sent, by any replica. */
  readonly notified: Pick<Notifier, 'notifiedOf' | 'recall'>;
  /** The time that all replicas share. Wall ms. */
  readonly now: () => number;
}

/** The parts of a project that outlive its turns. */
interface Parts {
  readonly history: ProjectHistory;
  readonly backOff: KeyBackOff;
}

/** Continues from the last turn, which another replica may have had. Returns the record of that turn. */
export async function takeUp(
  { notified }: Job,
  store: StateStore,
  { history, backOff }: Parts,
  desired: Desired | undefined,
): Promise<ReconciliationMemory | undefined> {
  const memory = readMemory(await store.note(memoryNote));
  if (memory === undefined) return undefined;
  history.recall(memory.history);
  backOff.recall(memory.backOff);
  if (desired !== undefined) backOff.follow(desired);
  notified.recall(memory.notified);
  return memory;
}

/** The end of a turn. */
interface TurnEnd {
  readonly project: number;
  /** The record of the turn before. */
  readonly before: ReconciliationMemory | undefined;
}

/** Records the results of this turn for the next turn. */
export async function handOn(
  job: Job,
  store: StateStore,
  { history, backOff }: Parts,
  { project, before }: TurnEnd,
): Promise<void> {
  const { replica, spec, notified } = job;
  const now = job.now();
  const remembered = history.remember();
  const { condition, conditionSince } = before?.history ?? {};
  const isSame = condition === remembered.condition && conditionSince === remembered.conditionSince;
  const memory: ReconciliationMemory = {
    ...{ replica, spec, turnedAt: now },
    since: isSame && before?.spec === spec ? before.since : now,
    history: remembered,
    backOff: backOff.remember(),
    notified: notified.notifiedOf(project),
  };
  await store.putNote(memoryNote, memory);
}
