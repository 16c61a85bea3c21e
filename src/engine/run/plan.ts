import { objectName } from '../../core/claims.ts';
import type { Desired } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { childKey, retiredFrom } from '../../core/keys.ts';
import type { Subject } from '../../core/kind.ts';
import { factsOf } from '../../core/kind-facts.ts';
import {
  type Blocked,
  isWaiting,
  type Operation,
  type OperationId,
  operationId,
  type Plan,
  type Proofs,
} from '../../core/plan.ts';
import type { OperationResult } from '../../core/progress.ts';
import { command, outside, paying } from '../../core/remedy.ts';
import type { StateChange } from '../../core/state.ts';
import { traced } from '../../core/work.ts';
import { predecessorHolding } from '../../core/world.ts';
import { buildPlan } from '../../plan/build.ts';
import type { Release } from '../../plan/draft.ts';
import { newFlags } from '../../plan/flags.ts';
import { correction, isEdited, isOvertaken } from '../../plan/open-writes.ts';
import { isSelected, successorOf } from '../../plan/order.ts';
import type { Prices } from '../../plan/totals.ts';
import { isStated } from '../../plan/unconfirmed.ts';
import { waitingRename } from '../../plan/waits.ts';
import { claimChanges, type Judged, registerOf } from '../claims/claims.ts';
import { clearNewKeys, takeBack } from '../claims/line.ts';
import { released, releasing } from '../claims/release.ts';
import type { EngineDeps, PlanOptions } from '../deps.ts';
import { contextOf, inWriteSlot, roomToWrite } from '../intents/begin.ts';
import { giveUp } from '../intents/endings.ts';
import { pauses } from '../intents/outcome.ts';
import { withPauses } from '../intents/pauses.ts';
import { isProvable, type Proof, prove } from '../intents/prove.ts';
import { endIfReserved } from '../intents/reserve-key.ts';
import { begunEarlier, whyNotWanted } from '../intents/revalidate.ts';
import { monthCost } from '../month-cost.ts';
import { observeAgain, type Run } from '../run.ts';
import type { WriteGate } from '../write-gate.ts';
import { bindingOf } from './adopt.ts';
import { freedBefore } from './approval.ts';
import { applying, standingFindings, withFurther, withSince } from './findings.ts';
import { isNextProven } from './recover.ts';
import { openRun } from './start.ts';
import { unreachedKeys } from './unreached-keys.ts';

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
async function openPlan(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  { destroy = false, repeating, selection }: PlanOptions,
): Promise<{ readonly run: Run; readonly plan: Plan }> {
  const run = await openRun(deps, gate, desired, { repeating, selection, destroy });
  await takeBack(run);
  await clearNewKeys(run, true);
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
    verb === 'create' &&
    (code === 'unmanaged_resources' || (code === 'name_exists' && isNew)) &&
    !(await isNextProven(run, key));
  return Promise.all(
    blocked.map(async (each) =>
      (await isAskedFirst(each))
        ? { ...each, remedies: [command('apply', [], { when: ifLost }), ...each.remedies] }
        : each,
    ),
  );
}

const ifLost =
  'if this spec created it less than 24 hours ago, and the state was lost or put back: vdcsync then finds it by its idempotency key';

/**
 * The plan from the last refresh of the run.
 *
 * @param increaseSo gives the amount that the run has added to the monthly bill so far
 */
export async function planFor(
  run: Run,
  deletedBefore: number,
  increaseSo: (freed: Prices) => string | undefined = () => undefined,
): Promise<Judged> {
  const register = await registerOf(run);
  const freedBefore = await freedPrices(run);
  const { deps, world, moves } = run;
  const { selection, destroy, repeating } = run.mode;
  const planned = buildPlan({
    ...{ world, moves: moves.all, selection, register, destroy, deletedBefore, freedBefore },
    increasedBefore: increaseSo(freedBefore),
    begun: await begunEarlier(run, world, world.subjects.values()),
    unreached: await unreachedKeys(run),
    waitingMoves: moves.waiting,
    kinds: deps.kinds,
    openIntents: [...run.intents.values()],
    month: world.profile.prices && (await monthCost(deps.store, deps.kinds, world, repeating?.billed)),
    desiredDigest: run.desired.digest,
    now: deps.clock.now(),
  });
  return { ...planned, register };
}

