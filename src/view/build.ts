import { publicDigest } from '../core/desired.ts';
import { type Diagnostic, messageOf } from '../core/errors.ts';
import { endWord, partsOf } from '../core/intent.ts';
import { keyStatuses } from '../core/key-status.ts';
import {
  type Blocked,
  blockedJson,
  decisions,
  type Operation,
  operationId,
  type Plan,
  reportsDifference,
} from '../core/plan.ts';
import type { Intent } from '../core/state.ts';
import { waysOut } from '../plan/open-writes.ts';
import { billOf, leaksIn } from './bill.ts';
import { conditionOf, differences, exposedKeys } from './condition.ts';
import { type ClientFacts, knownIn, type ProjectFacts, time, timeOrNull } from './facts.ts';
import type { ProjectView } from './project-view.ts';
import { resourcesOf } from './resources.ts';

/** All that is shown of a project, from its state, its last plan and the last reads. Pure. */
export function viewOf(facts: ProjectFacts): ProjectView {
  const blocked = blockedIn(facts);
  const view = viewWithoutResources(facts, blocked);
  const all = resourcesOf(facts, { blocked, addresses: view.addresses });
  const managed = all.filter((each) => each.managed);
  const standings = Object.fromEntries(
    keyStatuses.map((each) => [each, managed.filter(({ standing }) => standing === each).length]),
  ) as ProjectView['counts']['standings'];
  return {
    ...view,
    resources: all.filter((each) => each.bound_at !== null),
    unbound: all.filter((each) => each.bound_at === null),
    counts: { ...view.counts, standings },
  };
}

type ViewWithoutResources = Omit<ProjectView, 'resources' | 'unbound' | 'counts'> & {
  readonly counts: Omit<ProjectView['counts'], 'standings'>;
};

function planOf(
  { digest, summary, cost, operations }: Plan,
  { awaiting, daemon }: ProjectFacts,
): ProjectView['plan'] {
  const isAsked = awaiting !== undefined && daemon?.error === undefined && operations.length > 0;
  return { digest, summary, cost, awaits_approval: isAsked };
}

/** The part of the view that costs little time in a large project. */
export function viewWithoutResources(facts: ProjectFacts, blocked = blockedIn(facts)): ViewWithoutResources {
  const { id, known, plan, place, refreshedAt, offline, condition, daemon } = facts;
  const { intents, history = [] } = knownIn(facts);
  const view = {
    format_version: 1,
    project: {
      id: id ?? plan?.project.id ?? null,
      name: plan?.project.name ?? null,
      status: plan?.project.status ?? null,
    },
    at: timeOrNull(known?.now),
    observed_at: timeOrNull(refreshedAt),
    offline: offline ?? null,
    state:
      place === undefined || known?.info === undefined
        ? null
        : {
            ...{ location: place.location, exists: place.exists, changed_at: timeOrNull(place.changedAt) },
            ...{ lineage: known.info.lineage, serial: known.info.serial },
          },
    condition: condition ?? plannedCondition(plan),
    condition_since: timeOrNull(facts.conditionSince),
    converged: daemon === undefined ? isConverged(facts, blocked) : condition === 'converged',
    differs_since: timeOrNull(facts.differsSince),
    spec: specOf(facts),
    plan: plan === undefined ? null : planOf(plan, facts),
    operations: plan?.operations ?? [],
    blocked: blocked.map((each) => blockedJson(each, facts.flags)),
    warnings: plan?.warnings ?? [],
    differs: differences(plan),
    exposed: plan === undefined ? null : exposedKeys(plan),
    in_flight: flightsIn(facts, blocked),
    ...billOf(facts),
    writes: history.slice(0, mostWrites).map(writeView),
    daemon: daemonOf(facts),
  } as const;
  return { ...view, counts: countsOf(view, intents) };
}

/** A write of the journal. */
export function writeView(intent: Intent): ProjectView['writes'][number] {
  const { key, verb, kind, phase, detail, changes, sends, queuedAt, createdAt, lastSentAt, requestId } =
    intent;
  const { closedAt } = partsOf(intent);
  const outcome = endWord(intent) ?? null;
  return {
    ...{ key, verb, kind, phase, outcome, detail: detail || null, request_id: requestId ?? null },
    queued_at: timeOrNull(queuedAt),
    ...{ since: time(createdAt), last_sent_at: sends === 0 ? null : time(lastSentAt) },
    closed_at: timeOrNull(closedAt),
    public: verb === 'create' && changes.some(({ path }) => path === 'public_ipv4'),
  };
}

/** The writes that a view names. The command `history` has all of them. */
const mostWrites = 30;

/** The one counter: chips, metrics, overview and texts show these numbers. */
function countsOf(
  view: Pick<ProjectView, 'operations' | 'blocked' | 'in_flight' | 'exposed'> & Parameters<typeof leaksIn>[0],
  intents: readonly Intent[],
): ViewWithoutResources['counts'] {
  return {
    ...decisions(view.blocked),
    pending: pendingOperations(view).length,
    in_flight: view.in_flight.length,
    open_writes: intents.length,
    exposed: view.exposed?.length ?? 0,
    leaking: leaksIn(view),
  };
}

/** The operations that have not begun, and that are not blocked. */
export function pendingOperations({
  operations,
  blocked,
  in_flight: inFlight,
}: Pick<ProjectView, 'operations' | 'blocked' | 'in_flight'>): readonly Operation[] {
  const others = new Set([...blocked, ...inFlight].map(({ verb, key }) => operationId(verb, key)));
  return operations.filter(({ id }) => !others.has(id));
}

