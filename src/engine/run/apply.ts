import type { Desired } from '../../core/desired.ts';
import { takeApart } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import { deletionsOf, type Operation, type OperationId, operationId, type Plan } from '../../core/plan.ts';
import type { ApplyReport, OperationResult } from '../../core/progress.ts';
import type { Intent } from '../../core/state.ts';
import { isFailedRead } from '../../core/transport.ts';
import { traced } from '../../core/work.ts';
import { exposedServers } from '../../core/world.ts';
import { closure } from '../../plan/order.ts';
import { increaseSince, type Prices, pricesNow } from '../../plan/totals.ts';
import type { Judged } from '../claims/claims.ts';
import { clearNewKeys, isOutdated, takeBack } from '../claims/line.ts';
import { leftByDeletion } from '../claims/release.ts';
import { confirmRecovered } from '../claims/run-state.ts';
import type { ApplyOptions, EngineDeps, Pause } from '../deps.ts';
import { warn } from '../intents/endings.ts';
import { askSuccessors } from '../intents/next-incarnation.ts';
import { keepRefused, withPauses } from '../intents/pauses.ts';
import type { Run } from '../run.ts';
import type { WriteGate } from '../write-gate.ts';
import { refuseStale } from './approval.ts';
import { drain, isAbort, isDone, isFailed, recovered, unfinished } from './drain.ts';
import {
  applying,
  furtherBlocked,
  isSuperseded,
  recordFindings,
  standingFindings,
  stillOpen,
  supersededOf,
  withFindings,
  withFurther,
} from './findings.ts';
import {
  applyStateChanges,
  isUnshown,
  planFor,
  type ShownPlan,
  settleMoves,
  shownBy,
  unshownResults,
} from './plan.ts';
import { recover, recoverLeft, recoverRenamed } from './recover.ts';
import { settleOpen } from './settle-open.ts';
import { openRun } from './start.ts';
import { reserveUnreached } from './unreached-keys.ts';

/** Each round except the last round makes progress, so only a bug in vdcsync reaches this limit. */
const mostRounds = 100;
/** The pause between two observations of a server that is still being created. */
const creationGapMs = 30_000;
/** After this number of failed tries in one run, the next run retries the operation. */
const mostTries = 3;

/**
 * Plans and applies, round after round, until a fresh plan is empty or the remaining operations need an operator.
 *
 * A run has these steps: settle the open writes of earlier runs → refresh → plan → approve → drain → refresh …
 */
export async function apply(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  options: ApplyOptions,
): Promise<ApplyReport> {
  const startedAt = deps.clock.monotonic();
  const pauses = new Map<string, Pause>();
  // A store that loses the state cannot record any step of the run from then on.
  const halts = [options.halt, deps.store.lost].filter((each) => each !== undefined);
  const halt = AbortSignal.any(halts);
  const { destroy = false } = options;
  const open = (mode: Pick<ApplyOptions, 'destroy'> = {}) =>
    openRun(deps, gate, desired, { ...options, ...mode, halt, pauses });
  try {
    const first = await open({ destroy: false });
    if (options.repeating !== undefined) await keepRefused(first, options.repeating, pauses);
    if (!destroy) await recovered(first, reserveUnreached);
    const found = await recovered(first, (run) => recover(run, destroy));
    const run = found || destroy ? await open() : first;
    const report = await new Rounds(run, open, options, startedAt).carryOut();
    if (report.outcome === 'stopped') deps.store.lost?.throwIfAborted();
    return report;
  } catch (error) {
    deps.store.lost?.throwIfAborted();
    throw error;
  }
}

/** The rounds of one run, and their results so far. */
class Rounds {
  #run: Run;
  readonly #open: () => Promise<Run>;
  readonly #options: ApplyOptions;
  readonly #startedAt: number;
  readonly #results: OperationResult[] = [];
  /** Writes that earlier runs left open, and that are still open. */
  readonly #unsettled: OperationResult[] = [];
  readonly #approved = new Set<OperationId>();
  /** The prices before the first write of this run, or before the replacement that it completes. */
  #pricesBefore: Prices | undefined;
  /** The deletions so far that `settings.max_deletions` counts. */
  #deleted = 0;
  /**
   * Reported by the plans of this run and by the settled writes. Once a resource is gone, no read shows the addresses
   * and backups that the resource left.
   */
  readonly #leftBilled = new Set<string>();
  /** The time that an operator took to answer. The duration of the run does not include this time. */
  #askedMs = 0;
  /**
   * The time from which reads are fresh enough for the next plan. The reads of the last drain, made after its writes,
   * are fresh.
   */
  #readSince: number | undefined;
  #planned: Judged | undefined;
  /** The time from which this run has waited only for adopted servers. Monotonic ms. */
  #creationSince: number | undefined;
  /** By the first plan. */
  #shown: ShownPlan | undefined;

