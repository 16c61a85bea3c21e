import { publicDigest } from '../../core/desired.ts';
import { partsOf } from '../../core/intent.ts';
import { blockedJson, type Warning } from '../../core/plan.ts';
import type { Intent } from '../../core/state.ts';
import { type BilledAddress, type IgnoredObject, ignoredObjects } from '../../engine/claims/unattached.ts';
import type { Daemon } from '../daemon.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Rollout } from '../fleet/rollout.ts';
import { differences } from '../notifications/notification.ts';
import type { ProjectFacts } from '../project/facts.ts';
import { exposedServers, unattachedAddresses } from '../project/troubles.ts';
import type { Commit } from '../sources/source.ts';
import { statusNow } from './key-status.ts';
import { cutTexts, mostProjects, Pager, shortRemedies } from './pager.ts';

/** The part of `GET /status` that a query asks for. */
export interface StatusQuery {
  /** The id of one project. Without it, the answer has all projects. */
  readonly project?: string | undefined;
  readonly page?: number;
}

/** Of several projects, an answer has only the first entries of each list. */
const ofSeveral = 5;

/** The public JSON of `GET /status`. Names only get added. */
export async function statusOf(
  daemon: Daemon,
  version: string,
  now: number,
  { project, page }: StatusQuery = {},
): Promise<unknown> {
  const source = daemon.specs.state();
  const isAsked = ({ id }: { readonly id: number }) => project === undefined || project === String(id);
  const all = daemon.projects().filter(isAsked);
  const [only, another] = all;
  const isAlone = daemon.fleet === undefined || project !== undefined;
  const isOne = isAlone && only !== undefined && another === undefined;
  const pager = isOne ? new Pager(page) : new Pager(page, mostProjects);
  const shown = isOne ? all : pager.of(all);
  const facts = await Promise.all(shown.map((each) => each.facts()));
  const notReady = daemon.notReady();
  const broken = source.orphans.flatMap(({ problem }) => problem.map(diagnosticJson));
  return cutTexts({
    format_version: 1,
    version,
    at: time(now),
    ready: notReady.length === 0,
    not_ready: notReady.map(({ reason, detail }) => (detail === undefined ? reason : `${reason}: ${detail}`)),
    source: {
      name: source.name,
      read_at: time(source.readAt),
      error: source.error ?? null,
      commit: commitJson(source.commit),
      broken: pager.of(broken),
    },
    ...(daemon.fleet === undefined
      ? {}
      : { fleet: await fleetJson(daemon.fleet, (all) => pager.of(all.filter(isAsked))) }),
    projects: facts.map((each) => projectJson(each, isOne ? page : undefined, isOne ? undefined : ofSeveral)),
    next: pager.page < pager.pages ? `/status?page=${pager.page + 1}` : null,
  });
}

/** How each project of a fleet is. The other parts of the status show the last refresh of this replica. */
async function fleetJson(
  fleet: Fleet,
  shown: <Each extends { readonly id: number }>(all: readonly Each[]) => readonly Each[],
): Promise<Record<string, unknown>> {
  const { replica } = fleet;
  const rollouts = fleet.board.rollouts.map(rolloutJson);
  const [rollout = null] = fleet.board.rollouts.toSorted((a, b) => urgency(b) - urgency(a)).map(rolloutJson);
  const assignments = await fleet.board.assignments().catch((error: Error) => error.message);
  if (typeof assignments === 'string')
    return { replica, leads: fleet.leads(), error: assignments, rollout, rollouts, projects: [] };
  return {
    ...{ replica, leads: fleet.leads(), error: null, rollout, rollouts },
    projects: shown(assignments.map((each) => ({ ...each, id: each.project }))).map(
      ({ id, worker, since, memory }) => ({
        ...{ id, worker: worker ?? null, since: time(since) },
        condition: memory?.history.condition ?? null,
        condition_since: time(memory?.history.conditionSince),
        blocked: memory?.history.blocked ?? 0,
        last_reconciliation:
          memory === undefined
            ? null
            : {
                replica: memory.replica,
                ended_at: time(memory.history.endedAt),
                outcome: memory.history.outcome,
              },
      }),
    ),
  };
}

/** A change that waits for an operator comes first. */
function urgency({ phase }: Rollout): number {
  return phase === 'waiting' || phase === 'stopped' ? 1 : 0;
}

/** A change of the specs that not all projects have yet. */
function rolloutJson(rollout: Rollout): Record<string, unknown> {
  const { change, phase, total, left, wave, deletions, reason, since, watched } = rollout;
  return {
    ...{ change, phase, projects: total, projects_left: left, waves_done: wave, deletions, reason },
    ...{ since: time(since), watched: new Pager().of(watched).map(({ project }) => project) },
  };
}

/** One project, in the words of the plan and of `vdcsync status`. */
export function projectJson(facts: ProjectFacts, page?: number, size?: number): Record<string, unknown> {
  const pager = new Pager(page, size);
  const json = pagedJson(facts, pager);
  const [next, isCut] = [pager.page + 1, pager.page < pager.pages];
  const more = size === undefined ? `&page=${next}` : '';
  return { ...json, next: isCut ? `/status?project=${facts.id}${more}` : null };
}

