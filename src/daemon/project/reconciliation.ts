import type { Clock } from '../../core/clock.ts';
import { ApiProblem, FenceError, StateError } from '../../core/errors.ts';
import type { Trigger } from '../../core/fleet.ts';
import type { Plan } from '../../core/plan.ts';
import type { ApplyReport } from '../../core/progress.ts';
import type { Offer } from '../../view/facts.ts';
import type { DaemonLogger, ProjectSession } from '../ports.ts';
import { abortedWith, type Wake } from '../scheduling/wake.ts';
import type { Activity } from './activity.ts';
import type { ReconciliationRecord } from './facts.ts';
import type { ProjectHistory } from './history.ts';
import type { ProjectParts, Workspace } from './workspace.ts';

/** `stop`: sets the firewalls of open servers, and ends. `halt`: every wait ends. `ended`: either of both. */
interface ReconciliationSignals {
  readonly stop: AbortSignal;
  readonly halt: AbortSignal;
  readonly ended: AbortSignal;
}

interface EndedReconciliation {
  readonly outcome: ReconciliationRecord['outcome'];
  readonly results: ApplyReport['results'];
}

/**
 * Reconciles a project once: refreshes it, and carries out the plan until nothing is left or a signal aborts. Rejects if the state cannot be used.
 */
export async function reconcile(
  offer: Offer,
  triggers: readonly Trigger[],
  workspace: Workspace,
  parts: ProjectParts,
  { halt, stop: outer }: { readonly halt: AbortController; readonly stop: AbortSignal },
) {
  const { clock } = workspace.session;
  const startedAt = clock.now();
  const over = new AbortController();
  // The engine adds listeners, and the signal outlives the reconciliation.
  const { own, release } = abortedWith(outer);
  const stop = own.signal;
  const watching = untilRefreshIsDue(parts.activity, parts.wake, clock, parts.intervalMs, over.signal).then(
    (due) => due && halt.abort(new Error('another refresh is due')),
  );
  try {
    parts.check.begin(triggers);
    const ended = AbortSignal.any([halt.signal, stop]);
    const { outcome, results } = await attempt(offer, workspace, parts, { stop, halt: halt.signal, ended });
    const endedAt = clock.now();
    if (parts.mode === 'correct' && !ended.aborted) await pruneHistory(workspace.session, parts.keepMs);
    const settled = results.filter((each) => each.outcome === 'done' || each.outcome === 'failed').length;
    const result = { outcome, commit: offer.commit?.id, operations: results.length, settled };
    const record: ReconciliationRecord = { triggers, startedAt, endedAt, ...result };
    return { record, results };
  } finally {
    release();
    over.abort();
    await watching;
    parts.activity.settle();
  }
}

/** Reports the result to the parts of the project. */
async function attempt(
  offer: Offer,
  workspace: Workspace,
  parts: ProjectParts,
  signals: ReconciliationSignals,
): Promise<EndedReconciliation> {
  const { log, history, check } = parts;
  try {
    const { plan, ...ended } = await carryOut(offer, workspace, parts, signals);
    const left = ended.outcome === 'stopped' ? undefined : check.blocked(plan);
    history.succeed(left, workspace.approval.waiting);
    return ended;
  } catch (error) {
    if (error instanceof StateError) throw error;
    if (signals.ended.aborted) return { outcome: 'stopped', results: [] };
    logFailure(log, error, history.found);
    history.fail(error);
    return { outcome: 'error', results: [] };
  }
}

