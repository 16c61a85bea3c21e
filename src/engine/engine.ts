import type { Desired } from '../core/desired.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Plan } from '../core/plan.ts';
import type { ApplyReport } from '../core/progress.ts';
import { apply } from './apply.ts';
import type { ApplyOptions, EngineDeps, PlanOptions, Resolution } from './deps.ts';
import { planOnce } from './look.ts';
import { adoptKey } from './person/adopt-key.ts';
import { resolveIntent } from './person/decide.ts';
import { forgetKey, ignoreStrangers } from './person/disown.ts';
import { unignore } from './person/unignore.ts';
import { createWriteGate } from './write-gate.ts';

/** One project, one spec, one state. */
export interface Engine {
  /** Reads and compares; writes nothing, the local state included. */
  plan(desired: Desired, options?: PlanOptions): Promise<Plan>;
  /** Carries out until a fresh plan is empty or what is left needs a person. */
  apply(desired: Desired, options: ApplyOptions): Promise<ApplyReport>;
  /** Binds a key of the file to a live resource, once that is seen to exist. Gives what was bound. */
  adopt(desired: Desired, key: ResourceKey, id: string): Promise<string>;
  /** Says of servers, by id, and of addresses that they are somebody else's. */
  ignore(desired: Desired, names: readonly string[]): Promise<string>;
  /** Takes that back. */
  unignore(desired: Desired, names: readonly string[]): Promise<string>;
  /** Lets go of what a key stands for, and leaves it as it is. */
  forget(desired: Desired, key: ResourceKey): Promise<string>;
  /** Settles a blocked intent. Gives what was done, in a sentence. */
  resolve(desired: Desired, key: ResourceKey, resolution: Resolution): Promise<string>;
}

/**
 * The engine for one token of one API and one state. What changes the state goes one
 * after the other: a run knows the state from its own writes, and a second one beside it
 * would buy what the first is buying.
 */
export function createEngine(deps: EngineDeps): Engine {
  const gate = createWriteGate();
  const runs = createWriteGate();
  return {
    plan: (desired, options) => planOnce(deps, gate, desired, options ?? {}),
    apply: (desired, options) => runs.run(0, () => apply(deps, gate, desired, options), options.halt),
    adopt: (desired, key, id) => runs.run(0, () => adoptKey(deps, gate, desired, key, id)),
    ignore: (desired, names) => runs.run(0, () => ignoreStrangers(deps, gate, desired, names)),
    unignore: (desired, names) => runs.run(0, () => unignore(deps, gate, desired, names)),
    forget: (desired, key) => runs.run(0, () => forgetKey(deps, gate, desired, key)),
    resolve: (desired, key, resolution) =>
      runs.run(0, () => resolveIntent(deps, gate, desired, key, resolution)),
  };
}
