import equal from 'fast-deep-equal';
import { sumDecimals } from '../core/decimal.ts';
import type { Desired } from '../core/desired.ts';
import { PlanStaleError } from '../core/errors.ts';
import { digestOf } from '../core/json.ts';
import { parseKey, type ResourceKey } from '../core/keys.ts';
import { type Operation, type OperationId, operationId, type Plan } from '../core/plan.ts';
import type { ApplyReport, OperationResult } from '../core/progress.ts';
import type { Intent, StateChange } from '../core/state.ts';
import { isOvertaken, type Planned, type Release } from '../plan/build.ts';
import { draftOne } from '../plan/draft.ts';
import { halves } from '../plan/money.ts';
import { isSelected } from '../plan/selection.ts';
import { drain } from './drain.ts';
import { block, close, warn } from './endings.ts';
import type { ApplyOptions, EngineDeps } from './engine.ts';
import { isAbort, isFailedRead } from './interruption.ts';
import { openRun, planFor, withoutResources } from './look.ts';
import { letGo, released } from './release.ts';
import type { Run } from './run.ts';
import { settleOpen } from './settle-open.ts';
import { rememberStrangers } from './strangers.ts';
import { withheldOf } from './withheld.ts';
import type { WriteGate } from './write-gate.ts';

/** Every round but the last has to get something done, so this bounds nothing but a bug. */
const mostRounds = 100;
/** An operation that has come to nothing so often in one run is left to the next one. */
const mostTries = 3;
const absenceGapMs = 60_000;

/**
 * Plans and carries out, round after round, until a fresh plan is empty or what is left
 * needs a person.
 *
 * A run is: settle what earlier runs left open → look → plan → approve → drain → look …
 */
export async function apply(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  options: ApplyOptions,
): Promise<ApplyReport> {
  const startedAt = deps.clock.monotonic();
  const wanted = options.destroy ? withoutResources(desired) : desired;
  const run = await openRun(deps, gate, wanted, options);
  const results: OperationResult[] = [];
  const approved = new Set<OperationId>();
  /** What the last drain read after its writes is as good as read again. */
  let lookSince: number | undefined;
  let planned: Planned | undefined;
  /** Of earlier runs. */
  const unsettled: OperationResult[] = [];

  /** To the monthly bill, by what is done. */
  const added: string[] = [];
  const before = (): Before => ({ deletions: deletions(results), increase: sumDecimals(added) });

  /** Told by the plans of this run: once a resource has gone, nothing shows what it left. */
  const leftBilled = new Set<string>();

  function report(outcome: ApplyReport['outcome'], last: Plan): ApplyReport {
    const open = openServers(run, last, results);
    for (const { key, code, message } of open) warn(run, key, code, message);
    const warnings = [...last.warnings, ...open];
    const cost = results.length === 0 ? last.cost : { ...last.cost, left_billed: [...leftBilled] };
    return {
      outcome,
      results,
      plan: { ...last, warnings, cost },
      blocked: last.blocked,
      requests: deps.counts(),
      durationMs: deps.clock.monotonic() - startedAt,
    };
  }

  const withholds = (operation: Operation) =>
    isSuperseded(run, operation) || options.repeating?.withholds?.(operation) === true;

  function found(last: Plan): readonly OperationResult[] {
    return [...stillOpen(run, unsettled), ...results, ...supersededOf(run, last)];
  }

  async function rounds(): Promise<ApplyReport> {
    for (let round = 1; ; round++) {
      if (round === 1 && run.intents.size > 0) {
        unsettled.push(...(await settleOpen(run)));
        await settleMoves(run);
        lookSince = deps.clock.monotonic();
      }
      planned = await nextPlan(run, options, lookSince, before());
      const { plan } = planned;
      for (const each of plan.cost.left_billed) leftBilled.add(each);
      deps.onEvent?.({ type: 'planned', at: deps.clock.now(), round, plan });
      if (run.stop.aborted) return report('stopped', plan);
      if (round === 1 && options.saved !== undefined) refuseStale(plan, options.saved);
      const withheld = withheldOf(plan, withholds);
      const fresh = plan.operations.filter(({ id }) => !approved.has(id) && !withheld.has(id));
      const left = options.saved !== undefined && round > 1;
      if (fresh.length > 0 && !left) {
        if (!(await options.approve(plan))) return report(round === 1 ? 'declined' : 'failed', plan);
        for (const { id } of fresh) approved.add(id);
      }
      await keepBooks(run, planned);
      for (const id of withheld) approved.delete(id);
      const may = new Set(
        plan.operations
          .filter(
            ({ id, key, kind }) =>
              approved.has(id) &&
              tries(results, id) < mostTries &&
              !isTainted(results, key) &&
              !(run.kindOf(kind).repeats && isDone(results, key)),
          )
          .map(({ id }) => id),
      );
      if (may.size === 0 || round === mostRounds)
        return report(
          ending(plan, results, run),
          withFindings(run, plan, found(plan), options.destroy === true),
        );
      lookSince = deps.clock.monotonic();
      const prices = pricesOf(run, plan, may);
      const done = await drain(run, plan, may);
      results.push(...done);
      added.push(
        ...done.flatMap((result) => (hasEffect(run, result) ? (prices.get(idOf(result)) ?? []) : [])),
      );
      if (!run.stop.aborted && !done.some(isProgress)) {
        const { plan: rest } = await nextPlan(run, options, lookSince, before());
        return report(
          done.some(hasFailed) ? 'failed' : 'blocked',
          withFindings(run, rest, found(rest), options.destroy === true),
        );
      }
    }
  }

  try {
    return await rounds();
  } catch (error) {
    // Nothing is lost: what is in flight is in the state.
    const stopped = isAbort(run, error) || (run.stop.aborted && isFailedRead(error));
    if (stopped && planned !== undefined) return report('stopped', planned.plan);
    throw error;
  }
}