async function carryOut(
  { desired }: Offer,
  { session: { engine, clock }, repeating, approval }: Workspace,
  { mode, check, history }: Pick<ProjectParts, 'mode' | 'check' | 'history'>,
  { ended, ...signals }: ReconciliationSignals,
): Promise<EndedReconciliation & Pick<ApplyReport, 'plan'>> {
  approval.begin();
  if (mode !== 'observe') {
    const report = await engine.apply(desired, {
      approve: async (plan) => {
        const isAccepted = await check.accepts(plan, desired, ended);
        // A check that was cut short has decided nothing.
        if (!isAccepted && ended.aborted) return false;
        const isPermitted = isAccepted && (await approval.permits(plan, desired, clock.now()));
        history.decide(isPermitted ? 'corrected' : isAccepted ? 'waits' : 'refused');
        return isPermitted;
      },
      unattended: true,
      ...signals,
      repeating,
    });
    await approval.end(report, desired, clock.now());
    const outcome = outcomeOf(report, approval.waiting !== undefined, ended.aborted);
    return { outcome, results: report.results, plan: report.plan };
  }
  const plan = await engine.plan(desired, { repeating });
  if (plan.project.id === desired.projectId) return { outcome: 'observed', results: [], plan };
  throw new FenceError(
    `The spec is for project ${desired.projectId}, but the token belongs to project ${plan.project.id}.`,
  );
}

/** Says why a plan was not applied: it waits for an approval, or the check command refused it. */
function outcomeOf(
  { outcome }: ApplyReport,
  isAwaiting: boolean,
  isHalted: boolean,
): EndedReconciliation['outcome'] {
  if (isAwaiting && (outcome === 'declined' || outcome === 'failed')) return 'awaiting_approval';
  if (outcome !== 'declined') return outcome;
  return isHalted ? 'stopped' : 'check_refused';
}

/** An error that also ended the reconciliation before is logged at level debug. */
function logFailure(
  log: DaemonLogger,
  error: unknown,
  { error: before, failures }: ProjectHistory['found'],
): void {
  const level = String(error) === String(before) ? 'debug' : 'error';
  const problem = error instanceof ApiProblem ? { status: error.status, requestId: error.requestId } : {};
  log[level]({ error, attempt: failures + 1, ...problem }, 'reconciliation failed');
}

const noteName = 'pruned';
/** Between two prunings, in ms of the project's clock. */
const dayMs = 24 * 3_600_000;

/** Once a day, deletes intents and journal lines that ended longer ago than `keepMs` and that no other part needs. */
export async function pruneHistory(
  { store, clock }: Pick<ProjectSession, 'store' | 'clock'>,
  keepMs: number,
): Promise<void> {
  const now = clock.now();
  const last = await store.note(noteName);
  if (typeof last === 'number' && now - last < dayMs && last <= now) return;
  await store.prune(now - keepMs);
  await store.putNote(noteName, now);
}

/** After this time without progress, a reconciliation that only waits may be cut short for a new refresh. */
const quietMs = 30_000;

/**
 * A reconciliation that only waits, for graphics cards or an ISO, must not delay the refresh of the other resources.
 * Returns `true` once the reconciliation may be cut short, and `false` when `done` aborts first.
 */
async function untilRefreshIsDue(
  activity: Activity,
  wake: Wake,
  clock: Clock,
  intervalMs: number,
  done: AbortSignal,
): Promise<boolean> {
  const startedAt = clock.now();
  while (!done.aborted) {
    await clock.sleep(Math.min(quietMs, intervalMs) / 3, done).catch(() => undefined);
    const now = clock.now();
    const due = wake.pending() || now - startedAt > intervalMs;
    if (done.aborted || !due || !activity.isQuietSince(now - quietMs)) continue;
    wake.nudge('timer');
    return true;
  }
  return false;
}

/**
 * Writes one log line for a reconciliation. A reconciliation without changes is logged at level debug, so that an idle
 * project does not write a line every five minutes.
 */
export function logReconciliation(
  log: DaemonLogger,
  { triggers, outcome, commit, startedAt, endedAt, operations, settled }: ReconciliationRecord,
  plan: Plan | undefined,
  spec: string | undefined,
): void {
  const idle = settled === 0 && triggers.every((each) => each === 'timer' || each === 'refresh');
  // After an error, the plan is the one of an earlier reconciliation, so its counts do not belong into this line.
  const { blocked, unchanged } = (outcome === 'error' ? undefined : plan?.summary) ?? {};
  log[idle && outcome !== 'error' ? 'debug' : 'info'](
    {
      ...{ trigger: triggers.join(' '), outcome, commit, spec },
      ...{ durationMs: Math.round(endedAt - startedAt), operations, blocked, unchanged },
    },
    'reconciliation ended',
  );
}
