import type { Intent } from '../../core/state.ts';
import { noCapacity } from './outcome.ts';

/*
 * The detail of a closed intent is kept as text, for whoever reads the history. Where later
 * attempts go by it, what writes it and what reads it stand here together.
 */

const beforeThat = '; before that: ';
const replayedAnswer = 'a replayed answer';
/** An operator takes it as absent. */
export const saidAbsent = 'an operator said that it is absent';

type Closed = Pick<Intent, 'outcome' | 'detail'>;

/** Why a write is asked for no more; what the API said of it last stays in the history. */
export function after(why: string, { blocked, detail }: Intent): string {
  const said = blocked?.reason ?? detail ?? '';
  return said === '' ? why : `${why}${beforeThat}${said}`;
}

/** Of a refusal that was given before, to an earlier send of its key. */
export function replayed(reason: string): string {
  return `${replayedAnswer}: ${reason}`;
}

export function wasReplayed({ detail = '' }: Closed): boolean {
  return detail.startsWith(replayedAnswer);
}

/** Also where the key grew too old for it; not where it had ended by its being asked for no more. */
export function wantedCapacity({ outcome, detail = '' }: Closed): boolean {
  return outcome === 'refused' && detail.includes(noCapacity) && !detail.includes(beforeThat);
}
