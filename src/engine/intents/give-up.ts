import { partsOf } from '../../core/intent.ts';
import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { after, block, close, goOn, type Progress } from './endings.ts';
import { asksKey, doubtedKey, unconfirmedText } from './question.ts';

/**
 * Ends a write that has had no effect so far and is not wanted any more. If another request may have used the key of
 * a creation, the key is asked first. @assumption A4
 */
export function giveUp(
  run: Run,
  intent: Intent,
  detail: string,
  options: { readonly retryAfterMs?: number } = {},
): Promise<Progress> {
  if (partsOf(intent).because === 'key_doubted' && asksKey(run, intent))
    return goOn(run, intent, { stage: { phase: 'unknown', unconfirmed: doubtedKey }, detail });
  const unconfirmed = whyUnconfirmed(run, intent);
  if (unconfirmed !== undefined)
    return block(run, intent, 'outcome_unknown', `${detail}, but ${unconfirmed}`);
  const outcome = partsOf(intent).unconfirmed === undefined ? 'refused' : 'absent';
  return close(run, intent, { outcome, text: after(detail, intent) }, options);
}

/** Another send under the same key would find a purchase that a short list hides. @assumption A8 */
function whyUnconfirmed(run: Run, intent: Intent): string | undefined {
  const { unconfirmed } = partsOf(intent);
  if (unconfirmed === undefined || intent.verb !== 'create') return undefined;
  return run.kindOf(intent.kind).billing.billed !== false
    ? `${unconfirmedText(unconfirmed.why)}, and an incomplete list would not show the resource`
    : undefined;
}
