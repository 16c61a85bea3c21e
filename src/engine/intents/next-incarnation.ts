import { digestOf } from '../../core/json.ts';
import { type Operation, operationId } from '../../core/plan.ts';
import type { WriteRequest, WriteResult } from '../../core/ports.ts';
import type { Intent, KeyQuestion } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { beginIntent } from './begin.ts';
import type { KeyBehaviour } from './calibrate.ts';
import { close, type Progress } from './endings.ts';
import { probeAnswer } from './outcome.ts';
import { isServerError } from './question.ts';

/** Refusals of a probe's body before the key counts as held by another answer. */
const mostProbes = 3;

export type Send = (request: WriteRequest, key: string) => Promise<WriteResult>;

/**
 * The key of a creation holds the answer to another body: an earlier state may have replaced the resource since, with
 * the body of this creation. An incarnation begins only when the one before it is gone, so a used key of the next
 * incarnation shows that. Returns the creation that is begun anew under that key, or the intent that takes the place of
 * this one.
 *
 * @source API §8.1
 */
export async function tryNextIncarnation(
  run: Run,
  intent: Intent,
  behaviour: KeyBehaviour,
  send: Send,
): Promise<Progress | Intent> {
  const { key, kind, changes, request, preimage } = intent;
  const desired = run.world.subjects.get(key)?.desired;
  // The creation of an entry that was edited since is not begun anew. A server error may have had its effect.
  const isEdited = desired === undefined || digestOf(desired.value ?? null) !== intent.basis;
  if (isEdited || isServerError(intent.why)) return intent;
  const operation: Operation = {
    id: operationId('create', key),
    ...{ key, kind, verb: 'create', changes, needs: [], spend: 'adds', risk: 'billed' },
  };
  const begun = { world: run.world, preimage };
  const question = { stage: 'asking', probes: 0, undecided: 0 } as const;
  // The key was used before the first send of this creation, so that no send of it was carried out.
  await close(
    run,
    await run.update(intent, { ambiguous: false }),
    'void',
    'its key holds the answer to another request',
  );
  const next = await beginIntent(run, operation, request, { ...begun, question, ahead: 1 });
  const held = await heldUnder(run, next, behaviour, send);
  if (held === 'taken')
    return close(run, next, 'void', 'an earlier state used the key of this incarnation', {
      changes: [{ type: 'next_incarnation', key }],
      retryAfterMs: 0,
    });
  if (held === 'fenced') await close(run, next, 'absent', 'no earlier state used its key');
  else await close(run, next, 'void', 'its key does not tell');
  const same = await beginIntent(run, operation, request, {
    ...begun,
    question: { ...question, stage: 'taken', conflict: true },
  });
  // The record takes the place of the former one, which was sent then.
  const { sends, lastSentAt, why } = intent;
  return run.update(same, { sends, lastSentAt, ...(why === undefined ? {} : { why }) });
}

/** Probes the key. Each probe is counted before it is sent. */
async function heldUnder(
  run: Run,
  intent: Intent,
  behaviour: KeyBehaviour,
  send: Send,
): Promise<'fenced' | 'taken' | 'unknown'> {
  let question: KeyQuestion = { stage: 'asking', probes: 0, undecided: 0 };
  while (question.probes < mostProbes) {
    question = { ...question, probes: question.probes + 1 };
    await run.update(intent, { question });
    const result = await send({ ...intent.request, probe: 1 }, intent.idempotencyKey);
    if (result.type !== 'answer') return 'unknown';
    if (result.status < 300) return result.replayed ? 'taken' : 'unknown';
    const answer = probeAnswer(result, behaviour.reuse);
    if (answer === 'fenced' || answer === 'taken') return answer;
    if (answer === 'nothing') return 'unknown';
  }
  return 'taken';
}
