import { partsOf } from '../../core/intent.ts';
import { type ResourceKey, takeApart } from '../../core/keys.ts';
import { factsOf, type KindName } from '../../core/kind-facts.ts';
import type { Spend } from '../../core/plan.ts';
import type { Conclusive, WriteResult } from '../../core/ports.ts';
import type { TaskId } from '../../core/resources.ts';
import type { Answer, Intent, IntentPatch, KeyQuestion, WhyUnknown } from '../../core/state.ts';
import { firewallOf } from '../../core/world.ts';
import { draftOne, operationsOf } from '../../plan/draft.ts';
import { lastCreation } from '../claims/scope.ts';
import type { Run } from '../run.ts';
import { refusedEarly, sendAfterCreation } from './bound-by.ts';
import { nextPreference } from './capacity.ts';
import {
  asksKey,
  block,
  close,
  closeBlocked,
  goOn,
  isServerError,
  maybeUsedKey,
  minutes,
  type Progress,
  questionOf,
  unasked,
  unbrokenRow,
  warn,
} from './endings.ts';
import { type Disposition, disposition, pauses } from './outcome.ts';
import { lift, pauseClass } from './pauses.ts';
import { takeOver } from './transfer.ts';

/** Malformed answers to one key before reads decide. @source API §8.1 */
const mostUnreadable = 3;

/** The effect of the write on spending, by the current spec and project. */
export function spendOf(run: Run, { key, kind, verb }: Intent): Spend {
  const subject = run.world.subjects.get(key);
  const drafted = subject && operationsOf(draftOne(run.deps.kinds, run.world, subject));
  const asked = drafted?.find((each) => each.verb === verb);
  if (asked !== undefined) return asked.spend;
  if (!run.kindOf(kind).billing.billed || verb === 'update') return 'none';
  return verb === 'delete' ? 'reduces' : 'adds';
}

/** Records the result of a send, and the next step, before anything else happens. */
export async function record(run: Run, intent: Intent, result: WriteResult): Promise<Progress> {
  const { deps } = run;
  const pace = {
    requestTimeoutMs: deps.requestTimeoutMs,
    jitter: deps.random.next(),
    waits: Math.max(0, intent.sends - 1),
    timeScale: deps.profile.timeScale,
  };
  const sent = {
    verb: intent.verb,
    asks: asksKey(run, intent),
    unconfirmed: partsOf(intent).unconfirmed,
    maybeUsed: partsOf(intent).because === 'key_maybe_used' || (await wasUnanswered(run, intent, result)),
  };
  const next = disposition(result, sent, pace);
  const requestId = result.type === 'answer' ? { requestId: result.requestId } : {};
  if (result.type === 'answer') run.facts.answered(intent.key, result.requestId);
  const early = await refusedEarly(run, intent, result);
  if (early !== undefined) return early;
  switch (next.do) {
    case 'accept':
      if (result.type !== 'answer') throw new Error(`No answer has accepted ${intent.key}.`);
      return accept(run, intent, result, next.task, next.breach);
    case 'wait':
      return waitAndResend(run, intent, next, requestId);
    case 'next_preference':
      return nextPreference(run, intent, next.reason);
    case 'refuse':
      // Only the replay of its own refusal shows that an unconfirmed creation was refused.
      return refused(
        run,
        await run.state.update(intent, { ...requestId, stage: { phase: 'sending' } }),
        next,
      );
    case 'look':
      return waitAndObserve(run, intent, next, result);
    case 'hold':
      await pauseClass(run, intent, next.pause, { code: next.code, reason: next.reason }, next.later);
      await goOn(run, intent, {
        stage: { phase: 'unknown', unconfirmed: partsOf(intent).unconfirmed ?? maybeUsedKey },
        dueAt: run.deps.clock.now(),
        ...requestId,
      });
      return { now: 'blocked', code: next.code, reason: next.reason };
  }
}

/** A new state asked the key before, without an answer: a refusal of the token does not show the answer of the key. */
async function wasUnanswered(run: Run, intent: Intent, result: WriteResult): Promise<boolean> {
  const isRefused = result.type === 'answer' && pauses[result.status] !== undefined;
  if (intent.verb !== 'create' || !isRefused) return false;
  const last = await lastCreation(run, intent.key);
  const { outcome, because } = last === undefined ? {} : partsOf(last);
  return last?.recovers !== undefined && outcome === 'void' && because === undefined;
}

