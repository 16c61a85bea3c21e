import { partsOf } from '../../../src/core/intent.ts';
import type { Intent, StateChange } from '../../../src/core/state.ts';
import type { HttpRequest } from '../../../src/core/transport.ts';
import { type Controller, type Running, stateOf } from '../../../src/simulation/controller.ts';
import { isProbe } from '../../../src/simulation/exchanges.ts';
import { keyOf, projectOf, type Truth } from '../../../src/simulation/rules/truth.ts';
import { pathOf } from './requests.ts';

const hour = 3_600_000;
/** A key is not sent again from this age on. @source API §8 */
const keyLifeMs = 23 * hour;

/**
 * I4, I5, I6: every write has a durable intent and a proper key. A key has one method, path and body, except for its
 * probe. No key is sent after its lifetime. All by state and key.
 */
export class Keys {
  readonly #truth: Truth;
  readonly #sentAs = new Map<string, string>();
  readonly #firstSent = new Map<string, number>();
  /** A server error that the process has not acted on yet: it may die before it reads the answer. */
  readonly #unread = new Map<Running, string>();
  readonly #failed = new Set<string>();
  /** Keys of proofs that a journal has. */
  readonly #proofs = new Set<string>();

  constructor(truth: Truth) {
    this.#truth = truth;
  }

  /** The intent that the write was sent for. */
  arrives(running: Running, request: HttpRequest): Intent | undefined {
    const { fail } = this.#truth;
    const key = keyOf(request);
    if (!/^[\x20-\x7e]{8,255}$/.test(key)) fail('I4', `a write with the key "${key}"`);
    const intent = [...running.mirror.open.values()].find((each) => each.idempotencyKey === key);
    if (isProbe(request)) {
      this.#checkProbe(running, request, intent);
      return undefined;
    }
    if (intent === undefined || intent.phase !== 'sending') {
      fail('I5', `${request.method} ${pathOf(request)} was sent without a durable intent`);
      return undefined;
    }
    const scope = scopeOf(running, key);
    this.#checkForm(scope, request, intent);
    this.#checkTurn(intent);
    this.#checkAge(running, scope, intent);
    // Only the key of a creation is asked, and its original bytes are sent again. @source API §8.3
    if (intent.verb !== 'create' && this.#failed.has(scope))
      fail('I6', `${intent.key} was sent again under the key of a server error`);
    return intent;
  }

  /** A new state asks the keys of a resource in turn, and only as long as they were used. */
  #checkTurn({ key, verb, incarnation, parentId }: Intent): void {
    const before = Number(incarnation) - 1;
    if (verb !== 'create' || parentId !== undefined || !(before >= 0)) return;
    const isBegun = [...this.#truth.history.writes.values()].some(
      (each) => each.key === key && each.verb === 'create' && Number(each.incarnation) === before,
    );
    if (!isBegun)
      this.#truth.fail('I3', `${key} leaves out the idempotency key of its incarnation ${before}`);
  }

  changed(change: StateChange): void {
    if (change.type === 'proof') this.#proofs.add(change.proof.idempotencyKey);
  }

  /** I19: a server that a new one replaces is deleted only after a proof, or its calibration, was recorded. */
  checkProved(isReplaced: boolean, { key, verb }: Intent): void {
    if (verb === 'delete' && isReplaced && this.#proofs.size === 0)
      this.#truth.fail('I19', `${key} is deleted for a new server, and no proof was sent`);
  }

  answered(running: Running, request: HttpRequest, status: number): void {
    if (status >= 500 && !isProbe(request)) this.#unread.set(running, scopeOf(running, keyOf(request)));
  }

  /** The process acted, so it has read all earlier answers. */
  livesOn(running: Running): void {
    const scope = this.#unread.get(running);
    if (scope !== undefined) this.#failed.add(scope);
    this.#unread.delete(running);
  }

  /** Counted before it is sent, under the key of an open write or a spare one. */
  #checkProbe(running: Running, request: HttpRequest, intent: Intent | undefined): void {
    const key = keyOf(request);
    if (key.startsWith('vdcsync-spare-')) {
      if (isProof(request) && !this.#proofs.has(key))
        this.#truth.fail('I5', `the proof ${key} was sent without a durable record`);
      return;
    }
    const isOpen = intent?.phase === 'unknown' || intent?.phase === 'blocked';
    if (!isOpen || (intent.unconfirmed?.question.probes ?? 0) === 0)
      this.#truth.fail('I5', `the key ${key} was probed without a durable record`);
    else this.#checkAge(running, scopeOf(running, key), intent);
  }

  /** A higher attempt is a new key. It is allowed only once the outcome of the last attempt is known. */
  began({ endings }: Controller, intent: Intent): void {
    const last = endings.get(`${intent.key} ${intent.verb}`);
    if (last === undefined || intent.attempt === 0 || last.incarnation !== intent.incarnation) return;
    const { unconfirmed, outcome } = partsOf(last);
    if (intent.verb === 'create' && unconfirmed !== undefined && outcome === 'refused')
      this.#truth.fail('I6', `${intent.key} got a new key, and its last one was never settled`);
  }

  /** Where nothing was ever done or stored under it, its next use is its first. */
  closed(running: Running, intent: Intent): void {
    const { outcome, unconfirmed } = partsOf(intent);
    if (outcome === 'void' && (unconfirmed === undefined || intent.sends === 0))
      this.#firstSent.delete(scopeOf(running, intent.idempotencyKey));
  }

  #checkForm(scope: string, request: HttpRequest, intent: Intent): void {
    const form = `${request.method} ${pathOf(request)} ${request.body ?? ''}`;
    const before = this.#sentAs.get(scope);
    if (before !== undefined && before !== form && !this.#isOfAnother(intent, before))
      this.#truth.fail('I4', `one key for "${before}" and "${form}"`);
    this.#sentAs.set(scope, form);
  }

  /**
   * A probe has shown that the key holds an answer, and the answer is not to the earlier bytes: the API has refused
   * them. It may be the answer to the bytes of the edited entry, and the API replays or refuses them.
   *
   * @source API §8.1
   */
  #isOfAnother(intent: Intent, before: string): boolean {
    const { answers } = projectOf(this.#truth);
    const stored = answers.find(({ key }) => key === intent.idempotencyKey);
    const isTaken = partsOf(intent).unconfirmed?.question.stage === 'taken';
    return isTaken && stored !== undefined && `${stored.method} ${stored.path} ${stored.body}` !== before;
  }

  #checkAge({ controller }: Running, scope: string, { key }: Intent): void {
    const now = this.#truth.elapsed();
    const first = this.#firstSent.get(scope) ?? now;
    this.#firstSent.set(scope, first);
    if (now - first >= keyLifeMs && !controller.clockWasSet)
      this.#truth.fail('I6', `the key of ${key} was sent again after ${Math.round((now - first) / hour)} h`);
  }
}

function scopeOf(running: Running, key: string): string {
  return `${stateOf(running)} ${key}`;
}

/** The probe has the body of a creation, or impossible values of its fields. */
function isProof({ body }: HttpRequest): boolean {
  return body !== undefined && /"vdcsync_probe":"(?:proof|impossible)"/.test(body);
}
