import type { Intent, KeyQuestion, Why } from '../../core/state.ts';
import type { Run } from '../run.ts';

/** Only the key of a creation is asked. Reads settle an update, and a firewall has a new key for each write. */
export function asksKey(run: Run, { verb, kind }: Pick<Intent, 'verb' | 'kind'>): boolean {
  return verb === 'create' && run.kindOf(kind).freshKeys !== true;
}

/** A server error may have had its effect, and the API does not store it under the key. @source API §8.3 */
export function isServerError(why: Why | undefined): boolean {
  return why === 'server_error' || why === 'gateway_error';
}

/** The question of a key that no probe has asked yet. */
export const unasked: KeyQuestion = { stage: 'asking', probes: 0 };

export function questionOf({ question }: Intent): KeyQuestion {
  return question ?? unasked;
}
