import { partsOf } from '../../core/intent.ts';
import type { Intent, KeyQuestion, Unconfirmed, WhyUnknown } from '../../core/state.ts';
import type { Run } from '../run.ts';

/** A key of this age is not sent again: the API forgets it after 24 h. @source API §8 @assumption A3 */
const keyLifeMs = 23 * 3_600_000;

/** Whether the key is young enough to be sent again. The local clock may have been set back. */
export function keyIsFresh(run: Run, { firstSentAt, firstSentApiAt }: Intent): boolean {
  const age = run.deps.clock.now() - firstSentAt;
  const apiAge = run.cache.since(0).apiNow() - firstSentApiAt;
  return age >= 0 && Math.max(age, apiAge) < keyLifeMs;
}

/** The answer to a send that this state never made. */
export function isReplay(intent: Intent): boolean {
  return partsOf(intent).answer?.to === 'unknown_send';
}

/** Only the key of a creation is asked. Reads settle an update, and a firewall has a new key for each write. */
export function asksKey(run: Run, { verb, kind }: Pick<Intent, 'verb' | 'kind'>): boolean {
  return verb === 'create' && run.kindOf(kind).setting !== true;
}

/** A server error may have had its effect, and the API does not store it under the key. @source API §8.3 */
export function isServerError(why: WhyUnknown | undefined): boolean {
  return why === 'server_error' || why === 'gateway_error';
}

/** For a message: why the effect of the write is unknown. */
export function unconfirmedText(why: WhyUnknown): string {
  return whyTexts[why];
}

const whyTexts: Readonly<Record<WhyUnknown, string>> = {
  lost: 'the answer was lost',
  conflict: 'the API refused the write, which another request may have carried out',
  unreadable: 'the answer was not readable',
  refused: 'the API refused a repetition of the write, and the first answer was lost',
  server_error: 'the API answered with a server error, which may have had an effect',
  gateway_error: 'a gateway answered with an error, and the API may have carried the write out',
  not_found: 'the API did not find the resource',
};

/** The question of a key that no probe has asked yet. */
export const unasked: KeyQuestion = { stage: 'asking', probes: 0 };

/** Another request may have used the key. @assumption A4 */
export const doubtedKey: Unconfirmed = { why: 'conflict', question: unasked };

export function questionOf(intent: Intent): KeyQuestion {
  return partsOf(intent).unconfirmed?.question ?? unasked;
}

/** The key of the intent, and not a read, settles the intent next. */
export function isSettledByKey(run: Run, intent: Intent): boolean {
  const { stage } = questionOf(intent);
  return keyIsFresh(run, intent) && (stage === 'asking' || stage === 'taken');
}
