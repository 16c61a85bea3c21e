import { linesText } from '../../core/escape.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { World } from '../../core/kind.ts';
import { factsOf } from '../../core/kind-facts.ts';
import { blockedName, isLeft, type Operation, type Plan } from '../../core/plan.ts';
import type { OperationResult, ProgressEvent } from '../../core/progress.ts';
import { remedyText } from '../../core/remedy.ts';
import { type DriftEnding, driftEndings, driftLines } from '../notifications/drift.ts';
import { approvalOf, differences, type Notification, notificationOf } from '../notifications/notification.ts';
import { PlanReports } from '../notifications/plan-reports.ts';
import type { DaemonLogger } from '../ports.ts';
import type { ShownPause } from '../scheduling/pauses.ts';
import { type Condition, conditionOf, endingOf, knownCondition } from './condition.ts';
import type { ReconciliationRecord } from './facts.ts';
import type { ReconciliationMemory } from './memory.ts';
import { exposedServers } from './troubles.ts';

export interface ProjectHistoryOptions {
  readonly project: number;
  readonly observing: boolean;
  readonly log: DaemonLogger;
  readonly onNotification: (notification: Notification) => void;
  /** The flags that select this project in a command. */
  readonly flags: () => string;
}

/**
 * The results of a project's reconciliations: its condition, the time of the last change, and the reports that follow
 * from them.
 */
export class ProjectHistory {
  plan: Plan | undefined;
  world: World | undefined;
  /** Wall ms of the project's clock. */
  refreshedAt: number | undefined;
  /** The error that ended the last reconciliation. */
  error: unknown;
  /** Digest of the plan that waits for the operator. */
  awaiting: string | undefined;
  /** The number of failed reconciliations in a row. */
  failures = 0;
  reconciliations = 0;
  lastReconciliation: ReconciliationRecord | undefined;
  differsSince: number | undefined;
  condition: Condition = 'starting';
  conditionSince: number | undefined;
  /** When each blocked entry was first seen, by {@link blockedName}. */
  blockedSince: ReadonlyMap<string, number> = new Map();
  /** When an address was first seen without a server, by the id of the address. */
  idleSince: ReadonlyMap<number, number> = new Map();
  /** Whether something is billed that no entry of the file asks for. */
  leaking = false;
  readonly #options: ProjectHistoryOptions;
  readonly #news: PlanReports;
  /** Counts of the first plan for a spec. */
  #counted: { readonly digest: string; readonly summary: Plan['summary'] } | undefined;
  /** The commit of the last reconciliation that was not cut short. */
  #reconciled: string | undefined;
  /**
   * The digest of the spec that the project was last equal to, except for waiting operations. Absent after a write: a
   * write for another spec leaves a difference that is no drift.
   */
  #settledDigest: string | undefined;
  /** The keys that were blocked at that time. When their operations are done later, that is no drift. */
  #waiting: ReadonlySet<string> = new Set();
  /** Drift in the newest plan that is not reported yet, because it is not decided whether the plan is carried out. */
  #undecided: readonly Operation[] = [];
  /** Operations that were reported as drift, and that plans have held since. */
  #drifted: ReadonlySet<string> = new Set();
  /** The reported differences that vdcsync does not correct. */
  #differs = '';
  /** Keys that wait for a graphics card. */
  readonly #scarce = new Set<ResourceKey>();

  constructor(options: ProjectHistoryOptions) {
    this.#options = options;
    this.#news = new PlanReports(options.log, options.flags);
  }

  look(world: World, at: number): void {
    this.world = world;
    this.refreshedAt = at;
    const idle = world.ips.filter(({ server_id }) => server_id === null);
    this.idleSince = new Map(idle.map(({ id }) => [id, this.idleSince.get(id) ?? at]));
  }

  /** @param digest of the spec that the reconciliation uses */
  follow(event: ProgressEvent, digest: string | undefined): void {
    const { project, onNotification } = this.#options;
    // A later plan of a run is not decided again if it asks only for operations of an earlier plan.
    if (event.type === 'started' && this.#undecided.some(({ key }) => key === event.operation.key))
      this.decide('corrected');
    if (event.type === 'planned') this.#planned(event.plan, digest, event.at);
    if (event.type === 'warning') this.#news.warn([event.warning], 'engine warning');
    if (event.type === 'progress' && event.code === 'no_gpu_capacity') {
      this.#scarce.add(event.key);
    }
    if (event.type === 'ended' && event.result.outcome === 'done') this.#strike(event.result);
    if (event.type === 'ended' && event.result.outcome === 'done' && this.#scarce.delete(event.result.key)) {
      onNotification({ project, event: 'capacity_found', detail: event.result.key });
    }
  }

  /** Removes a finished operation from the plan. The next refresh confirms that the difference is gone. */
  #strike({ key, verb }: OperationResult): void {
    this.#settledDigest = undefined;
    if (this.plan === undefined) return;
    const operations = this.plan.operations.filter((each) => each.key !== key || each.verb !== verb);
    this.plan = { ...this.plan, operations };
  }