/** The send had no effect, so the write is sent again under the same key. */
async function waitAndResend(
  run: Run,
  intent: Intent,
  next: Disposition & { readonly do: 'wait' },
  requestId: IntentPatch,
): Promise<Progress> {
  const { afterMs, reason } = next;
  const now = run.deps.clock.now();
  const unconfirmed = partsOf(intent).unconfirmed;
  const maybeUsed = next.maybeUsed === true || partsOf(intent).because === 'key_maybe_used';
  const patch: IntentPatch = {
    stage:
      unconfirmed === undefined
        ? { phase: 'waiting', ...(maybeUsed ? { because: 'key_maybe_used' } : {}) }
        : { phase: 'unknown', unconfirmed },
    dueAt: now + afterMs,
    detail: reason,
    ...requestId,
  };
  const progress = await goOn(run, intent, patch, afterMs);
  // A process that did not run meanwhile has not waited.
  const waitedMs = run.stopwatch.since(intent.id, 'begun', intent.createdAt);
  if (waitedMs > mostWaitMs(run, intent))
    return stillRefused(run, intent, next, `unchanged after ${minutes(waitedMs)}: ${reason}`);
  run.report(intent, 'waiting', reason, { untilMs: now + afterMs, code: next.code });
  return progress;
}

/**
 * Until the creation of a server ends, the API may refuse the writes inside the server, and an answer without a task
 * does not report that end. These writes therefore wait at least as long as the creation may take. @assumption A34
 * @assumption A43
 */
export function mostWaitMs(run: Run, { key, kind, verb, createdAt }: Intent): number {
  const deadlineMs = (waiting: KindName) => run.kindOf(waiting).timing.deadlineMs;
  const server = run.bindings.get(takeApart(key).parent ?? key);
  const serverMs =
    server === undefined ? 0 : deadlineMs(server.kind) - Math.max(0, createdAt - server.boundAt);
  // The deadline of an ISO or a backup is that of its creation. No deletion takes longer than that of a server.
  const own = verb === 'delete' ? Math.min(deadlineMs(kind), deadlineMs('server')) : deadlineMs(kind);
  return Math.max(own, serverMs);
}

/** The API has answered the send itself, and refused it. */
const answered: ReadonlySet<string> = new Set(['conflict', 'reused', 'refused', 'not_found']);

/** The effect is unknown. The key of a creation is asked. Evidence decides about updates and deletions. */
function waitAndObserve(
  run: Run,
  intent: Intent,
  next: Disposition & { readonly do: 'look' },
  result: WriteResult,
): Promise<Progress> {
  const { afterMs, reason } = next;
  const dueAt = run.deps.clock.now() + afterMs;
  const unanswered = !answered.has(next.why);
  const lost = intent.lost + (unanswered ? 1 : 0);
  const answer = result.type === 'answer' ? result : undefined;
  const code = answer?.code == null ? {} : { code: answer.code };
  run.report(intent, 'waiting', reason, { untilMs: dueAt, ...code });
  const patch: IntentPatch = {
    stage: {
      phase: 'unknown',
      unconfirmed: {
        why: whyOf(intent, next),
        question: asksKey(run, intent) ? questionAfter(intent, next, lost) : unasked,
      },
    },
    lost,
    dueAt,
    detail: reason,
    ...(answer === undefined ? {} : { requestId: answer.requestId }),
  };
  return goOn(run, intent, patch, afterMs);
}

/** The answer to a resend changes neither an acceptance nor a server error, which may have had its effect. */
function whyOf(intent: Intent, next: Disposition & { readonly do: 'look' }): WhyUnknown {
  const why = partsOf(intent).unconfirmed?.why;
  return why !== undefined && (why === 'unreadable' || isServerError(why)) ? why : next.why;
}

function questionAfter(
  intent: Intent,
  { stage, why, conflict }: Disposition & { readonly do: 'look' },
  lost: number,
): KeyQuestion {
  const before = questionOf(intent);
  if (why === 'unreadable' && lost >= mostUnreadable) return { ...before, stage: 'open' };
  // A taken key replays the answer to the original bytes, so the original is sent again after a lost answer.
  const kept = before.stage === 'taken' ? 'taken' : 'asking';
  return { ...before, stage: stage ?? kept, ...(conflict ? { conflict } : {}) };
}

