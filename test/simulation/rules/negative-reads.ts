import { partsOf } from '../../../src/core/intent.ts';
import type { Intent } from '../../../src/core/state.ts';
import { type Running, stateOf } from '../../../src/simulation/controller.ts';
import { projectOf, type Truth } from '../../../src/simulation/rules/truth.ts';

const minute = 60_000;
const absenceGapMs = minute;
/** Times in the state are sums of large numbers: they are exact to less than this. */
const roundingMs = 1;
/** How long a creation that was carried out may take to show. @source API §3 rule 5 */
const hiddenMs: Readonly<Record<string, number>> = {
  network: 10 * minute,
  network_interface: 10 * minute,
  iso: 15 * minute,
  server: 30 * minute,
};

const writtenAsWhole: ReadonlySet<string> = new Set(['firewall', 'backup_policy', 'drive']);

/**
 * I6: an unconfirmed creation gets a new key only once its own key is fenced. A new key, and a resend that could be carried
 * out, both need two reads a minute apart that do not find the resource, once the resource would be visible.
 */
export class NegativeReads {
  readonly #truth: Truth;
  /** The first read that did not find the effect of an intent, by the content of the intent: a state put back may hold it too. */
  readonly #missed = new Map<string, number>();
  /** By state and intent. */
  readonly #lastSent = new Map<string, number>();

  constructor(truth: Truth) {
    this.#truth = truth;
  }

  began(running: Running, { id }: Intent): void {
    this.#lastSent.set(`${stateOf(running)} ${id}`, this.#truth.elapsed());
  }

  updated(running: Running, before: Intent, after: Intent): void {
    const now = this.#truth.elapsed();
    if (partsOf(after).notSeenAt !== undefined && partsOf(before).notSeenAt === undefined)
      this.#missed.set(lookOf(after), now);
    const concludes = before.phase === 'unknown' && after.phase === 'waiting';
    const isReplayed = partsOf(before).unconfirmed?.question.stage === 'taken';
    const isSent = after.phase === 'sending' && before.phase !== 'sending';
    // A write that waits was checked when it began to wait.
    if (isUnconfirmed(before) && !isReplayed && (concludes || (isSent && before.phase !== 'waiting')))
      this.#check(running, before, 'sent again');
    if (isSent) this.#lastSent.set(`${stateOf(running)} ${after.id}`, now);
  }

  closed(running: Running, before: Intent, intent: Intent): void {
    const { outcome } = partsOf(intent);
    const { unconfirmed } = partsOf(before);
    // A key that is only asked was never sent under by this state.
    const isGuessed =
      isUnconfirmed(before) && intent.sends > 0 && (outcome === 'absent' || outcome === 'void');
    const isFound = intent.recovers !== undefined && intent.detail.startsWith('found under');
    if (!isGuessed || isFound || running.byOperator || this.#isInsideGone(intent)) return;
    const isOpen = unconfirmed?.question.stage !== 'fenced' && !unconfirmed?.question.conflict;
    if (isOpen && running.controller.clockWasSet && !this.#truth.emulator.readings.dateHeader) {
      this.#truth.giveUp('a clock was set back, and an API without `Date` has forgotten the key');
      return;
    }
    if (isOpen) this.#truth.fail('I6', `${intent.key} was closed as ${outcome} with an open key`);
    // The key holds the answer to another request, so no send of this write was carried out.
    if (unconfirmed?.question.conflict) return;
    this.#check(running, before, `closed as ${outcome}`);
  }

  /** Its path names a server that exists no more, so no send can have an effect. An interface ends with its server. */
  #isInsideGone({ kind, parentId }: Intent): boolean {
    const { servers } = projectOf(this.#truth);
    return kind === 'network_interface' && servers.every(({ id }) => String(id) !== parentId);
  }

  /** No read shows a server without an address, where the profile lists none, nor an image. */
  #isNeverShown({ kind, request }: Intent): boolean {
    if (kind === 'server_image') return true;
    const { public_ipv4: address } = (request.body ?? {}) as { readonly public_ipv4?: unknown };
    return kind === 'server' && address === undefined && !this.#truth.serversAreListed;
  }

  #check(running: Running, intent: Intent, what: string): void {
    const { fail, elapsed } = this.#truth;
    const { id, key, kind } = intent;
    if (this.#isNeverShown(intent)) return;
    const first = this.#missed.get(lookOf(intent));
    if (first === undefined) {
      fail('I6', `${key} was ${what} without a read`);
      return;
    }
    const sent = this.#lastSent.get(`${stateOf(running)} ${id}`) ?? 0;
    if (first + roundingMs < sent + Math.max(minute, hiddenMs[kind] ?? 0))
      fail('I6', `${key} was ${what}, and read too soon`);
    if (elapsed() - first < absenceGapMs) fail('I6', `${key} was ${what} after one read`);
  }
}

/** A PUT that writes the whole resource gets a new key each time, so it is never unconfirmed. */
function isUnconfirmed(intent: Intent): boolean {
  const { verb, kind } = intent;
  return partsOf(intent).unconfirmed !== undefined && verb === 'create' && !writtenAsWhole.has(kind);
}

function lookOf(intent: Intent): string {
  return `${intent.id} ${partsOf(intent).notSeenAt}`;
}