  /**
   * Drift is an operation that says so of itself, and every difference where nothing was left to do for this very
   * file. It is reported once, for as long as plans hold it, once {@link decide} is called.
   */
  #planned(plan: Plan, digest: string | undefined, at: number): void {
    this.plan = plan;
    if (digest !== undefined) this.#count(plan, digest);
    this.#news.warn(plan.warnings);
    this.#reportUnmanaged(plan);
    const before = this.#drifted;
    const isKnown = (operation: Operation) => before.has(contentOf(operation));
    this.#drifted = new Set(plan.operations.filter(isKnown).map(contentOf));
    this.#undecided = [];
    if (plan.operations.length === 0) return;
    if (this.condition === 'starting' || this.condition === 'converged') {
      this.condition = 'converging';
      this.conditionSince = at;
    }
    const isSettled = digest !== undefined && digest === this.#settledDigest;
    // A backup is due because of its age, so it is no sign of a change outside vdcsync.
    const hasMoved = ({ key, cause }: Operation) =>
      cause === 'drift' || (isSettled && !this.#waiting.has(key));
    this.#undecided = plan.operations.filter(
      (each) => !factsOf(each.kind).repeats && hasMoved(each) && !isKnown(each),
    );
    if (this.#options.observing) this.decide('observed');
  }

  /** Reports the drift of the newest plan, once it is decided whether the plan is carried out. */
  decide(ending: DriftEnding): void {
    const moved = this.#undecided;
    if (moved.length === 0) return;
    this.#undecided = [];
    this.#settledDigest = undefined;
    this.#drifted = new Set([...this.#drifted, ...moved.map(contentOf)]);
    const { project, log, flags, onNotification } = this.#options;
    const drift = driftLines(moved);
    log.warn({ drift }, 'drift found');
    // While only observing, the condition becomes `drifting`, and its message holds the same lines.
    if (ending === 'observed') return;
    const ways = ending === 'waits' ? approvalOf(this.plan).map((each) => remedyText(each, flags())) : [];
    const last = [driftEndings[ending], ...ways].join(': ');
    onNotification({ project, event: 'drift', detail: linesText([...drift, last]) });
  }