/** Of what earlier runs left, what this one has closed is not in the way any more. */
function stillOpen(run: Run, unsettled: readonly OperationResult[]): readonly OperationResult[] {
  return unsettled.filter(({ key }) => run.intents.has(key));
}

/** An API that gives out one id again and again would have this bought in every round. */
function isSuperseded({ superseded }: Run, { key, verb }: Operation): boolean {
  return verb === 'create' && superseded.has(key);
}

function supersededOf(run: Run, { operations }: Plan): readonly OperationResult[] {
  return operations
    .filter((each) => isSuperseded(run, each))
    .map(({ key, verb }) => {
      const detail = `its id was given to ${run.superseded.get(key)}, so it is gone; the next run makes it again`;
      return { key, verb, outcome: 'blocked', code: 'superseded', detail, durationMs: 0 };
    });
}

/** New servers that stand on a public address, and whose firewall has not come to be. */
function openServers(run: Run, plan: Plan, results: readonly OperationResult[]) {
  const missing = [...plan.operations, ...plan.blocked]
    .filter(({ key, verb }) => verb === 'create' && run.world.subjects.get(key)?.kind === 'firewall')
    .filter(({ key }) => !results.some((each) => each.key === key && each.outcome === 'done'));
  const servers = missing.flatMap(({ key }) => run.world.subjects.get(key)?.parent ?? []);
  return [...new Set(servers)].flatMap((key) => {
    const id = run.bindings.get(key)?.id ?? run.intents.get(key)?.resourceId;
    if (id === undefined) return [];
    return [
      { key, code: 'stands_open', message: 'it is there, and its firewall is not: nothing is filtered' },
    ];
  });
}

/** What earlier rounds of a run have done, as far as caps count it. */
interface Before {
  readonly deletions: number;
  /** Decimal text. */
  readonly increase: string;
}

/** What each operation changes of the monthly bill, as things are before it. */
function pricesOf(run: Run, plan: Plan, may: ReadonlySet<OperationId>): ReadonlyMap<OperationId, string> {
  return new Map(
    plan.operations.flatMap(({ id, key, verb }) => {
      const subject = run.world.subjects.get(key);
      if (subject === undefined || !may.has(id) || (verb !== 'create' && verb !== 'delete')) return [];
      return [[id, halves(draftOne(run.deps.kinds, run.world, subject).diff)[verb]] as const];
    }),
  );
}

/** Also what is of no use, or not known to have been made, may be billed. */
function hasEffect(run: Run, { key, verb, outcome, code }: OperationResult): boolean {
  if (outcome === 'done') return true;
  return (
    verb === 'create' && (code === 'tainted' || (run.intents.get(key)?.phase ?? 'waiting') !== 'waiting')
  );
}

