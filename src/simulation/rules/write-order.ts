import { partsOf } from '../../core/intent.ts';
import type { Intent } from '../../core/state.ts';
import type { HttpRequest } from '../../core/transport.ts';
import type { Running } from '../controller.ts';
import { keyOf, pathOf, type Truth, tokenOf } from './truth.ts';

const spendingHeldMs = 30 * 60_000;

/** I7: one write at a time, in the right project, none while held, none in a dry run. */
export class WriteOrder {
  readonly #truth: Truth;
  readonly #inFlight = new Map<string, number>();

  constructor(truth: Truth) {
    this.#truth = truth;
  }

  arrives({ name, holds }: Running, request: HttpRequest): void {
    const { fail, projectId } = this.#truth;
    const token = tokenOf(this.#truth, request);
    if (!token.startsWith(`${projectId}-`))
      fail('I7', `${request.method} ${pathOf(request)} with the token ${token}`);
    const refused = holds.tokens.get(token);
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
  read({ holds }: Running, request: HttpRequest): void {
    if (pathOf(request) === '/project') holds.tokens.get(tokenOf(this.#truth, request))?.delete('401');
  }

  checkHolds({ holds, dry }: Running, { verb, kind, request }: Intent): void {
    const { fail, elapsed } = this.#truth;
    const spends = verb === 'create' && ['server', 'ip', 'backup', 'server_image'].includes(kind);
    if (holds.everything) fail('I7', `${request.name} after a 401, 405 or 415 in the same run`);
    if (holds.names.has(request.name)) fail('I7', `${request.name} after its 403`);
    if (holds.spendingUntil > elapsed() && spends) fail('I7', `${request.name} after a 402`);
    if (dry) fail('I7', 'a write in a dry run');
  }

  /** A refusal after an ambiguous send answers that send alone, and holds nothing yet. */
  answered(running: Running, request: HttpRequest, status: number): void {
    const { holds, mirror } = running;
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

  #nameOf(request: HttpRequest): string | undefined {
    return this.#truth.history.writes.get(keyOf(request))?.request.name;
  }

  /** Another token of the machine may still be allowed to do it, as far as its answers have shown. */
  #refusesOneToken({ holds, controller }: Running, request: HttpRequest, status: number): boolean {
    const names = controller.tokens().map(this.#truth.tokenName);
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
