import { partsOf } from '../../core/intent.ts';
import type { WriteResult } from '../../core/ports.ts';
import type { Intent, KeyQuestion } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { inWriteSlot, sendFenced } from './begin.ts';
import { again, block, close, goOn, keyIsFresh, type Progress, questionOf, sinceSentMs } from './endings.ts';
import { tryNextIncarnation } from './next-incarnation.ts';
import { answerText, codeOf } from './outcome.ts';
import { asked, isReservedElsewhere, type KeyAnswer, probeKey, spareKey } from './probe-key.ts';
import { mostWaitMs, record } from './record.ts';

const second = 1000;
const minute = 60 * second;
/** How long a process asks a key whose answers leave the question open, before it continues without this creation. */
const mostSilentMs = 30 * minute;

/**
 * Asks the key of a creation whose answer is missing, by a probe that cannot be carried out.
 *
 * | the probe is | then |
 * | --- | --- |
 * | refused, and the refusal is replayed | *fenced*: the key holds no other answer, and a late original is refused |
 * | refused as another request | *taken*: the original bytes are sent again, and their answer is replayed |
 * | refused three times for its body, by an API that stores refusals | *taken*: the API checks bodies before keys |
 * | 401, 402, 403, 409, 429, 5xx, lost | unknown: the probe is sent again later |
 *
 * An API that does not store refusals of bodies gets no probe. The key is *open*: reads decide, and then the original
 * bytes are sent again.
 *
 * The original may arrive late, as long as it arrives before the fence expires (@assumption A70). The refusal of a
 * probe does not replace a stored answer (@assumption A68).
 *
 * @source API §4 rule 3, §8.1 to §8.4
 */
export function askKey(run: Run, intent: Intent): Promise<Progress> | Progress {
  const settleMs = run.deps.requestTimeoutMs + 30 * second;
  const wait = Math.max(
    run.stopwatch.until(intent.id, 'due', intent.dueAt),
    // A request on its way has reserved its key, or its answer is stored, before the probe arrives. @assumption A67
    settleMs - sinceSentMs(run, intent),
  );
  if (wait > 0) return again(wait);
  return inWriteSlot(run, intent, () => askNow(run, intent));
}

async function askNow(run: Run, intent: Intent): Promise<Progress> {
  // A probe does not spend money.
  const paused = run.facts.pausedBy(intent.request, 'none');
  if (paused !== undefined) return { now: 'blocked', ...paused };
  run.gate.readyNext();
  const { held, asking } = await probeKey(run, intent);
  if (held.is !== 'untold') run.stopwatch.mark(intent.id, 'silent');
  switch (held.is) {
    case 'untold':
      return (await isOfProject(run, asking, held.result))
        ? refusedByProject(run, asking)
        : withoutAnswer(run, asking, held);
    case 'accepted':
      run.cache.forget(run.kindOf(asking.kind).writes.stale(asking.request));
      return record(run, asking, held.answer);
    case 'open':
    case 'fenced':
    case 'taken':
      if (held.is === 'open' && isRefusedForLong(run, asking)) return withoutProbe(run, asking);
      // The API may have forgotten the answer by now, so the refusal of the probe proves nothing. @source API §8
      if (!keyIsFresh(run, asking)) return decided(run, asking, 'open');
      return isConflict(held.is, asking) ? keyConflict(run, asking) : decided(run, asking, held.is);
  }
}

/**
 * Every send was refused with a 409 that may have been about the key, and an unused key gets the same
 * refusal: it is about the project, and the creation has had no effect.
 */
async function isOfProject(run: Run, intent: Intent, result: WriteResult): Promise<boolean> {
  const { stage, conflict } = questionOf(intent);
  const { why } = partsOf(intent).unconfirmed ?? {};
  const isFirst = why === 'conflict' && intent.lost === 0 && stage === 'asking' && conflict === undefined;
  const conflictOf = (each: WriteResult) =>
    each.type === 'answer' && each.status === 409 && !each.replayed ? codeOf(each) : undefined;
  const code = conflictOf(result);
  if (!isFirst || code === undefined) return false;
  const spare = await sendFenced(run, { ...intent.request, probe: 1 }, spareKey(run.deps.random.next));
  return conflictOf(spare) === code;
}