function idOf({ verb, key }: OperationResult): OperationId {
  return operationId(verb, key);
}

/** Another round may get further: something was done, or the plan was behind the times. */
function isProgress({ outcome, code }: OperationResult): boolean {
  return outcome === 'done' || code === 'overtaken';
}

function hasFailed({ outcome }: OperationResult): boolean {
  return outcome === 'failed' || outcome === 'unresolved';
}

function tries(results: readonly OperationResult[], id: OperationId): number {
  return results.filter(({ verb, key, outcome }) => outcome !== 'done' && operationId(verb, key) === id)
    .length;
}

/** Once a run, whatever a clock says of its age; and again for a server that was replaced since. */
function isDone(results: readonly OperationResult[], key: ResourceKey): boolean {
  const parent = parseKey(key)?.parent;
  const last = (wanted: ResourceKey | undefined) =>
    results.findLastIndex((result) => result.key === wanted && result.outcome === 'done');
  return last(key) > last(parent);
}

/** What failed and was left behind in this run is for a person, or for the next run, to look at. */
function isTainted(results: readonly OperationResult[], key: ResourceKey): boolean {
  return results.some((result) => result.key === key && result.code === 'tainted');
}

/** The plan of what is there now; the run's first look counts as now where nothing has been settled since. */
async function nextPlan(
  run: Run,
  options: ApplyOptions,
  lookSince: number | undefined,
  before: Before,
): Promise<Planned> {
  if (!run.halt.aborted && lookSince !== undefined) {
    run.cache.forgetLists();
    await run.look(run.repeating === undefined ? lookSince : 0);
  }
  return planFor(run, options.destroy ?? false, before.deletions, before.increase);
}

/** What the plan changes of the state alone: no write goes with it. */
async function keepBooks(run: Run, planned: Planned): Promise<void> {
  const { plan, releases } = planned;
  await run.deps.store.claimProject(run.desired.projectId);
  await run.keepMoves();
  await rememberStrangers(run, planned);
  await closeOvertaken(run, plan);
  const changes = [...flagChanges(run), ...(await releaseChanges(run, releases))];
  if (changes.length > 0) await run.change(changes);
}

/** Writes without effect so far that the plan, or the file as it is now, no longer asks for. */
async function closeOvertaken(run: Run, plan: Plan): Promise<void> {
  for (const intent of [...run.intents.values()]) {
    if (isOvertaken(intent, run.world)) {
      await close(run, intent, 'refused', 'the file has changed');
      continue;
    }
    // A plan that waits for a rename asks for nothing, and so says nothing of what is wanted.
    if (intent.phase !== 'waiting' || run.heldMoves.length > 0) continue;
    if (run.selection !== undefined && !isSelected(run.selection, intent.key)) continue;
    const asked = plan.operations.some(({ key, verb }) => key === intent.key && verb === intent.verb);
    const subject = run.world.subjects.get(intent.key);
    if (asked && intent.basis === digestOf(subject?.desired?.value ?? null)) continue;
    await closeWaiting(run, intent);
  }
}

async function closeWaiting(run: Run, intent: Intent): Promise<void> {
  const detail = 'not wanted any more';
  if (intent.why === 'unreadable')
    await block(run, intent, 'outcome_unknown', `${detail}, but it was accepted once`);
  else await close(run, intent, intent.ambiguous ? 'absent' : 'refused', detail);
}

/** What was in flight under a key that the file has renamed is settled: without effect so far, it is asked for anew. */
async function settleMoves(run: Run): Promise<void> {
  if (run.heldMoves.length === 0) return;
  for (const key of new Set(run.heldMoves.flatMap(({ waitsFor }) => waitsFor))) {
    const intent = run.intents.get(key);
    if (intent === undefined) continue;
    if (isOvertaken(intent, run.world)) await close(run, intent, 'refused', 'the file has changed');
    else if (intent.phase === 'waiting') await closeWaiting(run, intent);
  }
  run.renewMoves();
}

