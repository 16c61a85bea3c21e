import type { Desired } from '../../core/desired.ts';
import type { StateStore } from '../../core/state.ts';
import type { Notifier } from '../notices/notifier.ts';
import type { KeyBackOff } from '../pace/back-off.ts';
import type { Holds } from '../pace/holds.ts';
import type { Trigger } from '../ports.ts';
import type { Ledger } from './ledger.ts';
import { memoryNote, type PassMemory, readMemory } from './memory.ts';

/** One turn of work on a project that several replicas share. */
export interface Turn {
  readonly trigger: Trigger;
  readonly replica: string;
  /** Marks the spec that the reconciliations of this turn use. Empty if the spec cannot be used. */
  readonly spec: string;
  /** The notifications that were sent, by any replica. */
  readonly told: Pick<Notifier, 'toldOf' | 'recall'>;
}

/** The parts of a project that outlive its turns. */
interface Parts {
  readonly ledger: Ledger;
  readonly backOff: KeyBackOff;
  readonly holds: Holds;
}

/** Continues from the last turn, which another replica may have had. */
export async function takeUp(
  { told }: Turn,
  store: StateStore,
  { ledger, backOff, holds }: Parts,
  desired: Desired | undefined,
): Promise<void> {
  const memory = readMemory(await store.note(memoryNote));
  if (memory === undefined) return;
  ledger.recall(memory.ledger);
  holds.recall(memory.holds);
  backOff.recall(memory.backOff);
  if (desired !== undefined) backOff.follow(desired);
  told.recall(memory.told);
}

/** Records the results of this turn for the next turn. */
export async function handOn(
  { replica, spec, told }: Turn,
  store: StateStore,
  { ledger, backOff, holds }: Parts,
  { project, dueAt }: { readonly project: number; readonly dueAt: number },
): Promise<void> {
  const memory: PassMemory = {
    replica,
    spec,
    dueAt,
    ledger: ledger.remember(),
    backOff: backOff.remember(),
    holds: holds.remember(),
    told: told.toldOf(project),
  };
  await store.putNote(memoryNote, memory);
}
