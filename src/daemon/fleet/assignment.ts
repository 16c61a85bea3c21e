import type { ReconciliationMemory } from '../project/memory.ts';

/** The replica that works on a project of the fleet, and the result of the last reconciliation. */
export interface Assignment {
  readonly project: number;
  /** The replica that works on it now. */
  readonly worker: string | undefined;
  /** Since when, wall ms. */
  readonly since: number | undefined;
  /**
   * Whether a replica took the project's state and has not released it: the replica works on the project, or was cut
   * off.
   */
  readonly isTaken: boolean;
  readonly memory: ReconciliationMemory | undefined;
}

/** The replica that knows most of the project: the one that works on it, or did so last. */
export function lastWorker({ worker, memory }: Assignment): string | undefined {
  return worker ?? memory?.replica;
}
