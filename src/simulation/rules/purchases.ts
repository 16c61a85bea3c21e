import equal from 'fast-deep-equal';
import { retiringKey, takeApart } from '../../core/keys.ts';
import type { Intent } from '../../core/state.ts';
import type { HttpRequest, HttpResponse } from '../../core/transport.ts';
import type { Execution } from '../../emulator/world.ts';
import { type Running, stateOf } from '../controller.ts';
import type { Mirror } from '../durable.ts';
import {
  keyLifeMs,
  keyOf,
  type Limits,
  projectOf,
  type SecondPurchase,
  type Sender,
  type Truth,
} from './truth.ts';

/** The limits of a story with one state that it never loses, where the API answers as documented. */
export const usualLimits: Limits = {
  isOfAnotherFile: () => false,
  isOfAnotherEntry: () => false,
  ofPurchase: (_truth, { isHidden, isUnreported }) =>
    isHidden ? hiddenResource : isUnreported ? unreportedServer : undefined,
};

export const hiddenResource = 'a server error was lost that had its effect, of a resource that no read shows';
export const unreportedServer = 'a server error was lost that had its effect, of a server that no read shows';

/** Up to this age, the key of a creation is certain to be reserved. */
const reservedMs = keyLifeMs - 3_600_000;

/** I3: no key buys a second resource while its first resource still exists. */
export class Purchases {
  readonly #truth: Truth;
  readonly #makers = new Map<Execution, Sender>();
  /** Creations whose answer was not kept under their key: a server error that had its effect. @source API §8 */
  readonly #unstored = new Set<Execution>();
  /** The processes that still wait for an answer under a key, in order: a late answer goes to the last of them. */
  readonly #waiting = new Map<string, Sender[]>();
  readonly #answered = new Map<string, Sender>();
  /** The last answer of each process, as long as no later action shows that the process lived to read it. */
  readonly #unread = new Map<Running, string>();
  readonly #read = new Set<string>();
  /** The resources that a lost state cannot buy again, each with its entry. */
  readonly #reserved = new Set<string>();
  /** The time of the last use of a key whose resource had passed to another entry. */
  readonly #passedOn = new Map<string, number>();
  /** The resource that each creation replaces. A later state that finds the creation does not know that. */
  readonly #replaced = new Map<Execution, string>();
  #executionsSeen = 0;

  constructor(truth: Truth) {
    this.#truth = truth;
  }

