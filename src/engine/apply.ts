import { sumDecimals } from '../core/decimal.ts';
import type { Desired } from '../core/desired.ts';
import { parseKey, type ResourceKey } from '../core/keys.ts';
import { type Operation, type OperationId, operationId, type Plan } from '../core/plan.ts';
import type { ApplyReport, OperationResult } from '../core/progress.ts';
import { draftOne } from '../plan/draft.ts';
import { halves, pricedParts } from '../plan/money.ts';
import { keepBooks, settleMoves } from './books/books.ts';
import { leftByDeletion } from './books/left-backups.ts';
import type { Judged } from './books/strangers.ts';
import type { ApplyOptions, EngineDeps } from './deps.ts';
import { drain } from './drain.ts';
import { isSuperseded, openServers, stillOpen, supersededOf, withFindings } from './findings.ts';
import { warn } from './intents/endings.ts';
import { settleOpen } from './intents/settle-open.ts';
import { isAbort, isFailedRead } from './interruption.ts';
import { openRun, planFor } from './look.ts';
import type { Run } from './run.ts';
import { refuseStale } from './saved-plan.ts';
import { shownBy, unshownResults, withheldOf } from './withheld.ts';
import type { WriteGate } from './write-gate.ts';

/** Every round but the last has to get something done, so this bounds nothing but a bug. */
const mostRounds = 100;
/** An operation that has come to nothing so often in one run is left to the next one. */
const mostTries = 3;

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
  const run = await openRun(deps, gate, desired, options);
  const results: OperationResult[] = [];
  const approved = new Set<OperationId>();
  /** What the last drain read after its writes is as good as read again. */
  let lookSince: number | undefined;
  let planned: Judged | undefined;
  /** Of earlier runs. */
  const unsettled: OperationResult[] = [];

  /** How long a person took to answer, which is no part of the work. */
  let askedMs = 0;
  async function isApproved(plan: Plan): Promise<boolean> {
    const since = deps.clock.monotonic();
    const yes = await options.approve(plan);
    askedMs += deps.clock.monotonic() - since;
    return yes;
  }

  const added: Added[] = [];
  const before = (): Before => ({
    deletions: deletions(results),
    increase: sumDecimals(added.map((each) => amountOf(run, each))),
  });

  /** Told by the plans of this run, and by what it settled: once a resource has gone, nothing shows what it left. */
  const leftBilled = new Set<string>();

  function report(outcome: ApplyReport['outcome'], last: Plan): ApplyReport {
    const open = openServers(run, last, results);
    for (const { key, code, message } of open) warn(run, key, code, message);
    const warnings = [...last.warnings, ...open];
    const cost = { ...last.cost, left_billed: [...leftBilled] };
    return {
      outcome,
      results,
      plan: { ...last, warnings, cost },
      blocked: last.blocked,
      requests: deps.counts(),
      durationMs: deps.clock.monotonic() - startedAt - askedMs,
    };
  }

  let shown: ReadonlySet<OperationId> | undefined;
  const isUnshown = ({ id, risk }: Operation) =>
    options.unattended === true && !options.destroy && risk === 'destructive' && shown?.has(id) === false;
  const withholds = (operation: Operation) =>
    isSuperseded(run, operation) ||
    isUnshown(operation) ||
    options.repeating?.withholds?.(operation) === true;

  function found(last: Plan): readonly OperationResult[] {
    const unshown = unshownResults(last.operations.filter(isUnshown));
    return [...stillOpen(run, unsettled), ...results, ...supersededOf(run, last), ...unshown];
  }

  async function rounds(): Promise<ApplyReport> {
    for (let round = 1; ; round++) {
      if (round === 1 && run.intents.size > 0) {
        const open = [...run.intents.values()];
        unsettled.push(...(await settleOpen(run)));
        for (const each of open.flatMap((intent) => leftByDeletion(run, intent))) leftBilled.add(each);
        await settleMoves(run);
        lookSince = deps.clock.monotonic();
      }
      planned = await nextPlan(run, options, lookSince, before);
      const { plan } = planned;
      shown ??= shownBy(plan);
      for (const each of plan.cost.left_billed) leftBilled.add(each);
      deps.onEvent?.({ type: 'planned', at: deps.clock.now(), round, plan });
      if (run.stop.aborted) return report('stopped', plan);
      if (round === 1 && options.saved !== undefined) refuseStale(plan, options.saved);
      const withheld = withheldOf(plan, withholds);
      const fresh = plan.operations.filter(({ id }) => !approved.has(id) && !withheld.has(id));
      const left = options.saved !== undefined && round > 1;
      if (fresh.length > 0 && !left) {
        if (!(await isApproved(plan))) return report(round === 1 ? 'declined' : 'failed', plan);
        for (const { id } of fresh) approved.add(id);
      }
      const inFlight = run.intents.size;
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
      // What was in flight hid what is to be done under its key.
      if (may.size === 0 && run.intents.size < inFlight && round < mostRounds) continue;
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
        const { plan: rest } = await nextPlan(run, options, lookSince, before);
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

/** What earlier rounds of a run have done, as far as caps count it. */
interface Before {
  readonly deletions: number;
  /** Decimal text. */
  readonly increase: string;
}

/** To the monthly bill, by what was done. */
interface Added {
  readonly key: ResourceKey;
  /** Decimal text. */
  readonly most: string;
  /** The file left a choice, and what was bought may be cheaper. */
  readonly chosen: boolean;
}

/** What was bought tells its price once it is seen. */
function amountOf({ world, deps }: Run, { key, most, chosen }: Added): string {
  const subject = world.subjects.get(key);
  if (!chosen || subject?.binding === undefined) return most;
  const price = deps.kinds.get(subject.kind)?.priceNow?.(subject, world.observed.get(key), world);
  return price !== undefined && 'known' in price ? price.known : most;
}

/** What each operation changes of the monthly bill, as things are before it. */
function pricesOf(
  run: Run,
  plan: Plan,
  may: ReadonlySet<OperationId>,
): ReadonlyMap<OperationId, readonly Added[]> {
  return new Map(
    plan.operations.flatMap(({ id, key, verb }) => {
      const subject = run.world.subjects.get(key);
      if (subject === undefined || !may.has(id) || verb === 'adopt') return [];
      const parts = pricedParts(draftOne(run.deps.kinds, run.world, subject)).map(({ diff }) => {
        const chosen = verb === 'create' && diff.dearest !== undefined;
        return { key, most: halves(diff)[verb], chosen };
      });
      return [[id, parts] as const];
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
  before: () => Before,
): Promise<Judged> {
  if (!run.halt.aborted && lookSince !== undefined) {
    run.cache.forgetLists();
    await run.look(run.repeating === undefined ? lookSince : 0);
  }
  run.planned = run.world;
  const { deletions, increase } = before();
  return planFor(run, options.destroy ?? false, deletions, increase);
}

function deletions(results: readonly OperationResult[]): number {
  const isOwnAddress = (key: ResourceKey) =>
    parseKey(key)?.kind === 'ip' && parseKey(key)?.parent !== undefined;
  return results.filter(
    ({ verb, outcome, key }) => verb === 'delete' && outcome === 'done' && !isOwnAddress(key),
  ).length;
}

function ending(plan: Plan, results: readonly OperationResult[], run: Run): ApplyReport['outcome'] {
  if (plan.blocked.length > 0 || run.intents.size > 0) return 'blocked';
  if (plan.operations.length > 0) return results.some(hasFailed) ? 'failed' : 'blocked';
  return 'converged';
}
