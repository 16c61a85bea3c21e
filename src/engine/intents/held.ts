import type { Conclusive } from '../../core/ports.ts';
import type { Intent } from '../../core/state.ts';
import { incarnationsBeyond } from '../claims/scope.ts';
import type { Run } from '../run.ts';
import { inWriteSlot, sendFenced } from './begin.ts';
import { questionOf, sentNow } from './endings.ts';
import { probeAnswer, type ReuseRefusal } from './outcome.ts';
import { asked, probeKey } from './probe-key.ts';
import { spendOf } from './record.ts';

/** The most turns in which a key without an answer is asked. A later run asks again. */
const mostTurns = 3;

/** The content of a key. */
export type Held =
  /** The key holds no answer, and is fenced now. */
  | 'unused'
  /** An earlier state fenced the key, and continued with the next attempt. */
  | 'fenced'
  /** The key holds the refusal of these bytes. */
  | 'refused'
  /** The API gave no conclusive answer. */
  | 'unknown'
  /** The API does not store refusals of the operation, so no probe was sent. */
  | 'unaskable'
  /** These bytes were sent and not replayed. The write is settled like any other. */
  | 'open'
  | { readonly answer: Conclusive };

/** A probe that was not sent, or not answered, is sent again. */
export async function answerAtLast(run: Run, intent: Intent): Promise<Held> {
  for (let turn = 1; ; turn++) {
    const held = await inWriteSlot(run, intent, () =>
      answerUnder(run, run.intents.get(intent.key) ?? intent),
    );
    if (held !== 'unknown' || turn === mostTurns || run.facts.pausedBy(intent.request, 'none') !== undefined)
      return held;
  }
}

/** Probes the key. If the key is taken, sends the original bytes again, and the API replays their answer. */
export async function answerUnder(run: Run, intent: Intent): Promise<Held> {
  const first = await probeKey(run, intent);
  // A single refusal may have another cause. The original under a later key would be a purchase that leaves out this one.
  const isDoubted = first.held.is === 'taken' && (await incarnationsBeyond(run, intent)) > 0;
  const { held, asking } = isDoubted ? await probeKey(run, first.asking) : first;
  switch (held.is) {
    case 'accepted':
      return { answer: held.answer };
    case 'fenced':
      return held.earlier ? 'fenced' : 'unused';
    case 'open':
      return 'unaskable';
    case 'untold':
      return 'unknown';
    case 'taken':
      return run.facts.pausedBy(asking.request, spendOf(run, asking)) === undefined
        ? replayed(run, asking, held.reuse)
        : 'unknown';
  }
}

/**
 * The key holds an answer to another request than the probe. The API therefore replays or refuses these bytes, and
 * never applies them.
 */
async function replayed(run: Run, intent: Intent, reuse: ReuseRefusal | undefined): Promise<Held> {
  const question = { ...questionOf(intent), stage: 'taken' } as const;
  const unconfirmed = { why: 'lost', question } as const;
  await run.state.update(intent, { stage: asked(intent, question) });
  await run.state.update(intent, { stage: { phase: 'sending', unconfirmed }, sends: 1, ...sentNow(run) });
  const result = await sendFenced(run, intent.request, intent.idempotencyKey);
  if (result.type === 'unsent') {
    await run.state.update(intent, { stage: { phase: 'unknown', unconfirmed }, sends: 0 });
    return 'unknown';
  }
  if (result.type !== 'answer' || (result.status >= 300 && !result.replayed)) {
    const isConflict = result.type === 'answer' && probeAnswer(result, reuse) === 'taken';
    const known = isConflict
      ? ({ why: 'conflict', question: { ...question, conflict: true } } as const)
      : unconfirmed;
    const dueAt = run.deps.clock.now();
    await run.state.update(intent, {
      stage: { phase: 'unknown', unconfirmed: known },
      lost: isConflict ? 0 : 1,
      dueAt,
    });
    return 'open';
  }
  await run.state.update(intent, { stage: { phase: 'sending' } });
  return result.status < 300 ? { answer: result } : 'refused';
}
