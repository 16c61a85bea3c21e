import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { after } from './closing-words.ts';
import { block, close, type Progress } from './endings.ts';
import { doubtedKey } from './outcome.ts';

/** Its key may have been used before, for another body, by a state that this one does not know. @assumption A4 */
export function mayHaveBought(run: Run, { doubted, verb, kind }: Intent): boolean {
  return doubted === true && verb === 'create' && run.kindOf(kind).billed !== false;
}

/** Ends what has had no effect so far and is not to be sent again: a person is asked where it may have bought something. */
export function giveUp(
  run: Run,
  intent: Intent,
  detail: string,
  options: { readonly retryAfterMs?: number } = {},
): Promise<Progress> {
  const doubt = doubtOf(run, intent);
  if (doubt !== undefined) return block(run, intent, 'outcome_unknown', `${detail}, but ${doubt}`);
  return close(run, intent, intent.ambiguous ? 'absent' : 'refused', after(detail, intent), options);
}

/** Sent again under its key a purchase would be found, even where no list shows it. @assumption A8 */
function doubtOf(run: Run, intent: Intent): string | undefined {
  if (intent.why === 'unreadable') return 'it was accepted once';
  if (mayHaveBought(run, intent)) return `${intent.detail}; ${doubtedKey}`;
  const mayBeThere = intent.ambiguous && intent.verb === 'create' && run.kindOf(intent.kind).billed !== false;
  return mayBeThere ? 'its answer was lost, and a list that ends early would not show it' : undefined;
}
