import { type Desired, withoutExpired } from '../core/desired.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Plan } from '../core/plan.ts';
import type { ApplyReport } from '../core/progress.ts';
import type { CommandResult } from '../core/remedy.ts';
import { traced } from '../core/work.ts';
import type { ApplyOptions, EngineDeps, PlanOptions, Resolution } from './deps.ts';
import { adoptKey } from './operator/adopt-key.ts';
import { resolveIntent } from './operator/decide.ts';
import { forgetKey, ignore, unignore } from './operator/ignore.ts';
import { apply } from './run/apply.ts';
import { approvePlan } from './run/approval.ts';
import { planOnce, provePlan } from './run/plan.ts';
import { openRun } from './run/start.ts';
import type { Run } from './run.ts';
import { createWriteGate } from './write-gate.ts';

/** One project, one spec, one state. */
export interface Engine {
  /** Reads and compares. Writes nothing, and leaves the local state unchanged. */
  plan(desired: Desired, options?: PlanOptions): Promise<Plan>;
  /** Plans, and proves the creations of the plan. Sends only requests that the API must refuse. */
  prove(desired: Desired, options?: PlanOptions): Promise<Plan>;
  /** Applies until a fresh plan is empty or the remaining operations need an operator. */
  apply(desired: Desired, options: ApplyOptions): Promise<ApplyReport>;
  /** Binds a key of the spec to a live resource, after a read shows the resource. Returns the binding as text. */
  adopt(desired: Desired, key: ResourceKey, id: string): Promise<CommandResult>;
  /** Marks servers, by id, and addresses as ignored. */
  ignore(desired: Desired, names: readonly string[]): Promise<CommandResult>;
  /** Reverts `ignore`. */
  unignore(desired: Desired, names: readonly string[]): Promise<CommandResult>;
  /** Releases the resource that is bound to a key. The resource continues to exist. */
  forget(desired: Desired, key: ResourceKey): Promise<CommandResult>;
  /** Releases the plan that waits for the operator. Returns a sentence about the plan. */
  approve(desired: Desired, digest: string): Promise<CommandResult>;
  /** Settles a blocked intent. Returns the result as a sentence. */
  resolve(desired: Desired, key: ResourceKey, resolution: Resolution): Promise<CommandResult>;
}

const usualUrgency = { urgency: 1 };

/**
 * The engine for one token of one API and one state. Operations that change the state run one after the other: a run
 * knows the state from its own writes, so a second run at the same time would buy the same resources again.
 */
export function createEngine(deps: EngineDeps): Engine {
  const gate = createWriteGate(deps.clock, {
    roomMs: deps.writes.roomMs,
    writeIntervalMs: () => deps.profile.limits.windowMs / deps.writes.perWindow(),
  });
  const runs = createWriteGate(deps.clock);
  const { hidden, onEvent } = deps;
  const shown = hidden.shown.bind(hidden);
  const own: EngineDeps =
    onEvent === undefined ? deps : { ...deps, onEvent: (event) => onEvent(shown(event)) };
  /**
   * Inside the engine a spec has no expired entries, and stand-ins for the texts from the environment. The stand-ins do
   * not leave the engine.
   */
  const within = async <Result>(
    spec: Desired,
    work: (desired: Desired) => Promise<Result>,
  ): Promise<Result> => {
    const asked = await withoutEnded(spec);
    return shown(await work(hidden.learn(asked, (await deps.store.info()).lineage)));
  };
  /** A local clock that is ahead expires no entry: its resource would be deleted. */
  const withoutEnded = async (spec: Desired): Promise<Desired> => {
    const now = deps.clock.now();
    const asked = withoutExpired(spec, now);
    if (asked === spec) return spec;
    const read = deps.reads('operation');
    if (read.apiNow() === undefined) await read.project().catch(() => undefined);
    const apiNow = read.apiNow() ?? now;
    return apiNow < now ? withoutExpired(spec, apiNow) : asked;
  };
  const decide = (spec: Desired, work: (run: Run) => Promise<CommandResult>) =>
    runs.run(() => within(spec, async (desired) => work(await openRun(own, gate, desired))), usualUrgency);
  return {
    plan: (spec, options = {}) => within(spec, (desired) => planOnce(own, gate, desired, options)),
    prove: (spec, options = {}) =>
      runs.run(() => within(spec, (desired) => provePlan(own, gate, desired, options)), usualUrgency),
    apply: (spec, options) => {
      const reconcile = () => within(spec, (desired) => apply(own, gate, desired, outside(options, shown)));
      const project = { 'vdcsync.project': spec.projectId };
      return runs.run(() => traced(deps.tracing, 'reconcile', project, reconcile), {
        ...usualUrgency,
        signal: options.halt,
      });
    },
    adopt: (spec, key, id) => decide(spec, (run) => adoptKey(run, key, id)),
    ignore: (spec, names) => decide(spec, (run) => ignore(run, names)),
    unignore: (spec, names) => decide(spec, (run) => unignore(run, names)),
    forget: (spec, key) => decide(spec, (run) => forgetKey(run, key)),
    approve: (_, digest) => runs.run(() => approvePlan(own.store, digest, own.clock.now()), usualUrgency),
    resolve: (spec, key, resolution) => decide(spec, (run) => resolveIntent(run, key, resolution)),
  };
}

/** The caller reads plans, and compares operations with operations of plans that it has read. */
function outside(options: ApplyOptions, shown: <Value>(value: Value) => Value): ApplyOptions {
  const { repeating } = options;
  const { isPaused } = repeating ?? {};
  return {
    ...options,
    approve: (plan) => options.approve(shown(plan)),
    ...(repeating === undefined || isPaused === undefined
      ? {}
      : { repeating: { ...repeating, isPaused: (operation) => isPaused(shown(operation)) } }),
  };
}