/** Each list that grows with the project has the entries of one page. */
function pagedJson(facts: ProjectFacts, pager: Pager): Record<string, unknown> {
  const { known, plan, offer, lastReconciliation } = facts;
  const { idle, unconfirmed } = unattachedAddresses(facts);
  return {
    id: facts.id,
    at: time(known?.now),
    name: plan?.project.name ?? null,
    status: plan?.project.status ?? null,
    mode: facts.mode,
    condition: facts.condition,
    condition_since: time(facts.conditionSince),
    converged: facts.condition === 'converged',
    error:
      facts.error === undefined
        ? null
        : facts.error instanceof Error
          ? facts.error.message
          : String(facts.error),
    waiting_for: facts.waitingFor ?? null,
    spec: {
      files: offer?.files ?? [],
      digest: (offer && publicDigest(offer.desired)) ?? null,
      commit: commitJson(offer?.commit),
      broken: pager.of(facts.problem).map(diagnosticJson),
      suspend: offer?.desired.settings.suspend ?? null,
      drift: offer?.desired.settings.drift ?? null,
    },
    reconciling: facts.reconciling,
    reconciliations: facts.reconciliations,
    last_reconciliation:
      lastReconciliation === undefined
        ? null
        : {
            triggers: lastReconciliation.triggers,
            started_at: time(lastReconciliation.startedAt),
            ended_at: time(lastReconciliation.endedAt),
            outcome: lastReconciliation.outcome,
            operations: lastReconciliation.operations,
            commit: lastReconciliation.commit ?? null,
          },
    next_reconciliation_at: time(facts.nextReconciliationAt),
    differs_since: time(facts.differsSince),
    observed_at: time(facts.refreshedAt),
    oldest_read_seconds: Math.round((known?.oldestReadMs ?? 0) / 1000),
    summary: plan?.summary ?? null,
    operations: pager.of(plan?.operations ?? []).map(({ id, key, verb }) => ({ id, key, verb })),
    blocked: pager
      .of(plan?.blocked ?? [])
      .map((each) => blockedJson({ ...each, remedies: shortRemedies(each.remedies) }, facts.flags)),
    exposed: pager.of(exposedServers(facts)),
    differs: pager.of(differences(plan)),
    drift: pager.of((plan?.warnings ?? []).filter(({ code }) => code === 'drift')).map(warningJson),
    warnings: pager.of((plan?.warnings ?? []).filter(({ code }) => code !== 'drift')).map(warningJson),
    in_flight: pager.of(facts.inFlight).map(({ since, at, until, ...rest }) => ({
      ...rest,
      since: time(since),
      at: time(at),
      until: time(until),
    })),
    open_writes: pager.of(known?.intents ?? []).map((intent) => ({
      ...{ key: intent.key, verb: intent.verb, phase: intent.phase, since: time(intent.createdAt) },
      detail: whyOpen(intent) ?? null,
      ...{ task_id: partsOf(intent).answer?.taskId ?? null, request_id: intent.requestId ?? null },
    })),
    pauses: pager.of(facts.pauses).map(({ scope, code, reason, since, probeAt }) => ({
      ...{ scope, code, reason, since: time(since), probe_at: time(probeAt ?? undefined) },
    })),
    back_off: pager.of(known?.backOff ?? []).map(({ until, ...rest }) => ({ ...rest, until: time(until) })),
    resources: pager.of(known?.bindings ?? []).map(({ key, kind, id, identity, protect, tainted }) => ({
      ...{ key, kind, id, standing: statusNow(facts, key) },
      ...{ identity, protect, tainted: tainted ?? null },
    })),
    idle: pager.of(idle).map(addressJson),
    unconfirmed: pager.of(unconfirmed).map(addressJson),
    left_billed: pager.of(plan?.cost.left_billed ?? []),
    ignored: pager.of(ignoredIn(facts)),
    left_backups: pager.of(known?.leftBackups ?? []).map(({ server, key, backups, at }) => ({
      ...{ server_id: server, key, backups, since: new Date(at).toISOString() },
    })),
    requests:
      known === undefined
        ? null
        : {
            window_seconds: known.limits.windowMs / 1000,
            reads: { used: known.used.reads, limit: known.limits.reads },
            writes: { used: known.used.writes, limit: known.limits.writes },
            polls: known.counts.polls,
            throttled: known.counts.throttled,
          },
  };
}

/** The last answer about a write that has to wait, or the reason why its outcome is unknown. */
export function whyOpen(intent: Intent): string | undefined {
  if (intent.phase === 'blocked') return intent.blocked.reason;
  return intent.phase === 'waiting' || intent.phase === 'unknown' ? intent.detail : undefined;
}

/** Resources that the operator has ignored. */
export function ignoredIn({ known, world }: ProjectFacts): readonly IgnoredObject[] {
  return ignoredObjects(known?.claims ?? [], world?.ips);
}

function warningJson({ remedies, ...warning }: Warning) {
  return remedies === undefined ? warning : { ...warning, remedies: shortRemedies(remedies) };
}

function addressJson({ ip, key }: BilledAddress) {
  return { id: String(ip.id), address: ip.address, key };
}

function commitJson(commit: Commit | undefined) {
  return commit === undefined
    ? null
    : { id: commit.id, ref: commit.ref, subject: commit.subject, committed_at: time(commit.at) };
}

function diagnosticJson({ position, message }: ProjectFacts['problem'][number]) {
  return { ...position, message };
}

export function time(ms: number | undefined): string | null {
  return ms === undefined || !Number.isFinite(ms) ? null : new Date(ms).toISOString();
}