/** The prices that begun replacements have freed, if a limit of the settings counts them. */
async function freedPrices(run: Run): Promise<Prices> {
  const { max_monthly_increase: cap, approval } = run.world.settings;
  const isCounted = cap !== null || (typeof approval === 'object' && approval.monthly_increase !== null);
  return isCounted ? freedBefore(run) : new Map();
}

/** Applies the parts of the plan that change only the state, and need no write. */
export async function applyStateChanges(run: Run, planned: Judged): Promise<void> {
  const { plan, releases } = planned;
  await run.deps.store.claimProject(run.desired.projectId);
  await run.moves.keep();
  await closeOvertaken(run, plan);
  const changes = [
    ...flagChanges(run, planned),
    ...comparedChanges(run, plan),
    ...(await releaseChanges(run, releases)),
    ...(await claimChanges(run, planned)),
  ];
  if (changes.length > 0) await run.state.change(changes);
}

/** Closes writes without effect so far that the plan, or the current spec, no longer asks for. */
async function closeOvertaken(run: Run, plan: Plan): Promise<void> {
  for (const intent of [...run.intents.values()]) {
    if (isOvertaken(intent, run.world)) {
      await giveUp(run, intent, 'the spec has changed');
      continue;
    }
    // A plan asks for no operation of an entry whose rename waits, so it does not show which writes are wanted.
    if (intent.phase !== 'waiting' || waitingRename(intent.key, run.moves.waiting) !== undefined) continue;
    if (run.mode.selection !== undefined && !isSelected(run.mode.selection, intent.key)) continue;
    const planned = plan.operations.some(({ key, verb }) => key === intent.key && verb === intent.verb);
    // A partial run leaves out some operations. The spec still asks for them, so their writes wait for a full run.
    const asked = planned || (run.mode.selection !== undefined && !whyNotWanted(run, run.world, intent));
    if (asked && !isEdited(intent, run.world)) continue;
    await giveUp(run, intent, 'no longer in the spec');
  }
}

/**
 * Renames the bindings of settled writes, and settles the writes in flight under keys that the spec has renamed. A write
 * without effect so far is planned again.
 */
export async function settleMoves(run: Run): Promise<void> {
  for (const key of new Set(run.moves.waiting.flatMap(({ waitsFor }) => waitsFor))) {
    const intent = run.intents.get(key);
    if (intent === undefined) continue;
    if (isOvertaken(intent, run.world) || intent.phase === 'waiting')
      await giveUp(run, intent, 'no longer in the spec');
    else if (intent.recovers !== undefined) await endIfReserved(run, intent);
  }
  run.moves.renew();
}

/** A selection leaves out the end of a protection, and never its beginning. */
function flagChanges(run: Run, { unsure }: Judged): StateChange[] {
  const { world, mode } = run;
  return [...world.subjects.values()].flatMap((subject): StateChange[] => {
    const { key, binding } = subject;
    if (binding === undefined) return [];
    const { recovered, ...known } = binding;
    if (mode.selection !== undefined && !isSelected(mode.selection, key)) {
      const { protect = false, keep = false } = newFlags(subject, world, unsure) ?? {};
      const isMore = (protect && !binding.protect) || (keep && !binding.keep);
      const more = { protect: protect || binding.protect, keep: keep || binding.keep };
      return isMore ? [{ type: 'bind', binding: { ...binding, ...more } }] : [];
    }
    const isConfirmed = recovered === 'taken' && isAsDeclared(run, subject);
    const now = isConfirmed ? known : binding;
    const flags = newFlags({ ...subject, binding: now }, world, unsure);
    return isConfirmed || flags !== undefined ? [{ type: 'bind', binding: { ...now, ...flags } }] : [];
  });
}

