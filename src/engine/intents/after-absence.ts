import { partsOf } from '../../core/intent.ts';
import type { Intent, Unconfirmed, WhyUnknown } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { block, close, closeAndRetry, closeBlocked, goOn, type Progress } from './endings.ts';
import { gatewayMs } from './outcome.ts';
import { asksKey, doubtedKey, isServerError, keyIsFresh, unasked } from './question.ts';

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
  const unconfirmed = partsOf(intent).unconfirmed ?? doubtedKey;
  const { why } = unconfirmed;
  if (!keyIsFresh(run, intent)) {
    const reason = 'reads do not show the resource, and its idempotency key is too old to be sent again';
    return block(run, intent, 'key_too_old', reason);
  }
  if (asksKey(run, intent)) return createAgain(run, intent, unconfirmed);
  switch (why) {
    case 'lost':
    case 'unreadable':
    case 'conflict': {
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
      const rest = gatewayMs - run.stopwatch.since(intent.id, 'sent', intent.lastSentAt);
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