/** A later run sends the creation again under the same key, if it is still wanted. */
async function refusedByProject(run: Run, intent: Intent): Promise<Progress> {
  const { detail } = intent;
  const { lasting } = questionOf(intent);
  if (lasting === undefined) return close(run, intent, { outcome: 'refused', text: detail });
  await run.state.update(intent, { stage: { phase: 'waiting', because: 'key_maybe_used' } });
  return { now: 'blocked', code: lasting, reason: detail };
}

/** No probe can ask the key, and the original, sent again, was refused with a 409 until the deadline. */
function isRefusedForLong(run: Run, intent: Intent): boolean {
  const isRefused = partsOf(intent).unconfirmed?.why === 'conflict' && questionOf(intent).conflict === true;
  return isRefused && run.stopwatch.since(intent.id, 'begun', intent.createdAt) > mostWaitMs(run, intent);
}

/** A later run reads again, and sends the original again. */
async function withoutProbe(run: Run, intent: Intent): Promise<Progress> {
  const { conflict: _conflict, ...question } = questionOf(intent);
  await run.state.update(intent, { stage: asked(intent, { ...question, stage: 'open' }) });
  return { now: 'blocked', code: question.lasting ?? 'key_not_answered', reason: intent.detail };
}

/**
 * The key holds the answer to another request. Where no probe can confirm that, a 409 may be about the project, and the
 * refusal of the original as a reused key decides.
 */
function isConflict(held: 'open' | 'fenced' | 'taken', intent: Intent): boolean {
  const { why } = partsOf(intent).unconfirmed ?? {};
  return questionOf(intent).conflict === true && (held === 'taken' || (held === 'open' && why === 'reused'));
}

/** Records the answer of the key. The write is then settled like any other. */
export function decided(run: Run, intent: Intent, stage: KeyQuestion['stage']): Promise<Progress> {
  const question = { ...questionOf(intent), stage };
  return goOn(run, intent, { stage: asked(intent, question), dueAt: run.deps.clock.now() });
}

/** The key is asked again later. After a refusal for the token, the scope or the payment, a later run asks. */
async function withoutAnswer(
  run: Run,
  intent: Intent,
  { result, refusal }: Extract<KeyAnswer, { readonly is: 'untold' }>,
): Promise<Progress> {
  if (refusal !== undefined) return { now: 'blocked', ...refusal };
  return result.type === 'answer'
    ? later(run, intent, answerText(result), result.retryAfterMs)
    : later(run, intent, result.reason);
}

/** The key refuses both the original and the probe as another request, so another state used the key for another body. */
async function keyConflict(run: Run, intent: Intent): Promise<Progress> {
  const then = await tryNextIncarnation(run, intent);
  if ('now' in then) return then;
  const { isReserved, asking } = await isReservedElsewhere(run, then);
  const reason = isReserved
    ? `another state bound ${intent.recovers ?? intent.key} to a resource that was created under another key`
    : 'another state or file sent another request under the same idempotency key: that request may have created the resource';
  return block(run, asking, 'key_conflict', reason);
}

/** The key is asked again later, as a lost probe has no effect. After `mostSilentMs` the run ends without the creation. */
async function later(run: Run, intent: Intent, reason: string, retryAfterMs = 0): Promise<Progress> {
  const { clock, random, profile } = run.deps;
  const silentMs = run.stopwatch.since(intent.id, 'silent', clock.now());
  if (silentMs === 0) run.stopwatch.mark(intent.id, 'silent');
  const pause = Math.min(minute, 2 * second + silentMs) * (1 + random.next() / 10);
  const afterMs = Math.max(pause, retryAfterMs * profile.timeScale);
  const untilMs = clock.now() + afterMs;
  const progress = await goOn(run, intent, { dueAt: untilMs }, afterMs);
  if (silentMs >= mostSilentMs) return { now: 'blocked', code: 'key_not_answered', reason };
  run.report(intent, 'waiting', reason, { untilMs });
  return progress;
}

/** A later run sends the original again, and the API replays its answer. */
export async function replayLater(run: Run, intent: Intent): Promise<Progress> {
  await decided(run, intent, 'taken');
  const reason = `the API accepted the creation, and reads do not identify the resource: ${intent.detail}`;
  return { now: 'blocked', code: 'key_not_answered', reason };
}
