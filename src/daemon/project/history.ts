import { given } from '../../core/json.ts';
import { type ResourceKey, takeApart } from '../../core/keys.ts';
import type { World } from '../../core/kind.ts';
import { type Blocked, blockedName, decisions, endsExposure, isLeft, type Plan } from '../../core/plan.ts';
import type { OperationResult, ProgressEvent } from '../../core/progress.ts';
import { remedyText } from '../../core/remedy.ts';
import { linesText } from '../../core/text.ts';
import type { HeldClass } from '../../engine/intents/pauses.ts';
import {
  type Condition,
  conditionOf,
  differences,
  endingOf,
  exposedKeys,
  knownCondition,
} from '../../view/condition.ts';
import { type DriftEnding, driftEndings, driftLines } from '../notifications/drift.ts';
import { approvalOf, type Notification, notificationOf } from '../notifications/notification.ts';
import { PlanReports } from '../notifications/plan-reports.ts';
import type { DaemonLogger } from '../ports.ts';
import { DriftWatch } from './drift-watch.ts';
import type { ReconciliationRecord } from './facts.ts';
import type { ReconciliationMemory } from './memory.ts';

export interface ProjectHistoryOptions {
  readonly project: number;
  readonly observing: boolean;
  readonly log: DaemonLogger;
  readonly onNotification: (notification: Notification) => void;
  /** The flags that select this project in a command. */
  readonly flags: () => string;
}

/** The results of the reconciliations so far. Wall ms of the project's clock. */
export interface Found {
  readonly plan: Plan | undefined;
  readonly world: World | undefined;
  readonly refreshedAt: number | undefined;
  /** The error that ended the last reconciliation. */
  readonly error: unknown;
  /** Digest of the plan that waits for the operator. */
  readonly awaiting: string | undefined;
  /** The number of failed reconciliations in a row. */
  readonly failures: number;
  readonly reconciliations: number;
  /** Newest first, {@link mostReconciliations} at most. */
  readonly lastReconciliations: readonly ReconciliationRecord[];
  readonly differsSince: number | undefined;
  readonly condition: Condition;
  readonly conditionSince: number | undefined;
  /** When each exposed server was first seen exposed. */
  readonly exposedSince: ReadonlyMap<string, number>;
  /** When an address was first seen without a server, by the id of the address. */
  readonly idleSince: ReadonlyMap<number, number>;
  /** Whether something is billed that no entry of the spec asks for. */
  readonly leaking: boolean;
}

/** So many reconciliations are shown. */
const mostReconciliations = 10;

/**
 * The results of a project's reconciliations: its condition, the time of the last change, and the reports that follow
 * from them.
 */
