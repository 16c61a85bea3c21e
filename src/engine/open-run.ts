import type { Desired } from '../core/desired.ts';
import type { Plan, Selection } from '../core/plan.ts';
import { traced } from '../core/tracing.ts';
import { buildPlan } from '../plan/build.ts';
import { type Judged, registerOf } from './claims/claims.ts';
import { applying, standingFindings, withFurther } from './claims/recorded-findings.ts';
import type { EngineDeps, Pause, PlanOptions, Repeating } from './deps.ts';
import { withPauses } from './intents/pauses.ts';
import { createReadCache } from './read-cache.ts';
import { type Run, startRun } from './run.ts';
import type { WriteGate } from './write-gate.ts';

const never = new AbortController().signal;

/** Opens a run that only reads. */
export function openRun(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  context: {
    readonly stop?: AbortSignal | undefined;
    readonly halt?: AbortSignal | undefined;
    readonly repeating?: Repeating | undefined;
    readonly pauses?: Map<string, Pause>;
    readonly selection?: Selection | undefined;
    readonly destroy?: boolean | undefined;
  } = {},
): Promise<Run> {
  const { stop = never, halt = never, repeating, pauses, selection, destroy = false } = context;
  const token = () => deps.writes.token();
  const cache = repeating?.cache ?? createReadCache(deps.reads('operation', halt), deps.clock, token);
  if (repeating !== undefined) cache.forgetLists();
  return startRun({ deps, desired, cache, gate, stop, halt, repeating, pauses, selection, destroy });
}

/** Makes one plan, and writes nothing. */
export function planOnce(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  options: PlanOptions,
): Promise<Plan> {
  const project = { 'vdcsync.project': desired.projectId };
  return traced(deps.tracing, 'plan', project, () => plannedOnce(deps, gate, desired, options));
}

async function plannedOnce(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  { destroy = false, repeating, selection }: PlanOptions,
): Promise<Plan> {
  const run = await openRun(deps, gate, desired, { repeating, selection, destroy });
  const planned = await planFor(run, destroy, 0);
  // A process with many runs shows its own pauses, and the time of the next try of each.
  const plan = repeating === undefined ? await withPauses(deps, planned) : planned.plan;
  return withFurther(plan, applying(await standingFindings(deps.store), plan, run.world));
}

/** The plan from the last refresh of the run. */
export async function planFor(
  run: Run,
  destroy: boolean,
  deletedBefore: number,
  increasedBefore?: string,
): Promise<Judged> {
  const register = await registerOf(run);
  const planned = buildPlan({
    kinds: run.deps.kinds,
    world: run.world,
    openIntents: [...run.intents.values()],
    moves: run.moves,
    waitingMoves: run.waitingMoves,
    selection: run.selection,
    desiredDigest: run.desired.digest,
    register,
    destroy,
    deletedBefore,
    increasedBefore,
    now: run.deps.clock.now(),
  });
  return { ...planned, register };
}
