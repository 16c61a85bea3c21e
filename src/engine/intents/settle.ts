import { partsOf } from '../../core/intent.ts';
import { comesWithServer, takeApart } from '../../core/keys.ts';
import type { Operation } from '../../core/plan.ts';
import type { InPhase, Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { askKey, decided } from './ask-key.ts';
import { inWriteSlot, observationValidMs, roomToWrite, sendValidMs, sinceObservation } from './begin.ts';
import { serverIdOf } from './bound-by.ts';
import {
  again,
  asksKey,
  block,
  close,
  giveUp,
  goOn,
  keyIsFresh,
  type Progress,
  questionOf,
  sentNow,
  sentPreference,
  unasked,
} from './endings.ts';
import { finish, readForEffect, seenSince } from './evidence.ts';
import { record, spendOf } from './record.ts';
import { endReservation, isReservation } from './reserve-key.ts';
import { revalidate, secondHalfPaused } from './revalidate.ts';
import { endSuperseded } from './transfer.ts';

/** The plan has the intent as one half of this replacement. */
type Half = Pick<Operation, 'replacement'>;

/**
 * Takes an open intent one step further, by its phase (see `IntentPhase`): sends the write, asks its key, waits for
 * its task, or reads evidence. Called again until the intent is closed or blocked. `halt` ends the wait for the task.
 */
export async function advance(
  run: Run,
  intent: Intent,
  half: Half = {},
  halt: AbortSignal = run.signals.halt,
): Promise<Progress> {
  if (endsWithServer(run, intent)) return endWithServer(run, intent);
  switch (intent.phase) {
    case 'sending': {
      // The process ended between the record and the answer, so the write may have been sent.
      const unconfirmed = intent.unconfirmed ?? { why: 'lost', question: unasked };
      return goOn(run, intent, { stage: { phase: 'unknown', unconfirmed }, lost: intent.lost + 1 });
    }
    case 'waiting': {
      const wait = run.stopwatch.until(intent.id, 'due', intent.dueAt);
      return wait > 0 ? again(wait) : resend(run, intent, half);
    }
    case 'unknown':
      return settleUnknown(run, intent, half);
    case 'accepted':
      return finish(run, intent, halt);
    case 'blocked': {
      // The local clock was ahead, or is right again.
      const isFresh = intent.blocked.code === 'key_too_old' && keyIsFresh(run, intent);
      if (isFresh && intent.unconfirmed !== undefined)
        return goOn(run, intent, { stage: { phase: 'unknown', unconfirmed: intent.unconfirmed } });
      const seen = await seenSince(run, intent);
      if (seen !== undefined) return seen;
      return { now: 'blocked', code: intent.blocked.code, reason: intent.blocked.reason };
    }
    case 'superseded':
      return endSuperseded(run, intent);
    case 'closed':
      throw new Error(`${intent.id} is closed`);
  }
}

/**
 * Sends the write of a durable intent, under the token that passed the project fence, and
 * records the result before anything else happens.
 */
export async function send(
  run: Run,
  intent: Intent,
  token: string,
  isValid: (ms: number) => boolean,
): Promise<Progress> {
  const { deps } = run;
  const chosen = [intent.request.name, intent.idempotencyKey, sentPreference(run, intent) ?? ''];
  run.report(intent, 'sent', chosen.filter((each) => each !== '').join(' '));
  run.stopwatch.mark(intent.id, 'sent');
  // The send may wait long for a connection before its first byte.
  const mayGo = () => isValid(sendValidMs) && deps.store.isOwned?.() !== false;
  const result = await deps.writes.send(intent.request, intent.idempotencyKey, token, mayGo);
  run.cache.forget(run.kindOf(intent.kind).writes.stale(intent.request));
  if (result.type === 'unsent' && !mayGo()) {
    const unconfirmed = partsOf(intent).unconfirmed;
    const stage =
      unconfirmed === undefined
        ? ({ phase: 'waiting', ...maybeUsedOf(intent) } as const)
        : ({ phase: 'unknown', unconfirmed } as const);
    return goOn(run, intent, { stage, dueAt: deps.clock.now(), detail: result.reason });
  }
  return record(run, intent, result);
}

/** The key of a creation is asked first: an answer stored under the key is certain, and lists come second. */
function settleUnknown(run: Run, intent: InPhase<'unknown'>, half: Half): Promise<Progress> | Progress {
  if (!asksKey(run, intent)) return readForEffect(run, intent);
  if (isReservation(intent)) return endReservation(run, intent);
  if (!keyIsFresh(run, intent))
    return intent.sends === 0 ? neverSent(run, intent) : readForEffect(run, intent);
  switch (questionOf(intent).stage) {
    case 'asking':
      return askKey(run, intent);
    case 'taken': {
      const wait = run.stopwatch.until(intent.id, 'due', intent.dueAt);
      return wait > 0 ? again(wait) : resend(run, intent, half);
    }
    case 'fenced':
      // A resource that appeared since was not created under this key.
      if (intent.recovers !== undefined && intent.sends === 0)
        return close(run, intent, { outcome: 'absent', text: 'the idempotency key holds no answer' });
      return readForEffect(run, intent);
    case 'open':
      return intent.sends === 0 ? neverSent(run, intent) : readForEffect(run, intent);
  }
}

/** A new state began to ask the key, and the API gives no answer to it, or has forgotten it. The next plan shows the missing resource. */
function neverSent(run: Run, intent: Intent): Promise<Progress> {
  return close(run, intent, { outcome: 'void', text: 'nothing was sent under the idempotency key' });
}

/** Sends the same bytes again under the same key. */
function resend(run: Run, intent: Intent, half: Half): Promise<Progress> {
  return inWriteSlot(run, intent, () => resendNow(run, intent, half));
}

async function resendNow(run: Run, intent: Intent, half: Half): Promise<Progress> {
  run.signals.stop.throwIfAborted();
  const { writes } = run.deps;
  const held = run.facts.pausedBy(intent.request, spendOf(run, intent));
  // The intent stays open, because a pause ends later.
  if (held !== undefined) return { now: 'blocked', ...held };
  await roomToWrite(run);
  const isValid = sinceObservation(run);
  // The id may belong to another resource by now, so the resource is observed again before each deletion. @assumption A17
  const unconfirmed = partsOf(intent).unconfirmed;
  if (unconfirmed === undefined || intent.verb === 'delete') {
    const world = await run.view.observe(intent.key);
    const not = await revalidate(run, world, { ...half, ...intent });
    // A new intent passes the same checks as any other intent.
    if (not !== undefined)
      return giveUp(run, intent, not.reason, {
        retryAfterMs: 0,
      });
    const waits = await secondHalfPaused(run, world, intent);
    if (waits !== undefined) return waits;
  }
  const token = await run.fence.check();
  if (!isValid(observationValidMs)) return again(0);
  if (!keyIsFresh(run, intent))
    return newKey(run, intent, 'key_too_old', 'its idempotency key is too old to be sent again');
  if (intent.sentAs !== writes.digest(intent.request)) {
    // The key holds an answer that other bytes do not replay, so lists decide.
    if (questionOf(intent).stage === 'taken') return decided(run, intent, 'open');
    return newKey(
      run,
      intent,
      'profile_changed',
      'the API profile or an environment variable has changed, so a repeated request would differ from the first one',
    );
  }
  const sending = await run.state.update(intent, {
    stage: { phase: 'sending', ...(unconfirmed && { unconfirmed }), ...maybeUsedOf(intent) },
    sends: intent.sends + 1,
    ...sentNow(run),
  });
  return send(run, sending, token, isValid);
}

/** The key cannot be used again. A new key is used only if no send under this one is unconfirmed. */
function newKey(run: Run, intent: Intent, code: string, reason: string): Promise<Progress> {
  if (partsOf(intent).unconfirmed !== undefined) return block(run, intent, code, reason);
  // The wait for capacity continues under the new key.
  const because = 'because' in intent && intent.because === 'no_capacity' ? 'no_capacity' : 'key_too_old';
  const ended = { outcome: 'refused', because, text: `${reason}; ${intent.detail}` } as const;
  return close(run, intent, ended, { retryAfterMs: 0 });
}

/** The server of the intent is gone, or its key is bound to another server now. Its id may be used again. @assumption A17 */
export function serverIsGone(run: Run, { key, kind, parentId }: Intent): boolean {
  const { parent } = takeApart(key);
  if (parent === undefined || parentId === undefined || comesWithServer({ kind, parent })) return false;
  return serverIdOf(run, parent) !== parentId;
}

/** A refusal of the entry also holds for the next server, and a billed resource may outlive its server. */
function endsWithServer(run: Run, intent: Intent): boolean {
  if (intent.phase === 'superseded' || !serverIsGone(run, intent)) return false;
  return intent.phase !== 'blocked' || (intent.blocked.until !== 'file' && !isBilled(run, intent));
}

function endWithServer(run: Run, intent: Intent): Promise<Progress> {
  const reason = 'its server is gone';
  if (isBilled(run, intent) && intent.phase !== 'waiting')
    return block(run, intent, 'outcome_unknown', `${reason}, so reads cannot show the created resource`);
  return close(run, intent, { outcome: 'absent', text: reason });
}

function isBilled(run: Run, { kind }: Intent): boolean {
  return run.kindOf(kind).billing.billed === true;
}

function maybeUsedOf(intent: Intent): { readonly because?: 'key_maybe_used' } {
  return partsOf(intent).because === 'key_maybe_used' ? { because: 'key_maybe_used' } : {};
}
