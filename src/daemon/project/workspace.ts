import { once } from 'node:events';
import { serverObject } from '../../core/claims.ts';
import type { World } from '../../core/kind.ts';
import type { ProgressEvent, RequestCounts } from '../../core/progress.ts';
import { leftBackups } from '../../engine/claims/release.ts';
import type { Repeating } from '../../engine/deps.ts';
import { heldClasses } from '../../engine/intents/pauses.ts';
import type { BilledHistory } from '../../engine/month-cost.ts';
import { createReadCache } from '../../engine/observe.ts';
import { Approval } from '../../engine/run/approval.ts';
import type { Stopwatch } from '../../engine/timing.ts';
import { knownIn, type ProjectFacts } from '../../view/facts.ts';
import type { Notification } from '../notifications/notification.ts';
import type { Notifier } from '../notifications/notifier.ts';
import type { DaemonDeps, DaemonLogger, Mode, ProjectSession } from '../ports.ts';
import type { KeyBackOff } from '../scheduling/back-off.ts';
import { Refresh } from '../scheduling/refresh.ts';
import type { Wake } from '../scheduling/wake.ts';
import type { Activity } from './activity.ts';
import type { ReconciliationRecord } from './facts.ts';
import type { ProjectHistory } from './history.ts';
import type { PlanCheck } from './plan-check.ts';
import { both, UseMeter } from './use-meter.ts';
import type { WayBack } from './way-back.ts';

/** How long a plan waits for tasks of earlier reconciliations. Tasks that take longer run in parallel to the plan. */
const settleMs = 90_000;
/** Time until a write that a 402, 403 or 401 has paused is tried again. */
const probeMs = 30 * 60_000;

/** The resources that are open while a project runs. */
export type Workspace = ReturnType<typeof openWorkspace>;

/** This process, as the records of turns name it. */
export interface Worker {
  /** The name of the process, among all that share the project. */
  readonly replica: string;
  /** The notifications that were sent, by any process. */
  readonly notified: Pick<Notifier, 'notifiedOf' | 'recall'>;
  /** The time that all processes share. Wall ms. */
  readonly now: () => number;
}

export interface ProjectOptions {
  readonly deps: DaemonDeps;
  readonly id: number;
  readonly mode: Mode;
  readonly intervalMs: number;
  /** Intents and journal lines that ended longer ago are deleted. */
  readonly keepMs: number;
  readonly worker: Worker;
  readonly onNotification: (notification: Notification) => void;
  /** Called when the page would show the project differently. */
  readonly onChange: () => void;
  readonly onEvent: (event: ProgressEvent) => void;
  readonly onReconciliation: (reconciliation: ReconciliationRecord) => void;
}

/** The parts of a project that outlive its sessions. */
export interface ProjectParts extends Pick<ProjectOptions, 'mode' | 'intervalMs' | 'keepMs'> {
  readonly log: DaemonLogger;
  readonly history: ProjectHistory;
  readonly check: PlanCheck;
  readonly backOff: KeyBackOff;
  readonly activity: Activity;
  readonly wake: Wake;
  readonly billed: BilledHistory;
  readonly wayBack: WayBack;
}

/** `undefined` if the signal aborts before the session is open. */
export async function unlessAborted(
  opening: Promise<ProjectSession>,
  signal: AbortSignal,
): Promise<ProjectSession | undefined> {
  const over = signal.aborted ? undefined : once(signal, 'abort').then(() => undefined);
  const session = await Promise.race([opening, over]);
  // A session that opens too late would own the state as long as this process lives.
  if (session === undefined) void opening.then((late) => late.close()).catch(() => undefined);
  return session;
}

/** Creates the workspace of a session. `spent` are the requests of earlier sessions. */
export function openWorkspace(
  opened: ProjectSession,
  { history, backOff, wake, intervalMs, log, billed }: ProjectParts,
  stopwatch: Stopwatch,
  spent: RequestCounts,
) {
  const { clock, reads, profile } = opened;
  const session = { ...opened, counts: () => both(spent, opened.counts()) };
  const cache = createReadCache(reads('operation'), clock, opened.tokenMark);
  const refresh = new Refresh({
    ...{ session, cache, intervalMs },
    isPaused: () => history.found.error !== undefined,
    isWanted: (server) => history.found.world?.keyOf(serverObject(server)) !== undefined,
    onChange: (server) => {
      log.info({ resourceId: server }, 'server differs from its last refresh');
      wake.nudge('refresh');
    },
    onFailure: (error) => log.debug({ error }, 'server refresh failed'),
  });
  const onRefresh = (world: World) => {
    history.recordRefresh(world, clock.now());
    refresh.compare(world.ips);
  };
  const approval = new Approval(session.store);
  const isPaused: Repeating['isPaused'] = (operation) =>
    backOff.isPaused(operation, clock.now()) || approval.isPaused(operation);
  const meter = new UseMeter(session.counts, clock, profile.limits.windowMs);
  const repeating = { cache, probeMs, stopwatch, billed, settleMs, isPaused, onRefresh };
  return { session, refresh, meter, repeating, approval };
}

/** Works in the background until the signal aborts. */
export function runBeside({ meter, refresh }: Workspace, signal: AbortSignal): Promise<void> {
  const works = [meter.run(signal), refresh.run(signal)].map((each) =>
    each.catch((error: unknown) => {
      if (!signal.aborted) throw error;
    }),
  );
  return Promise.all(works).then(() => undefined);
}

/** The current data of the state and the client. `undefined` before the state is open. */
export async function readingsOf(
  workspace: Workspace | undefined,
  { backOff, history }: Pick<ProjectParts, 'backOff' | 'history'>,
) {
  if (workspace === undefined) return undefined;
  const { session, meter, refresh } = workspace;
  const { store, clock, profile, counts, tokenMark } = session;
  const now = clock.now();
  const known = {
    now,
    info: await store.info(),
    bindings: await store.bindings(),
    intents: await store.openIntents(),
    claims: await store.claims(),
    history: await store.intents({ limit: 30 }),
  };
  const client = {
    ...{ limits: profile.limits, used: meter.used(), counts: counts() },
    ...{ oldestReadMs: refresh.oldestMs(), backOff: backOff.list(now) },
  };
  const { status } = history.found.world?.project ?? {};
  return {
    ...{ known, client },
    pauses: heldClasses(known.claims, { token: tokenMark(), status, now, probeMs }),
  };
}

/** Whether the state holds no resource of the project. */
export function isEmpty({ known }: Pick<ProjectFacts, 'known'>): boolean {
  const { bindings, intents, claims } = knownIn({ known });
  return bindings.length + intents.length + leftBackups(claims).length === 0;
}