/** The entry that has taken over the resource declares it unchanged, or says that it means the resource. */
function isAsDeclared(run: Run, subject: Subject): boolean {
  const { world } = run;
  const { key, kind, parent } = subject;
  if (isStated(subject)) return true;
  const server = parent === undefined ? undefined : world.subjects.get(parent);
  if (server !== undefined) return server.binding?.recovered !== 'taken' || isAsDeclared(run, server);
  if (!world.isThere(key) || predecessorHolding(subject, world) !== undefined) return false;
  const { verdict } = run.kindOf(kind).diff(subject, world.observed.get(key), world);
  return verdict.verdict === 'unchanged' || (verdict.verdict === 'update' && verdict.loses === undefined);
}

function comparedChanges(run: Run, { operations, blocked }: Plan): StateChange[] {
  const { world, intents } = run;
  const busy = new Set([...operations, ...blocked].map(({ key }) => key));
  return [...world.subjects.values()].flatMap((subject) => {
    const { key, kind, parent, desired, binding } = subject;
    if (!run.kindOf(kind).setting || desired?.managed !== true || binding !== undefined) return [];
    const server = parent === undefined ? undefined : world.subjects.get(parent)?.binding;
    if (server === undefined || !world.isThere(key) || busy.has(key) || intents.has(key)) return [];
    return [{ type: 'bind', binding: bindingOf(run, subject, server.id, world) } as const];
  });
}

async function releaseChanges(run: Run, releases: readonly Release[]): Promise<StateChange[]> {
  const kept = releases.filter(({ gone }) => !gone);
  const gone = await confirmGone(
    run,
    releases.filter((each) => each.gone),
  );
  return [
    ...new Map(
      kept
        .flatMap(({ key, reason }) => releasing(run, key, 'file', reason))
        .map((each) => [subjectOf(each), each]),
    ).values(),
    ...gone.flatMap(({ key, reason }) => released(run, key, reason)),
  ];
}

/** The key of the binding or object that a change is about. */
function subjectOf(change: StateChange): string {
  if (change.type === 'claim') return objectName(change.claim);
  return change.type === 'release' ? change.key : change.type;
}

async function confirmGone(run: Run, releases: readonly Release[]): Promise<readonly Release[]> {
  if (releases.length === 0) return [];
  const keys = releases.map(({ key }) => key);
  if ((await observeAgain(run, keys)) === undefined) return [];
  const again = (await planFor(run, 0)).releases.filter(({ gone }) => gone).map(({ key }) => key);
  return releases.filter(({ key }) => again.includes(key));
}

/** The content of a plan that its reader knows. */
export interface ShownPlan {
  /** The operations of the plan, and the deletion of an old copy for a new one. */
  readonly operations: ReadonlySet<OperationId>;
  /** The operations for which the plan asks for a decision. */
  readonly undecided: ReadonlySet<OperationId>;
}

/** The change `oldest` of a new backup shows the later deletion of an old copy, which has no operation in this plan. */
export function shownBy({ operations, blocked }: Plan): ShownPlan {
  const copies = operations.flatMap(({ key, changes }) =>
    changes.flatMap(({ path, from }) =>
      path === 'oldest' ? [operationId('delete', childKey(key, String(from)))] : [],
    ),
  );
  const undecided = blocked.filter((each) => !isWaiting(each));
  return {
    operations: new Set([...operations.map(({ id }) => id), ...copies]),
    undecided: new Set(undecided.map(({ verb, key }) => operationId(verb, key))),
  };
}

/** A deletion that the plan did not show, or a creation for which the plan asked for a decision. */
export function isUnshown(operation: Operation, { operations, undecided }: ShownPlan): boolean {
  const { id, kind, verb, risk } = operation;
  if (operations.has(id)) return false;
  if (verb === 'create') return undecided.has(id);
  // If the plan showed the creation of the server, but not the address, a failed attempt of the run left the address.
  const server = factsOf(kind).independent ? successorOf(operation) : undefined;
  return risk === 'destructive' && (server === undefined || !operations.has(server));
}

