import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { parseKey } from '../../core/keys.ts';
import { isAddress, kindNames, kindsWith } from '../../core/kind-facts.ts';
import { isLeft } from '../../core/plan.ts';
import type { ProgressEvent, RequestCounts } from '../../core/progress.ts';
import { viewWithoutResources } from '../../view/build.ts';
import { conditions } from '../../view/condition.ts';
import { knownIn, type ProjectFacts } from '../../view/facts.ts';
import type { Daemon } from '../daemon.ts';
import { lastWorker } from '../fleet/board.ts';
import type { ReconciliationRecord } from '../project/facts.ts';
import type { Delivery } from './webhooks.ts';

export const prefix = 'vdcsync_';
const durationBuckets = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600];

type Described = Readonly<Record<string, readonly [help: string, ...labels: string[]]>>;

/** The counters of events: their help text, then their labels. */
export const counters = {
  reconciliations_total: ['Reconciliations by outcome', 'project', 'outcome'],
  operations_total: ['Operations by kind, verb and outcome', 'project', 'kind', 'verb', 'outcome'],
  requests_total: ['Requests sent to the API, by budget', 'project', 'budget'],
  task_polls_total: ['Polls of tasks, which count as reads', 'project'],
  throttled_total: ['Answers 429', 'project'],
  webhook_deliveries_total: ['Deliveries of webhooks', 'forge', 'result'],
  notifications_total: ['Notifications by result', 'result'],
} as const satisfies Described;

export const histograms = {
  reconciliation_duration_seconds: ['Duration of reconciliations', 'project'],
  operation_duration_seconds: ['Duration of operations', 'project', 'kind', 'verb'],
} as const satisfies Described;

/** The gauges that are computed from the facts. */
export const gauges = {
  fleet_works: [
    '1: this replica reconciles the project now. 0: this replica reconciled the project last',
    'project',
  ],
  build_info: ['The running version', 'version'],
  ready: ['Whether /readyz answers 200'],
  source_up: ['Whether the source could be read the last time'],
  broken_specs: ['Invalid specs, including those without a known project'],
  source_read_timestamp_seconds: ['When the source was last read'],
  commit_info: ['The commit that is in force', 'commit', 'ref'],
  fleet_leader: ['Whether this replica reads the source'],
  fleet_queue_lag_seconds: ['How late the last reconciliations of this replica began, at most'],
  fleet_queue_length: ['Due projects of the whole fleet that wait'],
  fleet_up: ['Whether the database of the fleet answers'],
  projects: ['Projects that this process reports'],
  condition: ['Condition of the project: 1 for the current one', 'project', 'condition'],
  converged: ['Whether the project equals its spec', 'project'],
  spec_valid: ['Whether the newest spec can be used', 'project'],
  blocked: ['Keys that need a manual decision', 'project'],
  waiting: ['Keys whose operations wait without a manual decision', 'project'],
  in_flight: ['Operations in progress, and open writes of earlier runs', 'project'],
  pending_operations: ['Operations of the last plan', 'project', 'verb'],
  differing_resources: ['Resources that differ from the spec', 'project', 'kind'],
  resource_differs: [
    '1 for each resource that differs from the spec, at most 100 of a project',
    'project',
    'key',
  ],
  paused_scopes: ['Classes of writes that are paused after a refusal', 'project'],
  last_reconciliation_timestamp_seconds: ['When the last reconciliation ended', 'project'],
  drift_age_seconds: ['How long the project has differed from its spec', 'project'],
  oldest_read_age_seconds: ['Age of the oldest answer in use', 'project'],
  open_servers: ['Exposed servers: a public address, a declared firewall, and none in force', 'project'],
  open_writes: ['Open writes: the answer is missing, or the task still runs', 'project'],
  backed_off_keys: ['Keys that wait after failures', 'project'],
  budget_limit: ['Requests that one window allows', 'project', 'budget'],
  budget_used: ['Requests in the last window', 'project', 'budget'],
  billed_resources: ['Billed resources that are managed', 'project', 'kind'],
  known_monthly_cost: [
    'Known monthly cost of the managed resources, in the currency of the account',
    'project',
  ],
  month_cost: [
    'Cost of the current month in UTC so far, as in `vdcsync bill`; only with a price list',
    'project',
  ],
  month_cost_forecast: ['Cost of the whole current month if nothing changes', 'project'],
  month_cost_run_rate: ['Monthly price of everything that is billed now', 'project'],
  billed_addresses: ['Addresses in the project, all of them billed', 'project'],
  idle_addresses: ['Billed addresses that no server uses, except unconfirmed and ignored ones', 'project'],
  left_backups: ['Billed backups of deleted servers', 'project'],
  unmanaged_servers: ['Billed servers that are neither in the spec nor in the state', 'project'],
  unmanaged_addresses: [
    'Addresses of unmanaged servers, and unmanaged addresses that no server uses',
    'project',
  ],
} as const satisfies Described;
type GaugeName = keyof typeof gauges;
type Labels = Readonly<Record<string, string | number>>;