/** The creation is still wanted. After its deadline the key is asked, if the refusal may be that of a reused key. */
async function stillRefused(
  run: Run,
  intent: Intent,
  { code, maybeUsed }: Disposition & { readonly do: 'wait' },
  reason: string,
): Promise<Progress> {
  if (maybeUsed !== true) return { now: 'blocked', code, reason };
  if (!asksKey(run, intent)) {
    // The next run reads again, and deletes under another key.
    return closeBlocked(run, intent, { outcome: 'refused', text: reason }, code);
  }
  const question = { ...questionOf(intent), lasting: code };
  return goOn(run, intent, { stage: { phase: 'unknown', unconfirmed: { ...maybeUsedKey, question } } });
}

/** Uses only the ids of the answer, because a replayed answer is as old as its first send. */
async function accept(
  run: Run,
  intent: Intent,
  answer: Conclusive,
  task: TaskId | null,
  breach: string | undefined,
): Promise<Progress> {
  const accepted = run.kindOf(intent.kind).writes.accept(answer, intent.request, intent.preimage);
  if (intent.verb === 'create' && accepted.id !== undefined && !answer.replayed) {
    const taken = await takeOver(run, intent, { ...intent, id: accepted.id, identity: {} }, true);
    if (!('isOpen' in taken) && taken.length > 0) await run.state.change(taken);
  }
  if (!answer.replayed) await lift(run.deps, { ...intent, spend: spendOf(run, intent) });
  if (factsOf(intent.kind).container && intent.verb === 'create')
    await exposed(run, intent.key, !answer.replayed);
  if (breach !== undefined) warn(run, intent.key, 'contract_breach', `${intent.request.name}: ${breach}`);
  run.stopwatch.mark(intent.id, 'accepted');
  const apiAt = run.cache.since(0).apiNow();
  const known: Answer = {
    at: run.deps.clock.now(),
    ...(apiAt === undefined ? {} : { apiAt }),
    ...(task === null ? {} : { taskId: task }),
    ...(accepted.id === undefined ? {} : { id: accepted.id }),
    facts: accepted.facts ?? {},
    to: sendAnswered(intent, answer),
    end: breach !== undefined && task === null ? 'unreported' : 'reported',
  };
  return goOn(run, intent, { stage: { phase: 'accepted', answer: known }, requestId: answer.requestId });
}

function sendAnswered(intent: Intent, { replayed }: Conclusive): Answer['to'] {
  if (!replayed) return 'this_send';
  const isOwn = partsOf(intent).unconfirmed !== undefined && intent.recovers === undefined;
  return isOwn ? 'earlier_send' : 'unknown_send';
}

/**
 * Stored refusals in a row before the operator is asked. While an invoice is unpaid, an earlier state may have left one
 * each half hour, and the API keeps them for a day.
 */
const mostStored = 50;

async function refused(
  run: Run,
  intent: Intent,
  { code, reason, until, pause, later, parameters }: Disposition & { readonly do: 'refuse' },
): Promise<Progress> {
  if (pause !== undefined) await pauseClass(run, intent, pause, { code, reason }, later);
  switch (until) {
    case 'file':
      return block(run, intent, code, reason, { until, ...(parameters === undefined ? {} : { parameters }) });
    case 'now': {
      const because = 'replayed';
      const text = `a stored answer of the API: ${reason}`;
      const before = await unbrokenRow(run, intent, (past) => partsOf(past).because === because);
      return before.length + 1 < mostStored
        ? close(run, intent, { outcome: 'refused', because, text }, { retryAfterMs: 0 })
        : block(
            run,
            intent,
            code,
            `${reason}; the API answered so for ${mostStored} idempotency keys in a row`,
          );
    }
    case 'token':
      return close(run, intent, { outcome: 'refused', text: reason }, { retryAfterMs: 0 });
    case 'replan':
      return closeBlocked(run, intent, { outcome: 'refused', text: reason }, code);
  }
}

/** The server is exposed from now on. The write gate keeps a slot of the write budget for its firewall. */
async function exposed(run: Run, server: ResourceKey, isNew: boolean): Promise<void> {
  const { gate, deps, world } = run;
  run.facts.expose(server, deps.clock.monotonic(), isNew);
  const firewall = firewallOf(world, server);
  if (firewall === undefined) return;
  if (gate.firewallAfterMs > 0) await sendAfterCreation(run);
  else run.signals.grace.add(firewall.key);
  gate.expect(firewall.key);
}
