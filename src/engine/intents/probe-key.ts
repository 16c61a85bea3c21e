import { partsOf } from '../../core/intent.ts';
import type { Conclusive, WriteResult } from '../../core/ports.ts';
import type { Intent, KeyQuestion, Stage } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { calibrated } from './calibrate.ts';
import { pauses, probeAnswer, type ReuseRefusal, told } from './outcome.ts';
import { pauseClass } from './pauses.ts';
import { questionOf } from './question.ts';
import { sendFenced } from './write-slot.ts';

/** Refusals of the probe's body that are not replayed, before the key counts as held by another answer. */
const mostFresh = 3;

/** The information of the probes of one turn about a key. */
export type KeyAnswer =
  /** The refusal of the probe: no other answer is stored. `earlier`: an earlier turn or state has sent that probe. */
  | { readonly is: 'fenced'; readonly earlier: boolean }
  /** The answer to another request. `reuse`: how this API refuses a key that another request has used. */
  | { readonly is: 'taken'; readonly reuse?: ReuseRefusal | undefined }
  /** The API accepted the probe, or replayed an acceptance to it. */
  | { readonly is: 'accepted'; readonly answer: Conclusive }
  /** The API does not store refusals, so no probe is sent. */
  | { readonly is: 'open' }
  /** Nothing: the result is about the connection, the token, the budget or the state of the project. */
  | { readonly is: 'untold'; readonly result: WriteResult };

/**
 * Probes the key of a creation until an answer is conclusive, each probe recorded before it is sent. Returns the intent
 * with that record. Part of a turn to write.
 *
 * @source API §4 rule 3, §8.1 to §8.4
 */
export async function probeKey(
  run: Run,
  intent: Intent,
): Promise<{ readonly held: KeyAnswer; readonly asking: Intent }> {
  const behaviour = await calibrated(run, intent);
  if ('type' in behaviour) return { held: { is: 'untold', result: behaviour }, asking: intent };
  if (!behaviour.storesRefusals) return { held: { is: 'open' }, asking: intent };
  let asking = intent;
  for (let probe = 1; probe <= mostFresh; probe++) {
    const question = { ...questionOf(asking), probes: questionOf(asking).probes + 1 };
    asking = await run.state.update(asking, { stage: asked(asking, question) });
    run.tell(intent, 'checking', `the idempotency key: probe ${question.probes}`);
    const result = await sendFenced(run, { ...intent.request, probe: 1 }, intent.idempotencyKey);
    if (result.type !== 'answer') return { held: { is: 'untold', result }, asking };
    if (result.status < 300) return { held: { is: 'accepted', answer: result }, asking };
    const shows = probeAnswer(result, behaviour.reuse);
    if (shows === 'fenced') return { held: { is: 'fenced', earlier: probe === 1 }, asking };
    if (shows === 'nothing') return { held: { is: 'untold', result }, asking };
    if (shows === 'taken') break;
  }
  // The API stores refusals of bodies. If it stored none of these refusals, it checks bodies first, and the key holds
  // another answer.
  return { held: { is: 'taken', reuse: behaviour.reuse }, asking };
}

/** The stage of the intent with another question to its key. */
export function asked(
  intent: Intent,
  question: KeyQuestion,
): Stage & { readonly phase: 'unknown' | 'blocked' } {
  const unconfirmed = { why: 'lost', ...partsOf(intent).unconfirmed, question } as const;
  if (intent.phase !== 'blocked') return { phase: 'unknown', unconfirmed };
  return { phase: 'blocked', blocked: intent.blocked, unconfirmed };
}

/**
 * Pauses the class of writes if the refusal is about the token, the scope or the payment. Returns the refusal in that
 * case.
 */
export async function pauseIfRefused(
  run: Run,
  intent: Pick<Intent, 'kind' | 'verb' | 'request'>,
  result: WriteResult,
): Promise<{ readonly code: string; readonly reason: string } | undefined> {
  const scope = result.type === 'answer' ? pauses[result.status] : undefined;
  if (result.type !== 'answer' || scope === undefined) return undefined;
  const refusal = { code: result.code ?? `http_${result.status}`, reason: told(result) };
  await pauseClass(run, intent, scope, refusal);
  return refusal;
}
