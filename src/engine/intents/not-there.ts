import type { Evidence } from '../../core/evidence.ts';
import { partsOf } from '../../core/intent.ts';
import type { Conclusive } from '../../core/ports.ts';
import type { TaskId } from '../../core/resources.ts';
import type { Facts, Intent, StateChange, Unconfirmed, WhyUnknown } from '../../core/state.ts';
import { usedUp } from '../claims/scope.ts';
import { knownIds, type Run } from '../run.ts';
import { absenceGapMs } from '../timing.ts';
import { inWriteSlot } from './begin.ts';
import { leftByFailed } from './bound-by.ts';
import {
  asksKey,
  block,
  close,
  closeAndRetry,
  closeBlocked,
  failureOf,
  goOn,
  isReplay,
  isServerError,
  keyIsFresh,
  maybeUsedKey,
  mostReplayed,
  type Progress,
  sinceSentMs,
  unasked,
  unbrokenRow,
} from './endings.ts';
import { gatewayMs } from './outcome.ts';
import { calibrated } from './probe-key.ts';

/** The limit for a creation, if no evidence shows that the API marks only replays as replayed. */
const mostUnsureReplays = 3;

/** The write was accepted and succeeded, but no read shows its effect: an old answer was replayed, or the API is in breach. */
export async function notThere(
  { run, intent }: { readonly run: Run; readonly intent: Intent },
  { gone, strays, left }: Extract<Evidence, { verdict: 'not_done' }>,
): Promise<Progress> {
  if (isReplay(intent)) {
    const { taskId, end } = partsOf(intent).answer ?? {};
    if (intent.verb === 'create' && taskId === undefined && end === 'unreported')
      return block(run, intent, 'not_there', replayedUnreported);
    const before = await unbrokenRow(
      run,
      intent,
      (each) => partsOf(each).outcome === 'absent' && isReplay(each),
    );
    const count = before.length + 1;
    const isSuspect =
      intent.verb === 'create' && count >= mostUnsureReplays && !(await marksReplaysAlone(run, intent));
    if (isSuspect || count >= mostReplayed)
      return block(run, intent, 'not_there', replayedOnly(intent, before));
    return createNext(
      run,
      intent,
      'an earlier state used its idempotency key, and the resource of that write is gone',
    );
  }
  const reason = 'the API accepted the write and reported no failure, but reads do not show its effect';
  // A deletion or an update is safe to repeat.
  if (intent.verb !== 'create' || run.kindOf(intent.kind).setting)
    return closeAndRetry(run, intent, { outcome: 'absent', text: reason, most: 3, code: 'not_there' });
  const earlier = await unbrokenRow(run, intent, (each) => partsOf(each).outcome === 'absent');
  // If two resources in a row do not show in reads, the reads of the API may be wrong.
  if (gone !== true || strays === true || earlier.length > 0) return block(run, intent, 'not_there', reason);
  const bound = leftByFailed(run, intent, left);
  return createNext(run, intent, `${partsOf(intent).answer?.id} was created, and is gone`, bound);
}

/**
 * The task failed, and reads show no effect. The operation begins again once. The key of a creation holds the answer, so
 * the next creation has the next incarnation, which every copy of the state finds.
 */
export async function taskFailed(
  { run, intent }: { readonly run: Run; readonly intent: Intent },
  { strays, left }: Extract<Evidence, { verdict: 'not_done' }>,
): Promise<Progress> {
  if (strays === true) return block(run, intent, 'task_failed', failureOf(intent));
  const ended = { outcome: 'failed', text: `the task failed: ${intent.detail}` } as const;
  const changes = leftByFailed(run, intent, left);
  if (!asksKey(run, intent))
    return closeAndRetry(run, intent, { ...ended, code: 'task_failed', most: 1, changes });
  const before = await unbrokenRow(run, intent, (each) => partsOf(each).outcome === 'failed');
  const next = [...changes, ...(await usedUp(run, intent))];
  return before.length === 0
    ? close(run, intent, ended, { changes: next, retryAfterMs: 0 })
    : closeBlocked(run, intent, ended, 'task_failed', { changes: next });
}

/** The created resource is gone, so the next creation has a key of its own. */
async function createNext(
  run: Run,
  intent: Intent,
  detail: string,
  left: readonly StateChange[] = [],
): Promise<Progress> {
  const changes = [...left, ...(await usedUp(run, intent))];
  return close(
    run,
    intent,
    { outcome: 'absent', because: 'gone', text: detail },
    { changes, retryAfterMs: 0 },
  );
}

const replayedUnreported =
  'a stored answer says that the resource is being created, and names no task. Reads do not show the resource: it may be gone, or may still appear';

/** Whether the API marks replayed answers, and only these. A fresh answer that is marked by mistake is a purchase. */
async function marksReplaysAlone(run: Run, intent: Intent): Promise<boolean> {
  if (run.facts.pausedBy(intent.request, 'none') !== undefined) return false;
  const behaviour = await inWriteSlot(run, intent, () => calibrated(run, intent));
  return !('type' in behaviour) && behaviour.storesRefusals;
}

function replayedOnly(intent: Intent, before: readonly Intent[]): string {
  if (intent.verb === 'delete')
    return `the API answered the deletion ${before.length + 1} times with a stored answer, and reads still show the resource`;
  const ids = [intent, ...before].flatMap((each) => partsOf(each).answer?.id ?? []);
  return `the API answered that it created ${ids.join(', ')}, and reads show none of them: they may exist and be billed`;
}

