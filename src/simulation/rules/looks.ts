import type { Intent } from '../../core/state.ts';
import { type Running, stateOf } from '../controller.ts';
import type { Witness } from './witness.ts';

const minute = 60_000;
const absenceGapMs = minute;

/** I6: a creation in doubt gets no new key and no resend without two looks a minute apart, after its last send had its time. */
export class Looks {
  readonly #witness: Witness;
  /** When a look first missed the effect of an intent: by what the intent says of it, which may be read in a state put back. */
  readonly #missed = new Map<string, number>();
  /** By state and intent. */
  readonly #lastSent = new Map<string, number>();

  constructor(witness: Witness) {
    this.#witness = witness;
  }

  began(running: Running, { id }: Intent): void {
    this.#lastSent.set(`${stateOf(running)} ${id}`, this.#witness.elapsed());
  }

  updated(running: Running, before: Intent, after: Intent): void {
    const now = this.#witness.elapsed();
    if (after.notSeenAt !== undefined && before.notSeenAt === undefined) this.#missed.set(lookOf(after), now);
    const concludes = before.phase === 'unknown' && after.phase === 'waiting';
    if (isInDoubt(before) && (concludes || after.phase === 'sending'))
      this.#check(running, before, 'sent again');
    if (after.phase === 'sending') this.#lastSent.set(`${stateOf(running)} ${after.id}`, now);
  }

  closed(running: Running, intent: Intent): void {
    const { outcome } = intent;
    const isGuessed = isInDoubt(intent) && (outcome === 'absent' || outcome === 'void');
    if (isGuessed && !running.byPerson) this.#check(running, intent, `closed as ${outcome}`);
  }

  #check(running: Running, intent: Intent, what: string): void {
    const { fail, elapsed } = this.#witness;
    const { id, key } = intent;
    const first = this.#missed.get(lookOf(intent));
    if (first === undefined) {
      fail('I6', `${key} was ${what} without a look`);
      return;
    }
    const sent = this.#lastSent.get(`${stateOf(running)} ${id}`) ?? 0;
    if (first < sent + minute) fail('I6', `${key} was ${what}, and looked for too soon`);
    if (elapsed() - first < absenceGapMs) fail('I6', `${key} was ${what} after one look`);
  }
}

function isInDoubt({ ambiguous, verb }: Intent): boolean {
  return ambiguous && verb === 'create';
}

function lookOf({ id, notSeenAt }: Intent): string {
  return `${id} ${notSeenAt}`;
}
