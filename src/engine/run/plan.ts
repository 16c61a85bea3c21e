import type { Desired } from '../../core/desired.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Blocked, Plan } from '../../core/plan.ts';
import { run as runs } from '../../core/remedy.ts';
import { traced } from '../../core/tracing.ts';
import { buildPlan } from '../../plan/build.ts';
import { type Judged, registerOf } from '../claims/claims.ts';
import { takeBack } from '../claims/returning.ts';
import type { EngineDeps, PlanOptions } from '../deps.ts';
import { idempotencyKey } from '../intents/begin.ts';
import { withPauses } from '../intents/pauses.ts';
import { keyIsFresh } from '../intents/question.ts';
import { begunEarlier } from '../intents/replacement.ts';
import { monthCost } from '../month-cost.ts';
import type { Run } from '../run.ts';
import type { WriteGate } from '../write-gate.ts';
import { applying, standingFindings, withFurther, withSince } from './recorded-findings.ts';
import { isProven } from './recover.ts';
import { openRun } from './start.ts';

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
  options: PlanOptions,
): Promise<Plan> {
  return (await openPlan(deps, gate, desired, options)).plan;
}

/** The plan for the operator, and the run that has made it. */
export async function openPlan(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  { destroy = false, repeating, selection }: PlanOptions,
): Promise<{ readonly run: Run; readonly plan: Plan }> {
  const run = await openRun(deps, gate, desired, { repeating, selection, destroy });
  await takeBack(run);
  const planned = await planFor(run, 0);
  const plan = await withPauses(deps, planned);
  const shown = withFurther(plan, applying(await standingFindings(deps.store), plan, run.world));
  const blocked = await withRecovery(run, planned.register, shown.blocked);
  return { run, plan: { ...shown, blocked: await withSince(deps.store, blocked) } };
}

/** An apply asks the idempotency keys of a new state before it creates a resource, and a plan may not. */
async function withRecovery(
  run: Run,
  { isNew }: Judged['register'],
  blocked: readonly Blocked[],
): Promise<readonly Blocked[]> {
  const isAskedFirst = async ({ key, verb, code }: Blocked) =>
    (code === 'unmanaged_resources' || (code === 'name_exists' && verb === 'create' && isNew)) &&
    !(await isProven(run, key));
  return Promise.all(
    blocked.map(async (each) =>
      (await isAskedFirst(each)) ? { ...each, remedies: [recovering, ...each.remedies] } : each,
    ),
  );
}

const recovering = runs('apply', [], {
  when: 'if this spec created it less than 24 hours ago, and the state was lost: vdcsync then finds it by its idempotency key',
});

/** The plan from the last refresh of the run. */
export async function planFor(run: Run, deletedBefore: number, increasedBefore?: string): Promise<Judged> {
  const register = await registerOf(run);
  const { deps, world, moves } = run;
  const { selection, destroy, repeating } = run.mode;
  const planned = buildPlan({
    ...{ world, moves: moves.all, selection, register, destroy, deletedBefore, increasedBefore },
    begun: await begunEarlier(run, world, world.subjects.values()),
    recreated: await recreatedServers(run),
    formerScope: await formerScope(run),
    waitingMoves: moves.waiting.map(({ blocked }) => blocked),
    kinds: deps.kinds,
    openIntents: [...run.intents.values()],
    month: await monthCost(deps.store, deps.kinds, world, repeating?.billed),
    desiredDigest: run.desired.digest,
    now: deps.clock.now(),
  });
  return { ...planned, register };
}

/**
 * The servers that this state has bought under an earlier `project.scope`, and whose keys the API still knows. A process
 * with many runs does not ask: the read would be one more statement of each reconciliation.
 */
async function formerScope(run: Run): Promise<readonly ResourceKey[]> {
  if (run.mode.repeating !== undefined) return [];
  const { projectId, scope } = run.desired;
  const done = await run.deps.store.intents({ outcome: 'done', limit: 100 });
  return done.flatMap((intent) => {
    const { key, kind, verb, incarnation, attempt } = intent;
    const isPurchase = verb === 'create' && factsOf(kind).container === true;
    if (!isPurchase || !run.bindings.has(key) || !keyIsFresh(run, intent)) return [];
    const now = idempotencyKey({ projectId, scope, key, verb, incarnation, attempt });
    return now === intent.idempotencyKey ? [] : [key];
  });
}

/** The servers of the spec that existed before, and do not exist now. */
async function recreatedServers({ deps, world }: Run): Promise<ReadonlySet<ResourceKey>> {
  const keys = world.serverSubjects().flatMap(({ key, desired }) => {
    const mayBeReplaced = desired?.managed === true && (desired.value.replace ?? 'never') !== 'never';
    return mayBeReplaced && !world.isThere(key) ? [key] : [];
  });
  const incarnations = await Promise.all(keys.map((key) => deps.store.incarnation(key)));
  return new Set(keys.filter((_, at) => (incarnations[at] ?? 0) > 0));
}