  /** `open` loads the state again. */
  constructor(run: Run, open: () => Promise<Run>, options: ApplyOptions, startedAt: number) {
    this.#run = run;
    this.#open = open;
    this.#options = options;
    this.#startedAt = startedAt;
  }

  async carryOut(): Promise<ApplyReport> {
    try {
      for (let round = 1; ; round++) {
        const report = await this.#round(round);
        if (report !== undefined) return report;
      }
    } catch (error) {
      // An abort loses no write: the state records each write in flight.
      if (!isAbort(this.#run.signals, error) && !(this.#run.signals.stop.aborted && isFailedRead(error)))
        throw error;
      this.#results.push(...unfinished(this.#run, this.#results));
      if (this.#planned !== undefined) return this.#stopped(this.#planned.plan);
      throw error;
    }
  }

  /** `undefined`: another round may make progress. */
  async #round(round: number): Promise<ApplyReport | undefined> {
    const { saved } = this.#options;
    if (round === 1 && this.#run.intents.size > 0) await this.#settleEarlier();
    if (saved === undefined && isOutdated(this.#run)) this.#run = await this.#open();
    const run = this.#run;
    const planned = await traced(run.deps.tracing, 'plan', { 'vdcsync.round': round }, () => this.#plan());
    const { plan } = planned;
    run.facts.countPlanned(planned.most);
    this.#note(planned, round);
    run.signals.stop.throwIfAborted();
    if (round === 1 && saved !== undefined) refuseStale(run.deps.hidden.shown(plan), saved);
    const withheld = closure(plan.operations, (operation) => this.#isPaused(operation));
    const isExact = saved !== undefined && round > 1;
    if (!isExact && !(await this.#approve(plan, withheld)))
      return this.#report(round === 1 ? 'declined' : 'failed', plan);
    const [bound, claimed] = [run.bindings.size, run.claims.size];
    const inFlight = new Map([...run.intents.values()].map(({ id, phase }) => [id, phase]));
    await applyStateChanges(run, planned);
    for (const id of withheld) this.#approved.delete(id);
    const due = this.#due(plan);
    if (due.size === 0 && round < mostRounds) {
      // A write in flight hides the operations that are due under its key. One that the plan has given up is settled first.
      const open = [...run.intents.values()].filter(({ id, phase }) => phase !== inFlight.get(id));
      if (run.intents.size < inFlight.size || open.length > 0) {
        if (open.length > 0) await this.#settle(open);
        return undefined;
      }
      // A question may be about the object of a claim that has ended.
      if (run.claims.size < claimed && plan.blocked.length > 0) return undefined;
      // The key may take another resource, such as the address that its server has now.
      if (run.bindings.size < bound && planned.releases.some(({ gone }) => gone)) return undefined;
      // The second read found the resource.
      if (planned.releases.some(({ key, gone }) => gone && run.bindings.has(key)) && round < mostTries) {
        this.#readSince = run.deps.clock.monotonic();
        return undefined;
      }
      if (await this.#awaitsCreation(planned)) return undefined;
      const isUnconfirmed = [...run.bindings.values()].some(({ recovered: is }) => is === 'found');
      if (isUnconfirmed && (await recovered(run, askSuccessors))) return undefined;
    }
    if (due.size === 0) await recovered(run, reserveUnreached);
    if (due.size === 0 || round === mostRounds)
      return this.#reportFindings(ending(planned, this.#results, run), planned);
    return this.#drain(plan, due);
  }

  async #settle(open: readonly Intent[]): Promise<void> {
    this.#unsettled.push(...(await settleOpen(this.#run, open)));
    this.#readSince = this.#run.deps.clock.monotonic();
  }

  async #settleEarlier(): Promise<void> {
    const run = this.#run;
    const open = [...run.intents.values()];
    const isRenamed = run.moves.waiting.length > 0;
    await this.#settle(open);
    await recovered(run, recoverLeft);
    for (const each of open.flatMap((intent) => leftByDeletion(run, intent))) this.#leftBilled.add(each);
    await settleMoves(run);
    this.#readSince = run.deps.clock.monotonic();
    if (isRenamed && this.#options.saved === undefined && (await recovered(run, recoverRenamed)))
      this.#run = await this.#open();
  }

  /**
   * Plans from the current project, and throws if no read can be made any more. The first refresh of the run is current
   * if no write was settled since.
   */
  async #plan(): Promise<Judged> {
    const run = this.#run;
    if (this.#readSince !== undefined) {
      // Reads from before the writes show no created resource, so a plan from these reads would ask for each one again.
      run.signals.halt.throwIfAborted();
      run.cache.forgetLists();
      await run.view.refresh(run.mode.repeating === undefined ? this.#readSince : 0);
    }
    if (await takeBack(run)) {
      await settleMoves(run);
      await takeBack(run);
    }
    await clearNewKeys(run);
    return planFor(run, this.#deleted, (freed) => this.#increase(freed));
  }

  /** The amount that this run has added to the monthly bill so far. */
  #increase(freed: Prices): string {
    const { world, kindOf } = this.#run;
    const managed = [...world.subjects.values()];
    const prices = pricesNow(
      world,
      managed.map((subject) => ({ subject, kind: kindOf(subject.kind) })),
    );
    this.#pricesBefore ??= new Map([...freed, ...prices]);
    return increaseSince(this.#pricesBefore, prices, this.#results, freed);
  }

  #note(planned: Judged, round: number): void {
    const { plan } = planned;
    const { clock, onEvent } = this.#run.deps;
    this.#planned = planned;
    this.#shown ??= shownBy(plan);
    for (const each of plan.cost.left_billed) this.#leftBilled.add(each);
    onEvent?.({ type: 'planned', at: clock.now(), round, plan });
  }

  #isPaused(operation: Operation): boolean {
    return (
      isSuperseded(this.#run, operation) ||
      this.#isUnshown(operation) ||
      this.#options.repeating?.isPaused?.(operation) === true
    );
  }

  #isUnshown(operation: Operation): boolean {
    const { unattended, destroy } = this.#options;
    return unattended === true && !destroy && this.#shown !== undefined && isUnshown(operation, this.#shown);
  }

  /** Asks only if the plan has operations that no earlier question covered. */
  async #approve(plan: Plan, withheld: ReadonlySet<OperationId>): Promise<boolean> {
    const fresh = plan.operations.filter(({ id }) => !this.#approved.has(id) && !withheld.has(id));
    if (fresh.length === 0) return true;
    const { clock } = this.#run.deps;
    const since = clock.monotonic();
    const yes = await this.#options.approve(plan);
    this.#askedMs += clock.monotonic() - since;
    if (!yes) return false;
    for (const { id } of fresh) this.#approved.add(id);
    await confirmRecovered(this.#run, plan);
    return true;
  }

  /**
   * The approved operations that have not ended in this run. An operation is left out if an operation that it needs,
   * or the other half of its replacement, is left out.
   */
  #due(plan: Plan): ReadonlySet<OperationId> {
    const results = this.#results;
    const isLeft = ({ id, key }: Operation) =>
      !this.#approved.has(id) || tries(results, id) >= mostTries || isFailed(results, key);
    const left = closure(plan.operations, isLeft);
    const isDue = ({ id, key, kind }: Operation) =>
      !left.has(id) && !(factsOf(kind).repeats && isDone(results, key));
    return new Set(plan.operations.filter(isDue).map(({ id }) => id));
  }

  /**
   * Waits for servers that were adopted before their creation has ended. A daemon does not wait here, because the
   * next reconciliation refreshes these servers.
   */
  async #awaitsCreation({ plan, pending }: Judged): Promise<boolean> {
    const run = this.#run;
    const { clock } = run.deps;
    const adopted = pending.filter((key) => !run.intents.has(key));
    if (adopted.length === 0 || plan.blocked.length > 0 || run.mode.repeating !== undefined) return false;
    this.#creationSince ??= clock.monotonic();
    const deadlines = adopted.map((key) => run.kindOf(takeApart(key).kind).timing.deadlineMs);
    if (clock.monotonic() - this.#creationSince > Math.max(...deadlines)) return false;
    for (const key of adopted) run.report({ key, verb: 'adopt' }, 'checking', 'still being created');
    await clock.sleep(creationGapMs, run.signals.stop);
    this.#readSince = clock.monotonic();
    return true;
  }

  async #drain(plan: Plan, due: ReadonlySet<OperationId>): Promise<ApplyReport | undefined> {
    const run = this.#run;
    this.#readSince = run.deps.clock.monotonic();
    const done = await drain(run, plan, due);
    this.#results.push(...done);
    const ended = new Set(done.flatMap((each) => (each.outcome === 'done' ? [idOf(each)] : [])));
    this.#deleted += deletionsOf({ operations: plan.operations.filter(({ id }) => ended.has(id)) });
    // Another round may make progress: an operation is done, or the plan was outdated.
    const mayProgress = done.some(({ outcome, code }) => outcome === 'done' || code === 'overtaken');
    if (run.signals.stop.aborted || mayProgress) return undefined;
    return this.#reportFindings(done.some(hasFailed) ? 'failed' : 'blocked', await this.#plan());
  }

  /**
   * Adds the resources that this run and earlier runs found blocked. The state records these findings, so that the
   * next plan reports the same.
   */
  async #reportFindings(outcome: ApplyReport['outcome'], last: Judged): Promise<ApplyReport> {
    const run = this.#run;
    const { store } = run.deps;
    const { plan } = last;
    const unshown = unshownResults(plan.operations.filter((each) => this.#isUnshown(each)));
    const results = [
      ...stillOpen(run, this.#unsettled),
      ...this.#results,
      ...supersededOf(run, plan),
      ...unshown,
    ];
    const found = furtherBlocked(run, plan, results, this.#options.destroy === true);
    const tried = new Set(results.map(({ key }) => key));
    const earlier = (await standingFindings(store)).filter(({ key }) => !tried.has(key));
    // The refusal of a class of writes has its own record and its own end, so it is not recorded as a finding.
    const paused = await withPauses(run.deps, last);
    const held = new Set(paused.blocked.map(({ key }) => key));
    const recorded = run.facts.allPaused() === undefined ? found.filter(({ key }) => !held.has(key)) : [];
    const further = withFurther(withFindings(paused, found), applying(earlier, plan, run.world));
    const record = { kept: earlier, found: recorded, plan: further, at: run.deps.clock.now() };
    return this.#report(outcome, await recordFindings(store, run.world, run.intents, record));
  }

  /** No read follows a stop, so the last plan without the finished operations is the rest. */
  #stopped(last: Plan): ApplyReport {
    const done = new Set(this.#results.filter(({ outcome }) => outcome === 'done').map(idOf));
    const operations = last.operations.filter(({ id }) => !done.has(id));
    return this.#report('stopped', { ...last, operations });
  }

  #report(outcome: ApplyReport['outcome'], last: Plan): ApplyReport {
    const run = this.#run;
    // Only a stopped run has not read the project since its last write.
    const ended = outcome === 'stopped' ? this.#results : [];
    const done = new Set(ended.flatMap((each) => (each.outcome === 'done' ? [each.key] : [])));
    const exposed = exposedServers(run.world, { intents: [...run.intents.values()], done });
    for (const { key, code, message } of exposed) if (key !== null) warn(run, key, code, message);
    const others = last.warnings.filter(({ code }) => code !== 'exposed');
    const cost = { ...last.cost, left_billed: [...this.#leftBilled] };
    return {
      outcome,
      results: this.#results,
      plan: { ...last, warnings: [...exposed, ...others], cost },
      blocked: last.blocked,
      requests: run.deps.counts(),
      durationMs: run.deps.clock.monotonic() - this.#startedAt - this.#askedMs,
    };
  }
}

function hasFailed({ outcome }: OperationResult): boolean {
  return outcome === 'failed' || outcome === 'unresolved';
}

function tries(results: readonly OperationResult[], id: OperationId): number {
  return results.filter((each) => each.outcome !== 'done' && idOf(each) === id).length;
}

function idOf({ verb, key }: OperationResult): OperationId {
  return operationId(verb, key);
}

function ending(
  { plan, pending }: Judged,
  results: readonly OperationResult[],
  run: Run,
): ApplyReport['outcome'] {
  if (plan.blocked.length + run.intents.size + pending.length > 0) return 'blocked';
  if (plan.operations.length > 0) return results.some(hasFailed) ? 'failed' : 'blocked';
  return 'converged';
}