/** Without a plan: open writes that wait for the operator, and the findings of the last run. */
function blockedIn(facts: ProjectFacts): readonly Blocked[] {
  const { plan } = facts;
  const { intents, findings = [] } = knownIn(facts);
  const recorded = findings.map(({ key, verb, code, reason, remedies, since }) => ({
    ...{ key, verb, code, reason, remedies },
    ...(since === undefined ? {} : { since }),
  }));
  const found = plan?.blocked ?? [...intents.flatMap(blockedIntent), ...recorded];
  // A write that is blocked since a run that did not end was last sent at that time.
  const stuck = new Map(
    intents.flatMap(({ key, phase, lastSentAt }) => (phase === 'blocked' ? [[key, lastSentAt]] : [])),
  );
  return found.map((each) => {
    const since = each.since ?? timeOrNull(stuck.get(each.key));
    return since === null ? each : { ...each, since };
  });
}

function blockedIntent(intent: Intent): Blocked[] {
  if (intent.phase !== 'blocked') return [];
  const { key, verb, blocked } = intent;
  return [{ key, verb, code: blocked.code, reason: blocked.reason, remedies: waysOut(intent) }];
}

/** The operations that this process carries out, then the open writes of earlier runs, except for blocked ones. */
function flightsIn(facts: ProjectFacts, blocked: readonly Blocked[]): ProjectView['in_flight'] {
  const { inFlight = [] } = facts;
  const open = new Map(knownIn(facts).intents.map((each) => [each.key, each]));
  const running = new Map(inFlight.map((each) => [each.key, each]));
  const stuck = new Set(blocked.map(({ key }) => key));
  const isOpen = ({ key, phase }: Intent) => phase !== 'blocked' && !stuck.has(key);
  const others = [...open.values()].filter(isOpen).map(({ key }) => key);
  return [...new Set([...running.keys(), ...others])].map((key) => {
    const [own, intent] = [running.get(key), open.get(key)];
    const { verb } = own ?? (intent as Intent);
    return {
      ...{ key, verb, step: own?.step ?? null, phase: intent?.phase ?? null },
      detail: (own?.detail || (intent && whyOpen(intent))) ?? null,
      since: time(own?.since ?? intent?.createdAt ?? 0),
      ...{ usual_end: timeOrNull(own?.until), deadline: timeOrNull(own?.deadline) },
      request_id: intent?.requestId ?? null,
      task_id: (intent && partsOf(intent).answer?.taskId) ?? null,
    };
  });
}

/** The last answer about a write that has to wait, or the reason why its outcome is unknown. */
function whyOpen(intent: Intent): string | undefined {
  return intent.phase === 'waiting' || intent.phase === 'unknown' ? intent.detail || undefined : undefined;
}

function specOf({ offer, problem = [], problemSince }: ProjectFacts): ProjectView['spec'] {
  const broken = problem.map(diagnosticView);
  const { suspend = null, drift = null } = offer?.desired.settings ?? {};
  return {
    ...{ files: offer?.files ?? [], digest: (offer && publicDigest(offer.desired)) ?? null },
    ...{ commit: commitView(offer?.commit), suspend, drift },
    ...{ broken, broken_since: timeOrNull(problemSince) },
  };
}

export function diagnosticView({ position, message }: Diagnostic): ProjectView['spec']['broken'][number] {
  return { ...position, message };
}

export function commitView(
  commit: NonNullable<ProjectFacts['offer']>['commit'],
): ProjectView['spec']['commit'] {
  if (commit === undefined) return null;
  const { id, ref, subject, author, url = null, at } = commit;
  return { id, ref, subject, author, url, committed_at: time(at) };
}

function plannedCondition(plan: Plan | undefined): ProjectView['condition'] {
  if (plan === undefined) return null;
  return conditionOf({ plan, error: undefined, observing: false, pauses: [] });
}

function isConverged({ plan, known }: ProjectFacts, blocked: readonly Blocked[]): boolean | null {
  if (plan === undefined) return null;
  const open = plan.operations.length + blocked.length + (known?.intents.length ?? 0);
  return open === 0 && !plan.warnings.some(reportsDifference);
}

type DaemonView = NonNullable<ProjectView['daemon']>;

/** The process that works on the project. */
function daemonOf({ daemon, flags = '' }: ProjectFacts): DaemonView | null {
  if (daemon === undefined) return null;
  const { mode, intervalMs, error, waitingFor, reconciling, reconciliations, client } = daemon;
  return {
    ...{ flags, mode, interval_seconds: intervalMs / 1000, reconciling, reconciliations },
    error: error === undefined ? null : messageOf(error),
    waiting_for: waitingFor ?? null,
    last_reconciliations: daemon.lastReconciliations.map((each) => ({
      ...{ triggers: each.triggers, started_at: time(each.startedAt), ended_at: time(each.endedAt) },
      ...{ outcome: each.outcome, operations: each.operations, commit: each.commit ?? null },
    })),
    next_reconciliation_at: timeOrNull(daemon.nextReconciliationAt),
    oldest_read_seconds: Math.round((client?.oldestReadMs ?? 0) / 1000),
    pauses: daemon.pauses.map(({ scope, code, reason, since, probeAt }) => ({
      ...{ scope, code, reason, since: time(since), probe_at: timeOrNull(probeAt) },
    })),
    back_off: (client?.backOff ?? []).map(({ key, failures, until, code, reason }) => ({
      ...{ key, failures, until: time(until), code, reason },
    })),
    requests: client === undefined ? null : requestsOf(client),
  };
}

function requestsOf({ limits, used, counts }: ClientFacts): DaemonView['requests'] {
  return {
    window_seconds: limits.windowMs / 1000,
    reads: { used: used.reads, limit: limits.reads },
    writes: { used: used.writes, limit: limits.writes },
    since_start: counts,
  };
}
