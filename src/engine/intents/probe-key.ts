import { partsOf } from '../../core/intent.ts';
import { member } from '../../core/json.ts';
import type { Conclusive, WriteResult } from '../../core/ports.ts';
import type { Intent, KeyQuestion, Stage } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { sendFenced } from './begin.ts';
import { questionOf } from './endings.ts';
import { answerText, namesProbe, pauses, probeAnswer, type ReuseRefusal, reuseRefusal } from './outcome.ts';
import { pauseClass } from './pauses.ts';

/** Refusals of the probe's body that are not replayed, before the key counts as held by another answer. */
const mostFresh = 3;

/**
 * The number of the probe that reserves a key. A state that asks the key sends the other probe, which the API refuses as
 * another request.
 */
export const reserving = 2;

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
  /**
   * Nothing: the result is about the connection, the token, the budget or the state of the project. `refusal`: it pauses
   * a class of writes.
   */
  | { readonly is: 'untold'; readonly result: WriteResult; readonly refusal: Refusal | undefined };

interface Refusal {
  readonly code: string;
  readonly reason: string;
}

/**
 * Probes the key of a creation until an answer is conclusive, each probe recorded before it is sent. Returns the intent
 * with that record. Part of a turn to write.
 *
 * @param number of the probe's body: each state that asks about a key sends the first one
 * @source API §4 rule 3, §8.1 to §8.4
 */
export async function probeKey(
  run: Run,
  intent: Intent,
  number: 1 | 2 = 1,
): Promise<{ readonly held: KeyAnswer; readonly asking: Intent }> {
  const behaviour = await calibrated(run, intent);
  const untold = async (result: WriteResult) =>
    ({ is: 'untold', result, refusal: await pauseIfRefused(run, intent, result) }) as const;
  if ('type' in behaviour) return { held: await untold(behaviour), asking: intent };
  if (!behaviour.storesRefusals) return { held: { is: 'open' }, asking: intent };
  let asking = intent;
  for (let probe = 1; probe <= mostFresh; probe++) {
    const question = { ...questionOf(asking), probes: questionOf(asking).probes + 1 };
    asking = await run.state.update(asking, { stage: asked(asking, question) });
    run.report(intent, 'checking', `the idempotency key: probe ${question.probes}`);
    const result = await sendFenced(run, { ...intent.request, probe: number }, intent.idempotencyKey);
    if (result.type !== 'answer') return { held: await untold(result), asking };
    if (result.status < 300) return { held: { is: 'accepted', answer: result }, asking };
    const shows = probeAnswer(result, behaviour.reuse);
    if (shows === 'fenced') return { held: { is: 'fenced', earlier: probe === 1 }, asking };
    if (shows === 'nothing') return { held: await untold(result), asking };
    if (shows === 'taken') break;
  }
  // The API stores refusals of bodies. If it stored none of these refusals, it checks bodies first, and the key holds
  // another answer.
  return { held: { is: 'taken', reuse: behaviour.reuse }, asking };
}

/** Whether another state has reserved the key. `asking`: the intent with the record of the probe. */
export async function isReservedElsewhere(
  run: Run,
  intent: Intent,
): Promise<{ readonly isReserved: boolean; readonly asking: Intent }> {
  const { held, asking } = await probeKey(run, intent, reserving);
  return { isReserved: held.is === 'fenced' && held.earlier, asking };
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
): Promise<Refusal | undefined> {
  const scope = result.type === 'answer' ? pauses[result.status] : undefined;
  if (result.type !== 'answer' || scope === undefined) return undefined;
  const refusal = { code: result.code ?? `http_${result.status}`, reason: answerText(result) };
  await pauseClass(run, intent, scope, refusal);
  return refusal;
}

/** How the API treats the keys of one operation, as refused requests have shown. */
export interface KeyBehaviour {
  /** The refusal of a body is stored under its key, and replayed: a probe can fence a key. */
  readonly storesRefusals: boolean;
  /** How the API refuses a key that another request has used; unknown if the API checks bodies before keys. */
  readonly reuse?: ReuseRefusal;
  /** The first answer that differs from the answers of an API that stores refusals. */
  readonly deviation?: 'unnamed' | 'not_replayed' | 'not_refused' | 'replaced';
}

/** The note of the state that holds the behaviour of each operation. */
const noteName = 'key_behaviour';

/**
 * Returns the behaviour of the operation's keys. The first call asks the API, with a spare key and only with invalid
 * bodies: the refusal names the probe's field (@assumption A69), the refusal is replayed, another body is refused as
 * another request, the first refusal is still replayed. Two deviations turn fences off for the operation. If an
 * answer is inconclusive, the function returns this answer, and the calibration starts again later.
 */