  /** The listener drops a repeated report. */
  #reportUnmanaged({ warnings }: Plan): void {
    const { project, flags, onNotification } = this.#options;
    const found = warnings.find(({ code }) => code === 'unmanaged_resources');
    if (found === undefined) return;
    const ways = (found.remedies ?? []).map((each) => remedyText(each, flags()));
    onNotification({ project, event: 'unmanaged', detail: [found.message, ...ways].join('\n') });
  }

  fail(error: unknown): void {
    releaseFrames(error);
    this.error = error;
    this.failures += 1;
  }

  succeed(plan: Plan | undefined): void {
    if (plan !== undefined) this.plan = plan;
    this.error = undefined;
    this.failures = 0;
  }

  close(reconciliation: ReconciliationRecord, digest: string, pauses: readonly ShownPause[]): void {
    if (this.plan !== undefined) this.#count(this.plan, digest);
    if (reconciliation.outcome !== 'stopped') this.#reconciled = reconciliation.commit;
    this.reconciliations += 1;
    this.lastReconciliation = reconciliation;
    const { plan } = this;
    if (reconciliation.outcome !== 'stopped' && reconciliation.outcome !== 'error' && plan !== undefined) {
      const differs = plan.operations.length + plan.blocked.length > 0 || plan.warnings.some(isLeft);
      this.differsSince = differs ? (this.differsSince ?? reconciliation.endedAt) : undefined;
      if (plan.operations.length === 0) {
        this.#settledDigest = digest;
        this.#waiting = new Set(plan.blocked.map(({ key }) => key));
      }
    }
    // A reconciliation that was cut short has no result yet.
    if (reconciliation.outcome !== 'stopped') this.judge(pauses, reconciliation.endedAt);
  }

  /** The part of the facts about the project that reconciliations found out. */
  facts() {
    const {
      plan,
      world,
      refreshedAt,
      error,
      condition,
      conditionSince,
      reconciliations,
      lastReconciliation,
    } = this;
    const { differsSince, blockedSince, idleSince } = this;
    return {
      ...{ plan, world, refreshedAt, error, condition, conditionSince, reconciliations, lastReconciliation },
      ...{ differsSince, blockedSince, idleSince },
    };
  }

  summary() {
    const { plan, condition, conditionSince: since, leaking } = this;
    const found = { blocked: plan?.blocked.length ?? 0, exposed: this.#isExposed(), leaking };
    const reconciledAt = this.lastReconciliation?.endedAt;
    return { name: plan?.project.name, condition, since, reconciledAt, ...found };
  }

  /** @param digest of the spec in force */
  result(digest: string | undefined) {
    return {
      ...{ condition: this.condition, blocked: this.plan?.blocked ?? [] },
      ...{ reconciled: this.#reconciled, observing: this.#options.observing },
      planned: this.#counted?.digest === digest ? this.#counted?.summary : undefined,
    };
  }

  #count({ summary }: Plan, digest: string): void {
    if (this.#counted?.digest !== digest) this.#counted = { digest, summary };
  }

  /** Whether a server is public, and its firewall is not in place. */
  #isExposed(): boolean {
    return exposedServers(this).length > 0;
  }

  remember(): ReconciliationMemory['history'] {
    const {
      condition,
      conditionSince = 0,
      reconciliations,
      failures,
      lastReconciliation,
      plan,
      differsSince,
    } = this;
    return {
      ...{ condition, conditionSince, reconciliations, failures, blocked: plan?.blocked.length ?? 0 },
      ...{ exposed: this.#isExposed(), leaking: this.leaking },
      ...{ outcome: lastReconciliation?.outcome ?? 'stopped', endedAt: lastReconciliation?.endedAt ?? 0 },
      ...{ settledDigest: this.#settledDigest ?? null, differsSince: differsSince ?? null },
      ...{ scarce: [...this.#scarce], waiting: [...this.#waiting], drifted: [...this.#drifted] },
      ...{ blockedSince: [...this.blockedSince], idleSince: [...this.idleSince] },
    };
  }

  /** Continues from the last reconciliation, which another process may have made. */
  recall(memory: ReconciliationMemory['history']): void {
    this.condition = knownCondition(memory.condition) ?? 'starting';
    this.conditionSince = memory.conditionSince;
    this.reconciliations = memory.reconciliations;
    this.failures = memory.failures;
    this.differsSince = memory.differsSince ?? undefined;
    this.#settledDigest = memory.settledDigest ?? undefined;
    this.#waiting = new Set(memory.waiting);
    this.#drifted = new Set(memory.drifted);
    this.blockedSince = new Map(memory.blockedSince);
    this.idleSince = new Map(memory.idleSince);
    this.leaking = memory.leaking;
    this.#scarce.clear();
    for (const key of memory.scarce) this.#scarce.add(key as ResourceKey);
  }

  /** Computes the condition and reports it. The listener must drop repeated reports. */
  judge(pauses: readonly ShownPause[], at: number): void {
    const { project, observing, log, onNotification } = this.#options;
    const { plan, error } = this;
    const condition = conditionOf({ plan, error, observing, awaiting: this.awaiting, pauses });
    const what = notificationOf(condition, plan, error, this.#options.flags());
    const changed = condition !== this.condition || this.conditionSince === undefined;
    if (changed) this.conditionSince = at;
    const waits = condition === 'awaiting_approval' ? (this.awaiting ?? '') : '';
    const differs = condition === 'drifting' ? what.detail : waits;
    if (changed || differs !== this.#differs) {
      const ending = endingOf(condition);
      const level = ending === 'waits' || ending === 'stuck' ? 'warn' : 'info';
      const [way] = error === undefined && waits === '' ? [] : what.resolve;
      const fields = {
        ...{ condition, before: this.condition },
        ...(differs === '' ? {} : { differs: differences(plan) }),
        ...(error === undefined ? {} : { error }),
        ...(way === undefined ? {} : { resolve: way }),
      };
      log[level](fields, 'condition changed');
    }
    this.#differs = differs;
    if (error === undefined && plan !== undefined) {
      // An apply by the operator may have recorded an earlier time than this process knows.
      this.blockedSince = new Map(
        plan.blocked.map((each) => {
          const name = blockedName(each);
          const recorded = each.since === undefined ? undefined : Date.parse(each.since);
          return [name, recorded ?? this.blockedSince.get(name) ?? at];
        }),
      );
      this.#news.warn(plan.warnings);
      this.#news.ask(plan);
      this.#news.end();
    }
    this.condition = condition;
    onNotification({ project, event: 'condition', condition, ...what });
    if (plan === undefined) return;
    const exposed = exposedServers({ plan });
    onNotification(
      exposed.length === 0
        ? { project, event: 'not_exposed', detail: '' }
        : { project, event: 'exposed', detail: exposed.join('\n') },
    );
  }
}

/**
 * V8 keeps the functions and receivers of all frames of an error until its stack is read for the first time. So the error
 * of a project that cannot be reconciled would keep its closed session in memory.
 */
function releaseFrames(error: unknown): void {
  for (let each = error; each instanceof Error; each = each.cause) void each.stack;
}

/** The identity of a drift: two operations with the same content are the same drift. */
function contentOf({ id, changes }: Operation): string {
  return `${id} ${JSON.stringify(changes)}`;
}