/** For updates and deletions: the most sends without an answer (the first included), and the most of one key. */
const mostLost = 3;
const mostSends = 10;
/** For a creation under an open key: the most sends (the first included) after the API refuses one. */
const mostRefused = 3;
/** The attempts of an operation that may end without an effect. */
const unseen = { outcome: 'absent', most: 3 } as const;
const serverError = { ...unseen, code: 'server_error' } as const;

/** Reads show no effect of the write: sends the same key again, takes a new key, or asks the operator. */
export async function sendAgain({ run, intent }: { run: Run; intent: Intent }): Promise<Progress> {
  const { kind, detail } = intent;
  const unconfirmed = partsOf(intent).unconfirmed ?? maybeUsedKey;
  const { why } = unconfirmed;
  if (!keyIsFresh(run, intent)) {
    const reason = 'reads do not show the resource, and its idempotency key is too old to be sent again';
    return block(run, intent, 'key_too_old', reason);
  }
  if (asksKey(run, intent)) return createAgain(run, intent, unconfirmed);
  switch (why) {
    case 'lost':
    case 'unreadable':
    case 'conflict':
    case 'reused': {
      if (intent.lost >= mostLost || intent.sends >= mostSends) {
        const reason = `no answer after ${intent.sends} requests, and reads show no effect`;
        return block(run, intent, 'outcome_unknown', reason);
      }
      if (run.kindOf(kind).setting) {
        return closeAndRetry(run, intent, { ...unseen, code: 'outcome_unknown', text: detail });
      }
      return resendSame(run, intent, why);
    }
    case 'refused':
      return close(run, intent, { outcome: 'absent', text: detail }, { retryAfterMs: 0 });
    case 'not_found':
      return closeBlocked(run, intent, { outcome: 'refused', text: detail }, 'not_found', {
        reason: `${detail}, but reads show the resource`,
      });
    case 'gateway_error':
    case 'server_error': {
      const rest = gatewayMs - sinceSentMs(run, intent);
      if (why === 'server_error' || rest <= 0)
        return closeAndRetry(run, intent, { ...serverError, text: detail });
      const dueAt = run.deps.clock.now() + rest;
      return goOn(run, intent, { stage: { phase: 'unknown', unconfirmed }, dueAt }, rest);
    }
  }
}

/**
 * Continues an absent creation. The next attempt is safe only if the key is fenced: then no other state can use the key
 * either, and all states use the attempts in the same order. Under an open key the original bytes are sent again.
 */
async function createAgain(run: Run, intent: Intent, { why, question }: Unconfirmed): Promise<Progress> {
  const { detail } = intent;
  if (question.stage !== 'fenced' && why === 'refused' && intent.sends >= mostRefused)
    return block(
      run,
      intent,
      'outcome_unknown',
      `reads do not show the resource, also after a second request: ${detail}`,
    );
  if (question.stage !== 'fenced') return resendSame(run, intent, why);
  if (isServerError(why)) return closeAndRetry(run, intent, { ...serverError, text: detail });
  const ended = { outcome: 'absent', text: detail } as const;
  return question.lasting === undefined
    ? close(run, intent, ended, { retryAfterMs: 0 })
    : // A later run begins the next attempt.
      closeBlocked(run, intent, ended, question.lasting);
}

function resendSame(run: Run, intent: Intent, why: WhyUnknown): Promise<Progress> {
  const stage = { phase: 'waiting', unconfirmed: { why, question: unasked } } as const;
  return goOn(run, intent, { stage, dueAt: run.deps.clock.now() });
}

/** The resource that an answer named. */
type Made = { readonly id: string; readonly facts: Facts };

type Life = 'live' | 'gone' | 'unknown';

/** The resource is gone only if no read finds the resource after its task has ended, and again a minute later. */
export async function lifeOf(run: Run, intent: Intent, made: Made, { task }: Conclusive): Promise<Life> {
  const first = await look(run, intent, made);
  if (first !== 'gone') return first;
  const { clock, tasks } = run.deps;
  const { deadlineMs, showsWithinMs = 0 } = run.kindOf(intent.kind).timing;
  run.report(intent, 'checking', `whether ${made.id} still exists`);
  const id = taskOf(task);
  if (id !== undefined) {
    const watch = { id, sort: intent.request.name, acceptedAt: clock.now(), deadlineMs };
    const { end } = await tasks.wait(watch, run.signals.halt);
    if (end === 'stuck') return 'unknown';
  }
  await clock.sleep(task === 'missing' ? showsWithinMs : absenceGapMs, run.signals.halt);
  return look(run, intent, made);
}

/** `undefined`: the write ended in its request, or the field is missing. @source API §4 rule 5 @assumption A34 */
export function taskOf(task: Conclusive['task']): TaskId | undefined {
  return typeof task === 'object' && task !== null ? task.id : undefined;
}

async function look(run: Run, intent: Intent, made: Made): Promise<Life> {
  const { writes } = run.kindOf(intent.kind);
  const answer = { ...made, at: 0, to: 'unknown_send', end: 'reported' } as const;
  const asked = { ...intent, phase: 'accepted' as const, answer };
  const seen = await run.fence.read((read) => writes.evidence(asked, read, () => new Set()));
  if (seen === undefined) return 'unknown';
  return 'id' in seen ? 'live' : 'gone';
}

/**
 * The answer to the creation of a network has no id. The name and the subnet identify the network. @source API §3
 * rule 5
 */
export async function idByEvidence(run: Run, intent: Intent): Promise<string | undefined> {
  const { writes } = run.kindOf(intent.kind);
  const asked = { ...intent, preimage: {}, phase: 'accepted' as const };
  const seen = await run.fence.read((read) =>
    writes.evidence(asked, read, (kind) => knownIds(run, kind, intent)),
  );
  return seen?.verdict === 'done' && seen.certain ? seen.id : undefined;
}