export async function calibrated(run: Run, intent: Intent): Promise<KeyBehaviour | WriteResult> {
  const { store, random } = run.deps;
  const { request } = intent;
  const { name } = request;
  const known = behavioursIn(await store.note(noteName));
  if (known[name] !== undefined) return known[name];
  const ask: Ask = (key, probe) => sendFenced(run, { ...request, probe }, key);
  const behaviour = await observeKeys(random.next, ask);
  if (!('type' in behaviour)) await store.putNote(noteName, { ...known, [name]: behaviour });
  return behaviour;
}

/** Whether earlier requests have shown that the keys of the operation cannot be asked. */
export async function isUnaskable({ deps }: Run, { request }: Pick<Intent, 'request'>): Promise<boolean> {
  return behavioursIn(await deps.store.note(noteName))[request.name]?.storesRefusals === false;
}

/** The behaviours in the note, by operation. An operation whose behaviour cannot be read is calibrated again. */
function behavioursIn(note: unknown): Readonly<Record<string, KeyBehaviour>> {
  if (typeof note !== 'object' || note === null) return {};
  const entries = Object.entries(note).filter((entry): entry is [string, KeyBehaviour] =>
    isBehaviour(entry[1]),
  );
  return Object.fromEntries(entries);
}

function isBehaviour(value: unknown): value is KeyBehaviour {
  const reuse = member(value, 'reuse');
  const isRefusal = typeof member(reuse, 'status') === 'number' && typeof member(reuse, 'code') === 'string';
  return typeof member(value, 'storesRefusals') === 'boolean' && (reuse === undefined || isRefusal);
}

/** Sends a probe under a spare key. */
type Ask = (key: string, probe: 1 | 2) => Promise<WriteResult>;

/** Observes the treatment of keys under a spare key, and again under another one if the first shows a deviation. */
export async function observeKeys(next: () => number, ask: Ask): Promise<KeyBehaviour | WriteResult> {
  let accepted = false;
  const observe = () => {
    const key = spareKey(next);
    return observeOnce(async (probe) => {
      const result = await ask(key, probe);
      accepted ||= result.type === 'answer' && result.status < 300;
      return result;
    });
  };
  const once = await observe();
  // One deviation may be a passing fault. Two deviations show how this API behaves.
  return accepted || 'type' in once || once.storesRefusals ? once : observe();
}

/** A key that no creation uses. */
export function spareKey(next: () => number): string {
  return `vdcsync-spare-${Array.from({ length: 32 }, () => Math.floor(next() * 16).toString(16)).join('')}`;
}

type Answered = WriteResult & { readonly type: 'answer' };

/** The four requests, and the answers of an API that stores refusals. */
const steps = [
  { probe: 1, deviation: 'unnamed', fits: (each: Answered) => namesProbe(each) && !each.replayed },
  { probe: 1, deviation: 'not_replayed', fits: (each: Answered) => each.replayed },
  { probe: 2, deviation: 'not_refused', fits: (each: Answered) => !each.replayed && each.status >= 300 },
  { probe: 1, deviation: 'replaced', fits: (each: Answered) => each.replayed },
] as const;

/**
 * Shows by four refused requests under one spare key how the API treats the keys of an operation. If an answer is
 * inconclusive, the function returns this answer.
 */
async function observeOnce(ask: (probe: 1 | 2) => Promise<WriteResult>): Promise<KeyBehaviour | WriteResult> {
  let reuse: Pick<KeyBehaviour, 'reuse'> = {};
  for (const [at, { probe, deviation, fits }] of steps.entries()) {
    const answer = await ask(probe);
    if (!isTelling(answer, at > 0)) return answer;
    if (!fits(answer)) return { storesRefusals: false, deviation };
    if (probe === 2 && !namesProbe(answer)) reuse = { reuse: reuseRefusal(answer) };
  }
  return { storesRefusals: true, ...reuse };
}

/** The answer is complete and about the request itself, not about the token, the budget or the state of the project. */
function isTelling(result: WriteResult, isUsedKey: boolean): result is Answered {
  if (result.type !== 'answer') return false;
  const { status, replayed, retryAfterMs } = result;
  // Under an unused key, a conflict is about the project.
  if (status === 409 && !isUsedKey) return false;
  const conflict = status === 409 && retryAfterMs === undefined;
  return status < 300 || replayed || status === 400 || status === 422 || conflict;
}
