import { mapTexts } from '../../core/json.ts';
import { commitView, diagnosticView, viewOf } from '../../view/build.ts';
import { timeOrNull } from '../../view/facts.ts';
import type { ProjectView } from '../../view/project-view.ts';
import type { Daemon } from '../daemon.ts';
import type { Assignment } from '../fleet/board.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Rollout } from '../fleet/rollout.ts';
import type { ReconciliationMemory } from '../project/memory.ts';
import { cutText, mostProjects, Pager, shortRemedies } from './pager.ts';

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
  const isAsked = (id: number) => project === undefined || project === String(id);
  const all = daemon.projects().filter(({ id }) => isAsked(id));
  const [only, another] = all;
  const isAlone = daemon.fleet === undefined || project !== undefined;
  const isOne = isAlone && only !== undefined && another === undefined;
  const pager = isOne ? new Pager(page) : new Pager(page, mostProjects);
  const shown = isOne ? all : pager.of(all);
  const views = await Promise.all(shown.map(async (each) => viewOf(await each.facts())));
  const notReady = daemon.notReady();
  const broken = source.orphans.flatMap(({ problem }) => problem.map(diagnosticView));
  const status = {
    format_version: 1,
    version,
    at: timeOrNull(now),
    ready: notReady.length === 0,
    not_ready: notReady.map(({ reason, detail }) => (detail === undefined ? reason : `${reason}: ${detail}`)),
    source: {
      name: source.name,
      read_at: timeOrNull(source.readAt),
      error: source.error ?? null,
      commit: commitView(source.commit),
      broken: pager.of(broken),
    },
    ...(daemon.fleet === undefined
      ? {}
      : {
          fleet: await fleetJson(daemon.fleet, (all) =>
            pager.of(all.filter((each) => isAsked(each.project))),
          ),
        }),
    projects: views.map((each) => pageOf(each, isOne ? page : undefined, isOne ? undefined : ofSeveral)),
    next: pager.page < pager.pages ? `/status?page=${pager.page + 1}` : null,
  };
  return mapTexts(status, cutText);
}

/** The entries of one page of each list that grows with the project, and where the others are. */
function pageOf(view: ProjectView, page?: number, size?: number): Record<string, unknown> {
  const pager = new Pager(page, size);
  const { spec, plan, daemon } = view;
  const blocked = view.blocked.map((each) => ({ ...each, remedies: shortRemedies(each.remedies) }));
  const warnings = view.warnings.map(({ remedies, ...each }) =>
    remedies === undefined ? each : { ...each, remedies: shortRemedies(remedies) },
  );
  const cost = plan && { ...pagedIn(plan.cost, pager), monthly: pagedIn(plan.cost.monthly, pager) };
  const paged = {
    ...pagedIn({ ...view, blocked, warnings }, pager),
    spec: { ...spec, broken: pager.of(spec.broken) },
    plan: plan && { ...plan, cost },
    daemon: daemon && { ...daemon, back_off: pager.of(daemon.back_off) },
  };
  const [next, isCut] = [pager.page + 1, pager.page < pager.pages];
  const more = size === undefined ? `&page=${next}` : '';
  return { ...paged, next: isCut ? `/status?project=${view.project.id}${more}` : null };
}

function pagedIn(value: object, pager: Pager): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, Array.isArray(each) ? pager.of<unknown>(each) : each]),
  );
}

/** How each project of a fleet is. The other parts of the status show the last refresh of this replica. */
async function fleetJson(
  fleet: Fleet,
  shown: (all: readonly Assignment[]) => readonly Assignment[],
): Promise<Record<string, unknown>> {
  const { replica } = fleet;
  const rollouts = fleet.board.rollouts.map(rolloutJson);
  const [rollout = null] = fleet.board.rollouts.toSorted((a, b) => urgency(b) - urgency(a)).map(rolloutJson);
  const found = await fleet.board.assignments().catch((error: Error) => error.message);
  const [error, assignments] = typeof found === 'string' ? [found, []] : [null, found];
  return {
    ...{ replica, leads: fleet.leads(), error, rollout, rollouts },
    projects: shown(assignments).map(({ project: id, worker, since, memory }) => ({
      ...{ id, worker: worker ?? null, since: timeOrNull(since) },
      condition: memory?.history.condition ?? null,
      condition_since: timeOrNull(memory?.history.conditionSince),
      blocked: memory?.history.blocked ?? 0,
      last_reconciliation: memory === undefined ? null : lastOf(memory),
    })),
  };
}

function lastOf({ replica, history: { endedAt, outcome } }: ReconciliationMemory) {
  return { replica, ended_at: timeOrNull(endedAt), outcome };
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
    ...{ since: timeOrNull(since), watched: new Pager().of(watched).map(({ project }) => project) },
  };
}
