import type { Desired } from '../core/desired.ts';
import { Mask } from '../core/environment-mask.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Plan } from '../core/plan.ts';
import type { ApplyReport, OperationResult, ProgressEvent } from '../core/progress.ts';
import type { CommandResult } from '../core/remedy.ts';
import { traced } from '../core/tracing.ts';
import type { ApplyOptions, EngineDeps, PlanOptions, Repeating, Resolution } from './deps.ts';
import { adoptKey } from './operator/adopt-key.ts';
import { resolveIntent } from './operator/decide.ts';
import { forgetKey, ignore, unignore } from './operator/ignore.ts';
import { apply } from './run/apply.ts';
import { approvePlan } from './run/approval.ts';
import { planOnce } from './run/plan.ts';
import { provePlan } from './run/prove-plan.ts';
import { openRun } from './run/start.ts';
import type { Run } from './run.ts';
import { sealedStore } from './sealed-store.ts';
import { createWriteGate, type WriteGate } from './write-gate.ts';

/** One project, one spec, one state. */
export interface Engine {
  /** Reads and compares. Writes nothing, and leaves the local state unchanged. */
  plan(desired: Desired, options?: PlanOptions): Promise<Plan>;
  /** Plans, and proves the creations of the plan. Sends only requests that the API must refuse. */
  prove(desired: Desired, options?: PlanOptions): Promise<Plan>;
  /** Applies until a fresh plan is empty or the remaining operations need an operator. */
  apply(desired: Desired, options: ApplyOptions): Promise<ApplyReport>;
  /** Binds a key of the file to a live resource, after a read shows the resource. Returns the binding as text. */
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

const anyTurn = { urgency: 1 };
/** The writes that a server takes, with its firewall and a part of a network interface: see `GateBudget.paceMs`. */
const writesPerServer = 2.4;

/**
 * The engine for one token of one API and one state. Operations that change the state run one after the other: a run
 * knows the state from its own writes, so a second run at the same time would buy the same resources again.
 */
export function createEngine(deps: EngineDeps): Engine {
  const gate = createWriteGate(deps.clock, {
    roomMs: deps.writes.roomMs,
    paceMs: () => (writesPerServer * deps.profile.limits.windowMs) / deps.writes.perWindow(),
  });
  const runs = createWriteGate(deps.clock);
  /**
   * Runs an operator command on a store without values of the environment. The answer contains no values of the
   * environment either.
   */
  const settle = (desired: Desired, work: (own: EngineDeps) => Promise<CommandResult>) =>
    runs.run(async () => {
      const { text, remedies } = await work(await maskedDeps(deps, desired));
      const mask = new Mask(desired);
      return { text: mask.text(text), remedies: mask.remedies(remedies) };
    }, anyTurn);
  const decide = (desired: Desired, work: (run: Run) => Promise<CommandResult>) =>
    settle(desired, async (own) => work(await openRun(own, gate, desired)));
  return {
    plan: async (desired, options = {}) =>
      new Mask(desired).plan(await planOnce(await maskedDeps(deps, desired), gate, desired, options)),
    prove: (desired, options = {}) =>
      runs.run(
        async () =>
          new Mask(desired).plan(await provePlan(await maskedDeps(deps, desired), gate, desired, options)),
        anyTurn,
      ),
    apply: (desired, options) => {
      const reconcile = () => applyMasked(deps, gate, desired, options);
      const project = { 'vdcsync.project': desired.projectId };
      return runs.run(() => traced(deps.tracing, 'reconcile', project, reconcile), {
        ...anyTurn,
        signal: options.halt,
      });
    },
    adopt: (desired, key, id) => decide(desired, (run) => adoptKey(run, key, id)),
    ignore: (desired, names) => decide(desired, (run) => ignore(run, names)),
    unignore: (desired, names) => decide(desired, (run) => unignore(run, names)),
    forget: (desired, key) => decide(desired, (run) => forgetKey(run, key)),
    approve: (desired, digest) => settle(desired, (own) => approvePlan(own.store, digest, own.clock.now())),
    resolve: (desired, key, resolution) => decide(desired, (run) => resolveIntent(run, key, resolution)),
  };
}

/** Values of the environment go to the API. They are neither in the state nor in the output. */
async function maskedDeps(deps: EngineDeps, desired: Desired): Promise<EngineDeps> {
  const mask = new Mask(desired);
  const { onEvent } = deps;
  const store = await sealedStore(deps.store, desired, (request) => deps.writes.digest(request));
  if (onEvent === undefined || mask.isEmpty) return { ...deps, store };
  return { ...deps, store, onEvent: (event) => onEvent(maskedEvent(event, mask)) };
}

async function applyMasked(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  options: ApplyOptions,
): Promise<ApplyReport> {
  const mask = new Mask(desired);
  const report = await apply(await maskedDeps(deps, desired), gate, desired, {
    ...options,
    approve: (plan) => options.approve(mask.plan(plan)),
    ...(options.repeating === undefined || mask.isEmpty
      ? {}
      : { repeating: maskedRepeating(options.repeating, mask) }),
  });
  if (mask.isEmpty) return report;
  const plan = mask.plan(report.plan);
  const results = report.results.map((result) => maskedResult(result, mask));
  return { ...report, results, plan, blocked: plan.blocked };
}

/** The caller compares operations with operations of masked plans. */
function maskedRepeating(repeating: Repeating, mask: Mask): Repeating {
  const { isPaused } = repeating;
  if (isPaused === undefined) return repeating;
  return { ...repeating, isPaused: (operation) => isPaused(mask.operation(operation)) };
}

function maskedEvent(event: ProgressEvent, mask: Mask): ProgressEvent {
  switch (event.type) {
    case 'planned':
      return { ...event, plan: mask.plan(event.plan) };
    case 'started':
      return { ...event, operation: mask.operation(event.operation) };
    case 'progress':
      return { ...event, detail: mask.text(event.detail) };
    case 'ended':
      return { ...event, result: maskedResult(event.result, mask) };
    case 'warning':
      return { ...event, warning: mask.warning(event.warning) };
  }
}

function maskedResult(result: OperationResult, mask: Mask): OperationResult {
  return result.detail === undefined ? result : { ...result, detail: mask.text(result.detail) };
}
