import type { Intent, KeyQuestion, Why } from '../../core/state.ts';
import type { Run } from '../run.ts';

/** A creation under a key that is used once: an update is settled by reads, and a firewall has a new key each time. */
export function asksKey(run: Run, { verb, kind }: Pick<Intent, 'verb' | 'kind'>): boolean {
  return verb === 'create' && run.kindOf(kind).freshKeys !== true;
}

/** It may have had its effect, and no key keeps that. @source API §8.3 */
export function isServerError(why: Why | undefined): boolean {
  return why === 'server_error' || why === 'gateway_error';
}

export function questionOf({ question }: Intent): KeyQuestion {
  return question ?? { stage: 'asking', probes: 0, undecided: 0 };
}