export class ProjectHistory {
  #found: Found = {
    ...{ plan: undefined, world: undefined, refreshedAt: undefined, error: undefined, awaiting: undefined },
    ...{ failures: 0, reconciliations: 0, lastReconciliations: [], differsSince: undefined },
    ...{ condition: 'starting', conditionSince: undefined, leaking: false },
    idleSince: new Map(),
    exposedSince: new Map(),
  };
  readonly #options: ProjectHistoryOptions;
  readonly #reports: PlanReports;
  readonly #drift = new DriftWatch();
  /** Counts of the first plan for a spec. */
  #counted: { readonly digest: string; readonly summary: Plan['summary'] } | undefined;
  /** The commit of the last reconciliation that was not cut short. */
  #reconciled: string | undefined;
  /** The reported differences that vdcsync does not correct. */
  #differs = '';
  /** When each blocked entry was first seen that no run records, by {@link blockedName}. */
  #blockedSince: ReadonlyMap<string, string> = new Map();
  /** Keys that wait for a graphics card. */
  readonly #scarce = new Set<ResourceKey>();

  constructor(options: ProjectHistoryOptions) {
    this.#options = options;
    this.#reports = new PlanReports(options.log, options.flags);
  }

  get found(): Found {
    return this.#found;
  }

  /** The condition that this process has found: an earlier one found the condition that it recalls. */
  get standing(): Pick<Found, 'condition' | 'conditionSince'> {
    const { plan, error, condition, conditionSince } = this.#found;
    if (plan === undefined && error === undefined)
      return { condition: 'starting', conditionSince: undefined };
    return { condition, conditionSince };
  }

  #learn(changed: Partial<Found>): void {
    this.#found = { ...this.#found, ...changed };
  }

  recordRefresh(world: World, at: number): void {
    const idle = world.ips.filter(({ server_id }) => server_id === null);
    const idleSince = new Map(idle.map(({ id }) => [id, this.#found.idleSince.get(id) ?? at]));
    this.#learn({ world, refreshedAt: at, idleSince });
  }

  /** @param digest of the spec that the reconciliation uses */
  follow(event: ProgressEvent, digest: string | undefined): void {
    switch (event.type) {
      case 'planned':
        this.#planned(event.plan, digest, event.at);
        return;
      case 'started':
        // A later plan of a run is not decided again if it asks only for operations of an earlier plan.
        if (this.#drift.isUndecided(event.operation.key)) this.decide('corrected');
        return;
      case 'progress':
        if (event.code === 'no_gpu_capacity') this.#scarce.add(event.key);
        return;
      case 'ended':
        if (event.result.outcome === 'done') this.#strike(event.result);
        return;
      case 'warning':
        this.#reports.warn([event.warning], 'engine warning');
        return;
    }
  }

  /** Removes a finished operation from the plan. The next refresh confirms that the difference is gone. */
  #strike({ key, verb }: OperationResult): void {
    const { project, onNotification } = this.#options;
    const { plan } = this.#found;
    this.#drift.unsettle();
    if (plan !== undefined) {
      const operations = plan.operations.filter((each) => each.key !== key || each.verb !== verb);
      this.#learn({ plan: { ...plan, operations } });
    }
    if (this.#scarce.delete(key)) onNotification({ project, event: 'capacity_found', detail: key });
  }

  #planned(plan: Plan, digest: string | undefined, at: number): void {
    const { condition } = this.#found;
    this.#learn({ plan: { ...plan, blocked: this.#dated(plan.blocked, at) } });
    if (digest !== undefined) this.#count(plan, digest);
    this.#reports.warn(plan.warnings);
    this.#reportUnmanaged(plan);
    this.#reportExpiring(plan);
    this.#drift.see(plan, digest);
    if (plan.operations.length > 0 && (condition === 'starting' || condition === 'converged'))
      this.#learn({ condition: 'converging', conditionSince: at });
    if (this.#options.observing) this.decide('observed');
  }

  /** Reports the drift of the newest plan, once it is decided whether the plan is carried out. */
  decide(ending: DriftEnding): void {
    const moved = this.#drift.take();
    if (moved.length === 0) return;
    const { project, log, flags, onNotification } = this.#options;
    const drift = driftLines(moved);
    log.warn({ drift }, 'drift found');
    // While only observing, the condition becomes `drifting`, and its message holds the same lines.
    if (ending === 'observed') return;
    const ways =
      ending === 'waits' ? approvalOf(this.#found.plan).map((each) => remedyText(each, flags())) : [];
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

  /** A week before an entry expires, a day before, and at the end. The listener drops a repeated report. */
  #reportExpiring({ warnings }: Plan): void {
    const { project, onNotification } = this.#options;
    const found = warnings.filter(({ code, remedies }) => /^expire/.test(code) && remedies?.length !== 0);
    const lines = found.map(({ key, message }) => `${key}: ${message}`);
    if (lines.length > 0) onNotification({ project, event: 'expiring', detail: linesText(lines) });
  }

  fail(error: unknown): void {
    releaseFrames(error);
    this.#learn({ error, failures: this.#found.failures + 1 });
  }

  /**
   * @param plan that is left; absent after a reconciliation that was cut short
   * @param awaiting digest of the plan that waits for the operator
   */
  succeed(plan: Plan | undefined, awaiting?: string): void {
    this.#learn({ ...(plan && { plan }), awaiting, error: undefined, failures: 0 });
  }

  /** @param leaking whether something is billed that no entry of the spec asks for */
  close(
    reconciliation: ReconciliationRecord,
    digest: string,
    { pauses, leaking }: { readonly pauses: readonly HeldClass[]; readonly leaking: boolean },
  ): void {
    const { plan, reconciliations, lastReconciliations } = this.#found;
    const { outcome, commit, endedAt } = reconciliation;
    if (plan !== undefined) this.#count(plan, digest);
    if (outcome !== 'stopped') this.#reconciled = commit;
    const last = [reconciliation, ...lastReconciliations].slice(0, mostReconciliations);
    this.#learn({ leaking, reconciliations: reconciliations + 1, lastReconciliations: last });
    if (outcome !== 'stopped' && outcome !== 'error' && plan !== undefined) {
      // A change that waits for its window is not late.
      const blocked = plan.blocked.filter(({ starts_at }) => starts_at === undefined);
      const differs = plan.operations.length + blocked.length > 0 || plan.warnings.some(isLeft);
      this.#learn({ differsSince: differs ? (this.#found.differsSince ?? endedAt) : undefined });
      this.#drift.close(plan, digest);
    }
    // A reconciliation that was cut short has no result yet.
    if (outcome !== 'stopped') this.judge(pauses, endedAt);
  }

  summary() {
    const { plan, lastReconciliations } = this.#found;
    const { condition, conditionSince: since } = this.standing;
    const reconciledAt = lastReconciliations[0]?.endedAt;
    return { name: plan?.project.name, condition, since, reconciledAt, ...this.#troubles() };
  }

  #troubles() {
    const { plan, leaking } = this.#found;
    const { blocked } = decisions(plan?.blocked ?? []);
    return { blocked, exposed: exposedKeys(plan).length > 0, leaking };
  }

  /** @param digest of the spec in force */
  result(digest: string | undefined) {
    const { condition, plan } = this.#found;
    return {
      ...{ condition, blocked: plan?.blocked ?? [] },
      reconciled: this.#reconciled,
      planned: this.#counted?.digest === digest ? this.#counted?.summary : undefined,
    };
  }

  #count({ summary }: Plan, digest: string): void {
    if (this.#counted?.digest !== digest) this.#counted = { digest, summary };
  }

  remember(): ReconciliationMemory['history'] {
    const { condition, conditionSince = 0, reconciliations, failures, differsSince } = this.#found;
    const { idleSince, exposedSince, lastReconciliations } = this.#found;
    const [last] = lastReconciliations;
    return {
      ...{ condition, conditionSince, reconciliations, failures, differsSince: differsSince ?? null },
      ...{ outcome: last?.outcome ?? 'stopped', endedAt: last?.endedAt ?? 0, scarce: [...this.#scarce] },
      ...{ ...this.#troubles(), ...this.#drift.remember() },
      idleSince: [...idleSince],
      exposedSince: [...exposedSince],
    };
  }

  /** Continues from the last reconciliation, which another process may have made. */
  recall(memory: ReconciliationMemory['history']): void {
    const { conditionSince, reconciliations, failures, leaking } = memory;
    this.#drift.recall(memory);
    this.#learn({
      ...{ condition: knownCondition(memory.condition) ?? 'starting', conditionSince },
      ...{ reconciliations, failures, leaking, differsSince: memory.differsSince ?? undefined },
      idleSince: new Map(memory.idleSince),
      exposedSince: new Map(memory.exposedSince),
    });
    this.#scarce.clear();
    for (const key of memory.scarce) this.#scarce.add(key);
  }

  /** Computes the condition and reports it. The listener must drop repeated reports. */
  judge(pauses: readonly HeldClass[], at: number): void {
    const { project, observing, onNotification, flags } = this.#options;
    const { plan, error, awaiting, condition: before, conditionSince } = this.#found;
    const condition = conditionOf({ plan, error, observing, awaiting, pauses });
    const asked = error === undefined && (plan?.operations.length ?? 0) > 0 ? (awaiting ?? '') : '';
    const notification = notificationOf(condition, plan, error, flags(), asked !== '');
    const isChanged = condition !== before || conditionSince === undefined;
    this.#logCondition(condition, isChanged, asked, notification);
    this.#learn({ condition, ...(isChanged ? { conditionSince: at } : {}) });
    if (error === undefined && plan !== undefined) {
      const blocked = this.#dated(plan.blocked, at);
      const earlier = this.#found.exposedSince;
      const exposedSince = new Map(
        exposedKeys(plan).map((key): [string, number] => [key, earlier.get(key) ?? at]),
      );
      this.#learn({ plan: { ...plan, blocked }, exposedSince });
      this.#blockedSince = new Map(blocked.map((each) => [blockedName(each), each.since]));
      this.#reports.warn(plan.warnings);
      this.#reports.ask(plan);
      this.#reports.end();
    }
    onNotification({ project, event: 'condition', condition, ...notification });
    if (plan === undefined) return;
    const exposed = exposedKeys(plan);
    onNotification(
      exposed.length === 0
        ? { project, event: 'not_exposed', detail: '' }
        : { project, event: 'exposed', detail: exposed.join('\n') },
    );
  }

  /** Logs the condition if it has changed, or if it means other differences than before. */
  #logCondition(
    condition: Condition,
    isChanged: boolean,
    asked: string,
    { detail, resolve }: ReturnType<typeof notificationOf>,
  ): void {
    const { plan, error, condition: before } = this.#found;
    const differs = condition === 'drifting' ? detail : asked;
    if (isChanged || differs !== this.#differs) {
      const ending = endingOf(condition);
      const level = ending === 'waits' || ending === 'stuck' ? 'warn' : 'info';
      const way = asked === '' ? (error === undefined ? undefined : resolve[0]) : resolve.at(-1);
      const fields = {
        ...{ condition, before },
        ...(differs === '' ? {} : { differs: differences(plan) }),
        ...given({ error, resolve: way }),
      };
      this.#options.log[level](fields, 'condition changed');
    }
    this.#differs = differs;
  }

  /** A run records the times of the entries that it finds; a check of the plan, and a plan alone, do not. */
  #dated(blocked: Plan['blocked'], at: number): readonly (Blocked & { readonly since: string })[] {
    const now = new Date(at).toISOString();
    return blocked.map((each) => {
      const since = each.since ?? this.#blockedSince.get(blockedName(each)) ?? now;
      return { ...each, since };
    });
  }
}

/** The firewalls that the plan is about to create for servers that exist. An operation that is done has left the plan. */
export function dueFirewalls(plan: Plan | undefined): readonly ResourceKey[] {
  const { operations = [] } = plan ?? {};
  const created = new Set(operations.flatMap(({ verb, key }) => (verb === 'create' ? [key] : [])));
  return operations
    .filter((each) => endsExposure(each) && !created.has(takeApart(each.key).parent ?? each.key))
    .map(({ key }) => key);
}

/**
 * V8 keeps the functions and receivers of all frames of an error until its stack is read for the first time. So the error
 * of a project that cannot be reconciled would keep its closed session in memory.
 */
function releaseFrames(error: unknown): void {
  for (let each = error; each instanceof Error; each = each.cause) void each.stack;
}