  /** Before the service sees a write. */
  arrives(running: Running, request: HttpRequest): void {
    const key = keyOf(request);
    const { controller, desired } = running;
    const sender = { controller, state: stateOf(running), scope: desired.scope };
    this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), sender]);
  }

  /** After it was handled. */
  handled(running: Running, request: HttpRequest, response: HttpResponse | undefined): void {
    const requestId = response?.headers['x-request-id'];
    if (requestId === undefined) return;
    const senders = this.#waiting.get(keyOf(request)) ?? [];
    const own = senders.findLastIndex(({ state }) => state === stateOf(running));
    this.#unread.set(running, requestId);
    this.#answered.set(requestId, ...(senders.splice(own, 1) as [Sender]));
  }

  /** The process acted, so it has read all earlier answers. */
  livesOn(running: Running): void {
    const requestId = this.#unread.get(running);
    if (requestId !== undefined) this.#read.add(requestId);
    this.#unread.delete(running);
  }

  /** Checks the requests that took effect since the last call. */
  check(running: Running): void {
    const { emulator, history, fail, projectId } = this.#truth;
    const fresh = emulator.world.executions.slice(this.#executionsSeen);
    this.#executionsSeen += fresh.length;
    for (const execution of fresh) {
      const key = execution.idempotencyKey ?? '';
      const maker = this.#answered.get(execution.requestId) ?? this.#waiting.get(key)?.at(-1);
      if (maker !== undefined) this.#makers.set(execution, maker);
      const { answers } = projectOf(this.#truth);
      if (!answers.some((answer) => answer.key === key && answer.status < 300)) this.#unstored.add(execution);
    }
    for (const execution of fresh) {
      const intent = history.writes.get(execution.idempotencyKey ?? '');
      if (intent !== undefined) this.#notePassed(running, intent, execution);
      if (intent?.replaces !== undefined) this.#replaced.set(execution, intent.replaces);
      if (execution.projectId !== projectId)
        fail('I7', `${execution.operation} took effect in project ${execution.projectId}`);
      else if (intent === undefined)
        fail('I5', `${execution.operation} took effect under a key that no state has recorded`);
      else this.#checkOnce(execution, intent, running);
    }
  }

  #checkOnce(execution: Execution, intent: Intent, running: Running): void {
    const { mirror } = running;
    const buyer = this.#makers.get(execution);
    const { lines } = (buyer?.controller ?? running.controller).file;
    const { history, fail, giveUp, limits } = this.#truth;
    const isOfAnotherFile = (each: Execution) =>
      limits.isOfAnotherFile(this.#truth, each, intent, this.#makers.get(each), buyer);
    const all = history.executionsOf(lines.nameOf(intent.key));
    const earlier = all
      .slice(0, all.indexOf(execution))
      .filter((each) => !history.isExcused(each) && !isOfAnotherFile(each));
    const spare = earlier.find((each) => history.isLive(each) && this.#isSpare(each, intent, running));
    if (spare !== undefined)
      fail(
        'I3',
        `${intent.key} was bought although ${spare.id}, which retires, was bought with the same values`,
      );
    const first = earlier.find((each) =>
      intent.kind === 'backup'
        ? history.writes.get(each.idempotencyKey ?? '')?.incarnation === intent.incarnation &&
          each.id?.split('/')[0] === execution.id?.split('/')[0] &&
          execution.atMs - each.atMs < keyLifeMs
        : history.isLive(each) &&
          !retires(each, intent, mirror.bindings) &&
          !limits.isOfAnotherEntry(each, intent, running) &&
          (intent.kind !== 'network_interface' ||
            this.#isSameInterface(each, execution, lines.nameOf(takeApart(intent.key).parent ?? intent.key))),
    );
    if (first === undefined) return;
    const purchase = this.#second({ first, execution, intent, running, all });
    const limit = limits.ofPurchase(this.#truth, purchase);
    if (limit !== undefined) giveUp(limit);
    else
      fail(
        'I3',
        `${intent.key} was bought twice: ${first.operation} ${first.id ?? '(pending)'} and ${execution.id ?? '(pending)'}`,
      );
  }

  #second(given: Pick<SecondPurchase, 'first' | 'execution' | 'intent' | 'running' | 'all'>): SecondPurchase {
    const { first, execution, intent } = given;
    const isUnstored = this.#unstored.has(first);
    const ageMs = execution.atMs - first.atMs;
    return {
      ...given,
      maker: this.#makers.get(first),
      buyer: this.#makers.get(execution),
      isUnstored,
      isHidden: this.#isHidden(first),
      isUnreported: isUnstored && this.#isUnreported(first),
      isReserved:
        (this.#reserved.has(passing(first, intent.key)) && ageMs < reservedMs) ||
        execution.atMs - (this.#passedOn.get(passing(first, intent.key)) ?? -keyLifeMs) < keyLifeMs,
    };
  }

  /** A run ends with the reservation of the keys of the entries whose resources were created under another key. */
  converged({ mirror, controller, desired }: Running): void {
    const { bodyCheck } = this.#truth.emulator.readings;
    if (bodyCheck === 'beforeKeyUnstored' || controller.clockWasSet) return;
    for (const binding of mirror.bindings.values()) {
      const entry = desired.resources.find(({ key }) => key === binding.key);
      if (binding.formerKeys === undefined || entry?.managed !== true) continue;
      if (entry.moved !== undefined || entry.id !== undefined) continue;
      this.#reserved.add(passing(binding, binding.key));
    }
  }

  /** The keys of the entries that have resources of the used key are reserved by now, where that is possible. */
  #notePassed({ mirror }: Running, { key }: Intent, { atMs }: Execution): void {
    const { bodyCheck } = this.#truth.emulator.readings;
    if (bodyCheck === 'beforeKeyUnstored') return;
    for (const binding of mirror.bindings.values())
      if (binding.formerKeys?.includes(key)) this.#passedOn.set(passing(binding, binding.key), atMs);
  }

  /** The retiring server is as the spec wants it, so that it must take its key back. */
  #isSpare(execution: Execution, { key, request }: Intent, { mirror }: Running): boolean {
    const { kind, id } = execution;
    if (kind !== 'server' || id === null) return false;
    const binding = mirror.bindings.get(retiringKey(key, id));
    if (binding === undefined || binding.tainted !== undefined) return false;
    return equal(this.#truth.history.writeOf(execution)?.request.body, request.body);
  }

  /** No answer has said that the service failed, and no documented read shows the server. @source API §8 */
  #isUnreported({ kind, id, requestId }: Execution): boolean {
    const { history } = this.#truth;
    return kind === 'server' && id !== null && history.isUnseen(id, false) && !this.#read.has(requestId);
  }

  /** Whether a creation that no client can know of made this server. */
  isHiddenServer(server: string): boolean {
    return [...this.#makers.keys()].some(
      (each) =>
        each.kind === 'server' &&
        each.id === server &&
        this.#truth.history.isLive(each) &&
        this.#isHidden(each),
    );
  }

  /** Whether no client can know of the resource, or could have known of it while it existed. */
  isUnknown(made: Execution): boolean {
    return this.#isHidden(made) || (this.#unstored.has(made) && !this.#truth.history.isLive(made));
  }

  /** Its answer was lost and is not stored, and no read shows it: the default of `unconfirmed_servers`. */
  #isHidden(first: Execution): boolean {
    const { kind, id, requestId } = first;
    const { history, serversAreListed } = this.#truth;
    const body = history.writeOf(first)?.request.body as { public_ipv4?: unknown } | undefined;
    // An address that the server got without a request does not identify the server. @assumption A22
    const isBare = body?.public_ipv4 === undefined && !serversAreListed;
    const neverShown =
      kind === 'image' || (kind === 'server' && (isBare || history.isUnseen(id ?? '', true)));
    return neverShown && this.#unstored.has(first) && !this.#read.has(requestId);
  }

  /**
   * A network interface in a replaced network is another one, as is one in a server that was given to the line since, that
   * another user made, or that replaces the server. A state that was put back has the old server.
   */
  #isSameInterface(first: Execution, execution: Execution, line: string): boolean {
    const [before = '', now = ''] = [first, execution].map(({ id }) => (id ?? '').split('/')[0]);
    const { history } = this.#truth;
    const isGiven = history.lineGiven(now, line) === line || history.birthOf('server', now)?.isForeign;
    if (before !== now && isGiven) return false;
    if (this.#isReplacement(now, before) || this.#isReplacement(before, now)) return false;
    // A later request of another state may have had the key of the first one, and another network.
    const networkOf = ({ id }: Execution) => {
      const [server, card] = (id ?? '').split('/');
      const { interfaces } = projectOf(this.#truth).servers.find((each) => String(each.id) === server) ?? {};
      return interfaces?.find((each) => each.id === card)?.networkId;
    };
    return first.id !== execution.id && networkOf(first) === networkOf(execution);
  }

  /** Whether the live server was created to replace the other one. */
  #isReplacement(server: string, old: string): boolean {
    const { history } = this.#truth;
    return [...this.#replaced].some(([each, id]) => each.id === server && id === old && history.isLive(each));
  }
}

/** The purchase replaces the server, or an earlier purchase has replaced it: the state knows that it must be deleted. */
function retires({ kind, id }: Execution, { key, replaces }: Intent, bindings: Mirror['bindings']): boolean {
  const [server = ''] = (id ?? '').split('/');
  const owner = takeApart(key).parent ?? key;
  if (kind === 'server' && id !== null && id === replaces) return true;
  return (kind === 'server' || kind === 'card') && bindings.has(retiringKey(owner, server));
}

function passing({ kind, id }: { readonly kind: string; readonly id: string | null }, to: string): string {
  return `${kind} ${id} ${to}`;
}
