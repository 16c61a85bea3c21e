import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { after, block, close, goOn, type Progress } from './endings.ts';
import { asksKey, questionOf } from './question.ts';

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
  if (intent.doubted === true && asksKey(run, intent)) {
    const question = questionOf(intent);
    const patch = {
      phase: 'unknown',
      ambiguous: true,
      why: 'conflict',
      question,
      because: 'not_wanted',
      detail,
    } as const;
    return goOn(run, intent, { ...patch, clear: ['doubted'] });
  }
  const unconfirmed = whyUnconfirmed(run, intent);
  if (unconfirmed !== undefined)
    return block(run, intent, 'outcome_unknown', `${detail}, but ${unconfirmed}`);
  return close(
    run,
    intent,
    { outcome: intent.ambiguous ? 'absent' : 'refused', because: 'not_wanted', text: after(detail, intent) },
    options,
  );
}

/** Another send under the same key would find a purchase that a short list hides. @assumption A8 */
function whyUnconfirmed(run: Run, intent: Intent): string | undefined {
  if (intent.why === 'unreadable' && intent.verb === 'create') return 'it was accepted once';
  const mayBeThere = intent.ambiguous && intent.verb === 'create' && run.kindOf(intent.kind).billed !== false;
  return mayBeThere ? 'its answer was lost, and a list that ends early would not show it' : undefined;
}