/** Reports the losses and purchases that the shown plan did not contain, instead of causing them. */
export function unshownResults(unshown: readonly Operation[]): readonly OperationResult[] {
  const what = ({ verb, loses, replacement }: Operation) => {
    if (loses !== undefined) return `lose ${loses}`;
    if (replacement !== undefined) return 'be deleted and created again';
    return verb === 'create' ? 'be created' : 'be deleted';
  };
  return unshown.map((operation) => ({
    key: operation.replacement === undefined ? operation.key : (retiredFrom(operation.key) ?? operation.key),
    verb: operation.replacement === undefined ? operation.verb : 'update',
    outcome: 'blocked',
    code: 'not_shown',
    detail: `the resource would ${what(operation)}, and the first plan of this run did not show that`,
    remedies: [command('apply')],
    durationMs: 0,
  }));
}

/** After this number of answers that show nothing, the creation counts as unanswered. */
const mostTries = 3;

/**
 * Makes one plan, and proves its creations. The API must refuse all of these requests, and no later plan depends on
 * them: a refused creation is blocked in this plan alone.
 *
 * @throws ConfigError if the token may not write
 */
export async function provePlan(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  options: PlanOptions,
): Promise<Plan> {
  const { run, plan } = await openPlan(deps, gate, desired, options);
  const before = deps.counts().writes;
  const results: Proofs['results'][number][] = [];
  const refused: Blocked[] = [];
  let isPaused = false;
  for (const operation of plan.operations.filter(({ verb }) => verb === 'create')) {
    const { key } = operation;
    const proof: Proof | undefined = isPaused ? undefined : await proofOf(run, operation);
    if (proof === undefined) results.push({ key, outcome: 'not_sent', unproven: [] });
    else if (proof.is === 'proved' || proof.is === 'conflict')
      results.push({ key, outcome: 'accepted', unproven: proof.unproven });
    else if (proof.is === 'unanswered') results.push({ key, outcome: 'unanswered', unproven: [] });
    else {
      isPaused = proof.result.type === 'answer' && pauses[proof.result.status] !== undefined;
      results.push({ key, outcome: 'refused', unproven: [] });
      refused.push(blockedBy(run, operation, proof));
    }
  }
  // The calibration may have shown which fields remain unproven.
  const { plan: latest } = await openPlan(deps, gate, desired, options);
  return { ...withFurther(latest, refused), proofs: { writes: deps.counts().writes - before, results } };
}

/** Returns `undefined` for a creation whose request depends on another creation of the plan, or has no body. */
async function proofOf(run: Run, operation: Operation): Promise<Proof | undefined> {
  const { key, kind, needs } = operation;
  const { parent } = run.world.subjects.get(key) ?? {};
  if (parent !== undefined && needs.some((id) => id.startsWith('create:'))) return undefined;
  if (run.kindOf(kind).setting === true) return undefined;
  const request = run.kindOf(kind).writes.request(contextOf(run, operation, run.world));
  if (!isProvable(request)) return undefined;
  return inWriteSlot(run, operation, async () => {
    for (let tries = 1; ; tries++) {
      await roomToWrite(run);
      const proof = await prove(run, key, request);
      if (proof.is !== 'unanswered' || tries >= mostTries) return proof;
      await run.deps.clock.sleep(proof.afterMs * run.deps.profile.timeScale, run.signals.stop);
    }
  });
}

function blockedBy(
  run: Run,
  { key, verb }: Operation,
  { code, reason, parameters, result }: Proof & { readonly is: 'refused' },
): Blocked {
  if (code === 'insufficient_scope') {
    throw new ConfigError(
      `\`plan --prove\` needs a token that may write: it sends creations that the API must refuse. The API answered ${reason}. Nothing was created.`,
    );
  }
  const status = result.type === 'answer' ? result.status : 0;
  const again = command('plan', ['--prove']);
  const remedy =
    status === 402
      ? outside(paying, { next: [again] })
      : pauses[status] === undefined
        ? correction(run.world.subjects.get(key)?.desired, parameters)
        : outside('use another token, or change its permissions in the client area', { next: [again] });
  return { key, verb, code, reason, remedies: [remedy] };
}
