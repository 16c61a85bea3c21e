import { ApiProblem, FenceError, StateError } from '../../core/errors.ts';
import type { ApplyReport } from '../../core/progress.ts';
import { countsOf } from '../notices/pass-line.ts';
import { untilLookIsDue } from '../pace/quiet.ts';
import type { DaemonLogger, Mode, Trigger } from '../ports.ts';
import type { Offer, PassRecord } from './facts.ts';
import type { Ledger } from './ledger.ts';
import { prunePast } from './past.ts';
import type { ProjectParts, Workspace } from './workspace.ts';

/**
 * `stop`: begins no new operations, except for the firewalls of servers that this reconciliation created. `halt`:
 * every wait ends.
 */
interface PassSignals {
  readonly stop: AbortSignal;
  readonly halt: AbortSignal;
}

interface Ended {
  readonly outcome: PassRecord['outcome'];
  readonly results: ApplyReport['results'];
}

/**
 * Reconciles a project once: refreshes it, and carries out the plan until nothing is left or `halt` aborts. After
 * `stop` no new operation begins. Rejects if the state cannot be used.
 */
export async function makePass(
  offer: Offer,
  triggers: readonly Trigger[],
  workspace: Workspace,
  parts: ProjectParts,
  { halt, stop }: { readonly halt: AbortController; readonly stop: AbortSignal },
): Promise<Omit<PassRecord, 'number'>> {
  const { clock } = workspace.session;
  const startedAt = clock.now();
  if (triggers.includes('token')) workspace.holds.clear();
  const over = new AbortController();
  const watching = untilLookIsDue(parts.activity, parts.wake, clock, parts.intervalMs, over.signal).then(
    (due) => due && halt.abort(new Error('another refresh is due')),
  );
  try {
    const { outcome, results } = await attempt(offer, workspace, parts, { stop, halt: halt.signal });
    const endedAt = clock.now();
    if (parts.mode === 'correct' && !halt.signal.aborted) await prunePast(workspace.session, parts.keepMs);
    return { triggers, startedAt, endedAt, outcome, commit: offer.commit?.id, ...countsOf(results) };
  } finally {
    over.abort();
    await watching;
    parts.activity.settle();
  }
}

/** Reports the result to the parts of the project. */
async function attempt(
  offer: Offer,
  workspace: Workspace,
  { mode, log, ledger, backOff }: ProjectParts,
  signals: PassSignals,
): Promise<Ended> {
  const { session, holds } = workspace;
  try {
    const { outcome, results, plan } = await carryOut(offer, workspace, mode, signals);
    ledger.awaiting = workspace.approval.waiting;
    ledger.succeed(outcome === 'stopped' ? undefined : plan);
    backOff.learn(results, offer.desired, (code) => holds.holds(code), session.clock.now());
    return { outcome, results };
  } catch (error) {
    if (error instanceof StateError) throw error;
    if (signals.halt.aborted) return { outcome: 'stopped', results: [] };
    logFailure(log, error, ledger);
    ledger.fail(error);
    return { outcome: 'error', results: [] };
  }
}

async function carryOut(
  { desired }: Offer,
  { session: { engine, clock }, repeating, approval }: Workspace,
  mode: Mode,
  signals: PassSignals,
): Promise<Ended & Pick<ApplyReport, 'plan'>> {
  approval.begin();
  if (mode !== 'observe')
    return engine.apply(desired, {
      approve: (plan) => approval.permits(plan, desired, clock.now()),
      unattended: true,
      ...signals,
      repeating,
    });
  const plan = await engine.plan(desired, { repeating });
  if (plan.project.id === desired.projectId) return { outcome: 'observed', results: [], plan };
  throw new FenceError(
    `The file is for project ${desired.projectId}, but the token belongs to project ${plan.project.id}.`,
  );
}

/** An error that also ended the reconciliation before is logged at level debug. */
function logFailure(log: DaemonLogger, error: unknown, { error: before, failures }: Ledger): void {
  const level = String(error) === String(before) ? 'debug' : 'error';
  const problem = error instanceof ApiProblem ? { status: error.status, requestId: error.requestId } : {};
  log[level]({ error, attempt: failures + 1, ...problem }, 'reconciliation failed');
}