/** `protect` and `keep_ip` hold after their entry has left the file, so the state keeps them. */
function flagChanges(run: Run): StateChange[] {
  return [...run.bindings.values()].flatMap((binding) => {
    const subject = run.world.subjects.get(binding.key);
    if (subject?.desired === undefined) return [];
    const { protect } = subject.desired;
    const owner = subject.parent === undefined ? undefined : run.world.subjects.get(subject.parent)?.desired;
    const keep =
      binding.kind === 'ip' && owner !== undefined
        ? ((owner.value as { readonly keep_ip?: boolean }).keep_ip ?? false)
        : binding.keep;
    if (protect === binding.protect && keep === binding.keep) return [];
    return [{ type: 'bind', binding: { ...binding, protect, keep } } as const];
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
      kept.flatMap(({ key, reason }) => letGo(run, key, reason).map((each) => [each.key, each])),
    ).values(),
    ...gone.flatMap(({ key, reason }) => released(run, key, reason)),
  ];
}

/** One look that misses a resource is not its absence: a second one decides. @assumption A9 */
async function confirmGone(run: Run, releases: readonly Release[]): Promise<readonly Release[]> {
  if (releases.length === 0) return [];
  await run.deps.clock.sleep(absenceGapMs, run.stop);
  const token = await run.fence();
  const since = run.deps.clock.monotonic();
  for (const { key } of releases) await run.lookAgain(key, since);
  if (run.deps.writes.token() !== token) return [];
  const again = new Set((await planFor(run, false, 0)).releases.map(({ key }) => key));
  return releases.filter(({ key }) => again.has(key));
}

function refuseStale(plan: Plan, saved: Plan): void {
  // The digest is the world's; what was reviewed is the list, so both have to be as they were.
  if (plan.digest === saved.digest && equal(plan.operations, saved.operations)) return;
  const others = differing(plan.operations, saved.operations);
  const where =
    others.length === 0
      ? ''
      : `, and now differs in ${others.slice(0, 5).join(', ')}${others.length > 5 ? ' and more' : ''}`;
  throw new PlanStaleError(
    `The saved plan no longer fits: the project or the file has moved since it was made${where}. Make a new one with \`vdcsync plan --out FILE\` and review it.`,
  );
}

/** Keys with other operations than were reviewed. */
function differing(now: Plan['operations'], then: Plan['operations']): ResourceKey[] {
  const same = (one: Plan['operations'][number], others: Plan['operations']) =>
    others.some((other) => equal(one, other));
  const moved = [...now.filter((each) => !same(each, then)), ...then.filter((each) => !same(each, now))];
  return [...new Set(moved.map(({ key }) => key))];
}

function deletions(results: readonly OperationResult[]): number {
  return results.filter(
    ({ verb, outcome, key }) => verb === 'delete' && outcome === 'done' && !key.endsWith('.public_ipv4'),
  ).length;
}

function ending(plan: Plan, results: readonly OperationResult[], run: Run): ApplyReport['outcome'] {
  if (plan.blocked.length > 0 || run.intents.size > 0) return 'blocked';
  if (plan.operations.length > 0) return results.some(hasFailed) ? 'failed' : 'blocked';
  return 'converged';
}

/** What this run found in the way belongs into its last plan, also where a fresh look does not show it. */
function withFindings(run: Run, plan: Plan, results: readonly OperationResult[], destroy: boolean): Plan {
  const found = new Map(results.map((result) => [result.key, result]));
  const planned = new Map(plan.blocked.map((each) => [each.key, each]));
  const further = [...found.values()].flatMap(({ key, verb, outcome, code = 'blocked', detail = '' }) => {
    const open = run.intents.get(key);
    // Of what is under way a diff knows nothing: what it did already looks like somebody else's.
    const better = open === undefined || open.phase === 'blocked' ? planned.get(key) : undefined;
    if (outcome !== 'blocked' || better !== undefined) return [];
    return [{ key, verb, code, reason: detail, resolve: wayOut(open, destroy ? 'destroy' : 'apply') }];
  });
  const told = new Set(further.map(({ key }) => key));
  const blocked = [...plan.blocked.filter(({ key }) => !told.has(key)), ...further];
  return { ...plan, blocked, summary: { ...plan.summary, blocked: blocked.length } };
}

function wayOut(open: Intent | undefined, command: 'apply' | 'destroy'): string {
  const again = `vdcsync ${command} (once the cause is gone)`;
  if (open === undefined || open.phase === 'waiting') return again;
  const adopt =
    open.verb === 'create' ? [`vdcsync resolve ${open.key} --adopt ${open.resourceId ?? 'ID'}`] : [];
  return [again, ...adopt, `vdcsync resolve ${open.key} --abandon`].join(' | ');
}