/** Over all projects, most gauges are sums; these are the worst of all. */
const worst: Partial<Record<GaugeName, (a: number, b: number) => number>> = {
  last_reconciliation_timestamp_seconds: Math.min,
  drift_age_seconds: Math.max,
  oldest_read_age_seconds: Math.max,
  budget_limit: Math.min,
  budget_used: Math.max,
};

/** A project that is created or restored differs in each resource, and each is a time series. */
const mostDiffering = 100;

/** Prometheus metrics: counted when events happen, or computed from the facts for each request. */
export class Metrics {
  readonly registry = new Registry();
  readonly #seen = new Map<number, RequestCounts>();
  readonly #gauges = new Map<GaugeName, Gauge>();
  readonly #perProject: boolean;
  /** The combined values of the projects in the current rendering, by gauge and labels. */
  readonly #totals = new Map<string, number>();
  readonly #counters = new Map(
    Object.entries(counters).map(([name, of]) => [name, new Counter(this.#described(name, of))]),
  );
  readonly #histograms = new Map(
    Object.entries(histograms).map(([name, of]) => [
      name,
      new Histogram({ ...this.#described(name, of), buckets: durationBuckets }),
    ]),
  );

  /** `perProject`: each project has its own series. Otherwise one series covers all projects. */
  constructor(version: string, { ofProcess = true, perProject = true } = {}) {
    this.#perProject = perProject;
    if (ofProcess) collectDefaultMetrics({ register: this.registry, prefix });
    // Gauges with the name of a counter. The series by type, which these sum up, remain.
    for (const sum of ['handles', 'requests', 'resources'])
      this.registry.removeSingleMetric(`${prefix}nodejs_active_${sum}_total`);
    this.#set('build_info', { version }, 1);
  }

  countReconciliation(project: number, { outcome, startedAt, endedAt }: ReconciliationRecord): void {
    this.#count('reconciliations_total', { project, outcome });
    this.#observe('reconciliation_duration_seconds', { project }, endedAt - startedAt);
  }

  countEvent(project: number, event: ProgressEvent): void {
    if (event.type !== 'ended') return;
    const { key, verb, outcome, durationMs } = event.result;
    const kind = parseKey(key)?.kind ?? 'unknown';
    this.#count('operations_total', { project, kind, verb, outcome });
    if (outcome === 'done') this.#observe('operation_duration_seconds', { project, kind, verb }, durationMs);
  }

  countDelivery(forge: string, result: Delivery): void {
    this.#count('webhook_deliveries_total', { forge, result });
  }

  countNotification(result: 'sent' | 'failed'): void {
    this.#count('notifications_total', { result });
  }

  /** The text that Prometheus reads. */
  async render(daemon: Daemon): Promise<string> {
    for (const gauge of this.#gauges.values()) if (gauge !== this.#gauges.get('build_info')) gauge.reset();
    this.#totals.clear();
    const source = daemon.specs.state();
    this.#set('ready', {}, daemon.notReady().length === 0 ? 1 : 0);
    this.#set('source_up', {}, source.error === undefined ? 1 : 0);
    this.#set('broken_specs', {}, daemon.brokenSpecs());
    if (source.readAt !== undefined) {
      this.#set('source_read_timestamp_seconds', {}, source.readAt / 1000);
    }
    if (source.commit !== undefined) {
      const { id: commit, ref } = source.commit;
      this.#set('commit_info', { commit, ref }, 1);
    }
    const elsewhere = await this.#takeAssignments(daemon);
    const here = daemon.projects().filter(({ id }) => !elsewhere.has(id));
    this.#set('projects', {}, here.length);
    for (const project of here) this.#take(await project.facts());
    return this.registry.metrics();
  }

  /** Returns the projects of a fleet that another replica knows better. That replica reports them. */
  async #takeAssignments({ fleet }: Daemon): Promise<ReadonlySet<number>> {
    if (fleet === undefined) return new Set();
    const { replica, board } = fleet;
    this.#set('fleet_leader', {}, fleet.leads() ? 1 : 0);
    this.#set('fleet_queue_lag_seconds', {}, fleet.lagMs() / 1000);
    this.#set('fleet_queue_length', {}, await fleet.waiting().catch(() => 0));
    const assignments = await board.assignments().catch(() => undefined);
    const up = assignments === undefined ? 0 : 1;
    this.#set('fleet_up', {}, up);
    if (assignments === undefined) return new Set();
    for (const assignment of assignments.filter((each) => lastWorker(each) === replica)) {
      const works = assignment.worker === replica ? 1 : 0;
      this.#set('fleet_works', { project: String(assignment.project) }, works);
    }
    return new Set(assignments.filter((each) => lastWorker(each) !== replica).map(({ project }) => project));
  }

  #take(facts: ProjectFacts): void {
    const view = viewWithoutResources(facts);
    const { counts, daemon } = view;
    const project = view.project.id ?? 0;
    const gauge = (name: GaugeName, value: number, labels: Record<string, string> = {}) =>
      this.#set(name, { project: String(project), ...labels }, value);
    for (const condition of conditions)
      gauge('condition', view.condition === condition ? 1 : 0, { condition });
    gauge('converged', view.converged === true ? 1 : 0);
    gauge('spec_valid', view.spec.broken.length === 0 ? 1 : 0);
    gauge('blocked', counts.blocked);
    gauge('waiting', counts.waiting);
    gauge('open_servers', counts.exposed);
    gauge('in_flight', counts.in_flight);
    for (const verb of ['create', 'update', 'delete', 'adopt'] as const) {
      gauge('pending_operations', view.operations.filter((each) => each.verb === verb).length, { verb });
    }
    const differing = new Set([
      ...view.operations.map(({ key }) => key),
      ...view.warnings.filter(isLeft).flatMap(({ key }) => key ?? []),
    ]);
    const byKind = Map.groupBy(differing, (key) => parseKey(key)?.kind);
    for (const kind of kindNames) gauge('differing_resources', byKind.get(kind)?.length ?? 0, { kind });
    if (this.#perProject)
      for (const key of [...differing].slice(0, mostDiffering)) gauge('resource_differs', 1, { key });
    this.#takeBill(facts, view, gauge);
    if (daemon === null) return;
    gauge('paused_scopes', daemon.pauses.length);
    const [last] = daemon.last_reconciliations;
    if (last !== undefined) gauge('last_reconciliation_timestamp_seconds', seconds(last.ended_at));
    if (view.at === null) return;
    const { at, differs_since: since } = view;
    gauge('drift_age_seconds', since === null ? 0 : seconds(at) - seconds(since));
    gauge('oldest_read_age_seconds', daemon.oldest_read_seconds);
    gauge('open_writes', counts.open_writes);
    gauge('left_backups', view.left_backups.flatMap(({ backups }) => backups).length);
    gauge('backed_off_keys', daemon.back_off.length);
    if (daemon.requests === null) return;
    for (const budget of ['reads', 'writes'] as const) {
      gauge('budget_limit', daemon.requests[budget].limit, { budget });
      gauge('budget_used', daemon.requests[budget].used, { budget });
    }
    this.#countRequests(project, daemon.requests.since_start);
  }

  /** Billed resources: those in the spec, those outside the spec, and those that have no use. */
  #takeBill(
    facts: ProjectFacts,
    { addresses, idle, unmanaged, plan }: ReturnType<typeof viewWithoutResources>,
    gauge: (name: GaugeName, value: number, labels?: Record<string, string>) => void,
  ): void {
    const { bindings } = knownIn(facts);
    for (const kind of kindsWith('bought')) {
      const managed = bindings.filter((each) => each.kind === kind).length;
      gauge('billed_resources', managed, { kind });
    }
    if (plan !== null) gauge('known_monthly_cost', Number(plan.cost.monthly.known_before));
    const { month } = plan?.cost ?? {};
    if (month !== undefined) {
      gauge('month_cost', Number(month.cost));
      gauge('month_cost_forecast', Number(month.forecast));
      gauge('month_cost_run_rate', Number(month.run_rate));
    }
    if (addresses === null) return;
    gauge('billed_addresses', addresses.length);
    gauge('idle_addresses', idle?.length ?? 0);
    const found = unmanaged ?? [];
    gauge('unmanaged_servers', found.filter(({ kind }) => !isAddress(kind)).length);
    gauge('unmanaged_addresses', found.flatMap((each) => each.addresses).length);
  }

  /** The client counts from its start; Prometheus wants sums that survive a reopened state. */
  #countRequests(project: number, now: RequestCounts): void {
    const before = this.#seen.get(project);
    const grown = (name: keyof RequestCounts) =>
      before === undefined || now[name] < before[name] ? now[name] : now[name] - before[name];
    this.#count('requests_total', { project, budget: 'reads' }, grown('reads'));
    this.#count('requests_total', { project, budget: 'writes' }, grown('writes'));
    this.#count('task_polls_total', { project }, grown('polls'));
    this.#count('throttled_total', { project }, grown('throttled'));
    this.#seen.set(project, now);
  }

  #labels(labels: Labels): Labels {
    if (this.#perProject) return labels;
    const { project: _, ...others } = labels;
    return others;
  }

  #set(name: GaugeName, of: Labels, given: number): void {
    const labels = this.#labels(of);
    const value = labels === of || !('project' in of) ? given : this.#total(name, labels, given);
    let gauge = this.#gauges.get(name);
    if (gauge === undefined) {
      gauge = new Gauge(this.#described(name, gauges[name]));
      this.#gauges.set(name, gauge);
    }
    gauge.set(labels, value);
  }

  /** Combines a project's value with the other projects' values of this rendering, and returns the result. */
  #total(name: GaugeName, labels: Labels, value: number): number {
    const series = `${name} ${JSON.stringify(labels)}`;
    const before = this.#totals.get(series);
    const total = before === undefined ? value : (worst[name]?.(before, value) ?? before + value);
    this.#totals.set(series, total);
    return total;
  }

  #count(name: keyof typeof counters, labels: Labels, by = 1): void {
    this.#counters.get(name)?.inc(this.#labels(labels), by);
  }

  #observe(name: keyof typeof histograms, labels: Labels, ms: number): void {
    this.#histograms.get(name)?.observe(this.#labels(labels), ms / 1000);
  }

  #described(name: string, [help, ...labelNames]: Described[string]) {
    return { name: `${prefix}${name}`, help, labelNames, registers: [this.registry] };
  }
}

function seconds(moment: string): number {
  return Date.parse(moment) / 1000;
}
