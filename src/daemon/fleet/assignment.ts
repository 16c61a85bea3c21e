import type { PassMemory } from '../project/memory.ts';

/** Where a project of the fleet is worked on, and how its last pass left it. */
export interface Assignment {
  readonly project: number;
  /** The replica that works on it now. */
  readonly worker: string | undefined;
  /** Since when, wall ms. */
  readonly since: number | undefined;
  /** Whether somebody took its state and has not given it back: works on it, or was cut off. */
  readonly isTaken: boolean;
  readonly memory: PassMemory | undefined;
}

/** The replica that knows most of the project: the one that works on it, or did so last. */
export function lastWorker({ worker, memory }: Assignment): string | undefined {
  return worker ?? memory?.replica;
}
