import { partsOf } from '../../../src/core/intent.ts';
import type { Intent } from '../../../src/core/state.ts';
import type { HttpRequest } from '../../../src/core/transport.ts';
import type { Running } from '../../../src/simulation/controller.ts';
import { keyOf, type Truth } from '../../../src/simulation/rules/truth.ts';
import { pathOf, tokenNameOf, tokenOf } from './requests.ts';

const spendingHeldMs = 30 * 60_000;

/** The requests that the answers to a run forbid for its remainder. */
interface Holds {
  everything: boolean;
  spendingUntil: number;
  readonly names: Set<string>;
  /** By token of several: writes that it has been refused; `*` is every write. */
  readonly tokens: Map<string, Set<string>>;
}

/** I7: one write at a time, in the right project, none while held, none in a dry run. */
export class WriteOrder {
  readonly #truth: Truth;
  readonly #inFlight = new Map<string, number>();
  readonly #holds = new WeakMap<Running, Holds>();

  constructor(truth: Truth) {
    this.#truth = truth;
  }

  arrives(running: Running, request: HttpRequest): void {
    const { fail, projectId } = this.#truth;
    const { name } = running;
    const token = tokenOf(this.#truth, request);
    if (!token.startsWith(`${projectId}-`))
      fail('I7', `${request.method} ${pathOf(request)} with the token ${token}`);
    const refused = this.#holdsOf(running).tokens.get(token);
    const write = this.#nameOf(request);
    if (refused?.has('401') || refused?.has('*') || (write !== undefined && refused?.has(write)))
      fail('I7', `${request.method} ${pathOf(request)} with ${token}, which was refused it`);
    const busy = this.#inFlight.get(name) ?? 0;
    if (busy > 0) fail('I7', 'two writes at once');
    this.#inFlight.set(name, busy + 1);
  }

  handled({ name }: Running): void {
    this.#inFlight.set(name, (this.#inFlight.get(name) ?? 1) - 1);
  }

  /** A token that reads the project is as good as before. */
  read(running: Running, request: HttpRequest): void {
    if (pathOf(request) !== '/project') return;
    this.#holdsOf(running).tokens.get(tokenOf(this.#truth, request))?.delete('401');
  }

  checkHolds(running: Running, { verb, kind, request }: Intent): void {
    const holds = this.#holdsOf(running);
    const { fail, elapsed } = this.#truth;
    const spends = verb === 'create' && ['server', 'ip', 'backup', 'server_image'].includes(kind);
    if (holds.everything) fail('I7', `${request.name} after a 401, 405 or 415 in the same run`);
    if (holds.names.has(request.name)) fail('I7', `${request.name} after its 403`);
    if (holds.spendingUntil > elapsed() && spends) fail('I7', `${request.name} after a 402`);
    if (running.dry) fail('I7', 'a write in a dry run');
  }

  /** A refusal after an ambiguous send answers that send alone, and holds nothing yet. */
  answered(running: Running, request: HttpRequest, status: number): void {
    const { mirror } = running;
    const holds = this.#holdsOf(running);
    const { elapsed } = this.#truth;
    const key = keyOf(request);
    const name = this.#nameOf(request);
    if (this.#refusesOneToken(running, request, status)) return;
    const isAsked = [...mirror.open.values()].some(
      (each) => each.idempotencyKey === key && partsOf(each).unconfirmed !== undefined,
    );
    if (isAsked) return;
    if (status === 401 || status === 405 || status === 415) holds.everything = true;
    if (status === 403 && name !== undefined) holds.names.add(name);
    if (status === 402) holds.spendingUntil = elapsed() + spendingHeldMs;
  }

  #holdsOf(running: Running): Holds {
    const known = this.#holds.get(running);
    if (known !== undefined) return known;
    const holds = { everything: false, spendingUntil: 0, names: new Set<string>(), tokens: new Map() };
    this.#holds.set(running, holds);
    return holds;
  }

  #nameOf(request: HttpRequest): string | undefined {
    return this.#truth.history.writes.get(keyOf(request))?.request.name;
  }

  /** Another token of the machine may still be allowed to do it, as far as its answers have shown. */
  #refusesOneToken(running: Running, request: HttpRequest, status: number): boolean {
    const { emulator } = this.#truth;
    const holds = this.#holdsOf(running);
    const names = running.controller.tokens().map((each) => tokenNameOf(emulator, each));
    if (names.length < 2 || (status !== 401 && status !== 403)) return false;
    const token = tokenOf(this.#truth, request);
    const write = status === 401 ? '401' : (this.#nameOf(request) ?? '*');
    const refused = holds.tokens.get(token) ?? new Set();
    holds.tokens.set(token, refused.add(write));
    return names.some((name) => {
      const known = holds.tokens.get(name);
      const isLeft = !known?.has('401') && !known?.has('*') && !known?.has(write);
      return name.startsWith(`${this.#truth.projectId}-`) && isLeft;
    });
  }
}
