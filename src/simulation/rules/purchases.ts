import equal from 'fast-deep-equal';
import { appliedServer } from '../../core/applied.ts';
import { member } from '../../core/json.ts';
import { type ResourceKey, retiringKey, takeApart } from '../../core/keys.ts';
import type { Binding, Intent } from '../../core/state.ts';
import type { HttpRequest } from '../../core/transport.ts';
import type { Execution } from '../../emulator/world.ts';
import { type Controller, type Running, stateOf } from '../controller.ts';
import type { Mirror } from '../durable.ts';
import { isSort } from '../resource-history.ts';
import { entryOf } from '../spec-file.ts';
import { keyOf, projectOf, type Truth } from './truth.ts';
import {
  isCutOff,
  isHidden,
  isPendingForGood,
  isServerCutOff,
  isUnseen,
  keyLifeMs,
  makes,
} from './unshown.ts';

const minute = 60_000;
/** For this time a state may not see a purchase by another one: a minute of read lag, one to act on a read, one to send. */
const unseenMs = 3 * minute;

/** Under whose state a write was sent. */
interface Sender {
  readonly controller: Controller;
  readonly state: string;
  /** Of its spec. */
  readonly scope: string | undefined;
}

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

  /** After it was handled; `requestId` where its answer came. */
  handled(running: Running, request: HttpRequest, requestId: string | undefined): void {
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
    const { behind } = running.controller;
    const { lines } = (this.#makers.get(execution)?.controller ?? running.controller).file;
    const { history, fail, giveUp, machines } = this.#truth;
    const all = history.executionsOf(lines.nameOf(intent.key));
    const earlier = all
      .slice(0, all.indexOf(execution))
      .filter((each) => !history.isExcused(each) && !this.#isOfAnotherFile(each, execution, intent));
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
          !isOfAnotherEntry(each, intent, running) &&
          (intent.kind !== 'network_interface' ||
            this.#isSameCard(each, execution, lines.nameOf(takeApart(intent.key).parent ?? intent.key))),
    );
    if (first === undefined) return;
    const [maker, buyer] = [this.#makers.get(first), this.#makers.get(execution)];
    const another = maker?.state !== buyer?.state;
    const isSameKey = history.writes.get(first.idempotencyKey ?? '')?.key === intent.key;
    // A second state asks as little as an old copy does.
    const isBehind = behind || maker?.controller !== buyer?.controller;
    if (isCutOff(this.#truth, first) || (this.#unstored.has(first) && isServerCutOff(this.#truth, first)))
      giveUp('only a list shows the resource, and the list is cut off');
    else if (machines() > 1 && this.#haveParted(first, execution, intent, running))
      giveUp('two states that have parted');
    else if (another && this.#isIgnoredByFile(first, execution, running))
      giveUp('an earlier state bought the resource, its key is forgotten, and the spec ignores it');
    else if (maker?.scope !== buyer?.scope && isIgnoring(first, running))
      giveUp('the resource was bought under another `project.scope`, and the spec ignores it');
    else if (behind && isRenamedSince(first, intent, running))
      giveUp('an old copy of the state has another key for the resource, and no `moved` names that key');
    else if (another && first.kind === 'iso' && this.#isRenamedUnbound(first, intent, running))
      giveUp(
        'a lost state had another key for the ISO, no `moved` names that key, and no read shows its URL',
      );
    else if (behind && first.kind === 'network' && this.#isRenamedUnbound(first, intent, running))
      giveUp('an old copy of the state is older than the network and its rename, which no `moved` shows');
    else if (another && first.kind === 'network' && this.#isAnotherNetwork(first, execution, intent))
      giveUp('a lost state had a network of another name and subnet for the key, which is forgotten');
    else if ((another || behind) && this.#isReleasedByAnotherEntry(first, intent, running))
      giveUp(
        'the spec released the resource under another key, which neither `moved` nor the state connects',
      );
    else if (another && isOfAdoptedServer(first, mirror))
      giveUp('another state bought the address for an entry, and its server was adopted with `new: true`');
    else if (intent.kind === 'backup' && maker?.controller !== buyer?.controller && !isSameKey)
      giveUp('two files back up one server under two keys');
    else if (this.#isHidden(first))
      giveUp('a server error was lost that had its effect, of a resource that no read shows');
    else if (first.kind === 'server' && history.isBare(first.id ?? ''))
      giveUp('another user took away the address of a server whose answer was lost');
    else if (another && isPendingForGood(first, execution))
      giveUp('another state sent a creation whose task never ends, and its key is forgotten');
    else if (
      another &&
      isUnseen(this.#truth, first, isBehind) &&
      (maker?.scope !== buyer?.scope || this.#isUnasked(first, execution, intent, running, all))
    )
      giveUp('another state bought a resource that no documented read shows');
    else if (another && this.#unstored.has(first) && this.#isNotShownYet(first, execution))
      giveUp('another state bought the resource of a server error again before any read showed the resource');
    else if (this.#isForgotten(first, execution, running))
      giveUp('a clock was set back, and an API without `Date` has forgotten the key');
    else if (this.#unstored.has(first) && this.#isUnreported(first))
      giveUp('a server error was lost that had its effect, of a server that no read shows');
    else
      fail(
        'I3',
        `${intent.key} was bought twice: ${first.operation} ${first.id ?? '(pending)'} and ${execution.id ?? '(pending)'}`,
      );
  }

  /** Another file has another scope, no matter which it had before, or has renamed its entry. */
  #isOfAnotherFile(first: Execution, execution: Execution, { key }: Intent): boolean {
    const [maker, buyer] = [this.#makers.get(first), this.#makers.get(execution)];
    if (maker === undefined || buyer === undefined || maker.controller === buyer.controller) return false;
    if (maker.scope !== buyer.scope) return true;
    const { file } = buyer.controller;
    const lineOf = (each: ResourceKey) => file.lines.nameOf(takeApart(each).parent ?? each);
    const made = this.#truth.history.writeOf(first);
    return maker.controller.file !== file && made !== undefined && lineOf(made.key) !== lineOf(key);
  }

  /** The state has no binding to the resource, and neither its key nor its name shows whose it is. @source API §2 */
  #isRenamedUnbound(first: Execution, { key, request }: Intent, { mirror, controller }: Running): boolean {
    const made = this.#truth.history.writeOf(first);
    if (made === undefined || made.key === key || holderOf(mirror, first) !== undefined) return false;
    if (member(made.request.body, 'name') === member(request.body, 'name')) return false;
    return member(entryOf(controller.file.model, key)?.moved, 'from') !== made.key;
  }

  /** The key is forgotten, or one that no state can derive from the spec. @source API §8 */
  #isUnasked(
    first: Execution,
    { atMs }: Execution,
    { key }: Intent,
    { controller }: Running,
    /** All creations of the line, the oldest first. */
    of: readonly Execution[],
  ): boolean {
    const made = this.#truth.history.writeOf(first);
    if (made === undefined || atMs - first.atMs >= keyLifeMs || made.attempt > 0) return true;
    // A new state asks about later incarnations only if the project shows that it was used.
    const isLater = Number(made.incarnation) > 0 && first !== of[0] && atMs - (of[0]?.atMs ?? 0) >= keyLifeMs;
    const { networks, ips } = projectOf(this.#truth);
    if (isLater && ips.length === 0 && networks.every(({ isDefault }) => isDefault)) return true;
    if (isLater && Number(made.incarnation) > 3) return true;
    return made.key !== key && member(entryOf(controller.file.model, key)?.moved, 'from') !== made.key;
  }

  /** No key shows the network any more, and nothing in it is as the entry asks. @source API §8 */
  #isAnotherNetwork(first: Execution, { atMs }: Execution, { request }: Intent): boolean {
    const made = this.#truth.history.writeOf(first)?.request.body;
    const isSame = (field: string) => member(made, field) === member(request.body, field);
    return atMs - first.atMs >= keyLifeMs && !isSame('name') && !isSame('cidr');
  }

  /** For the state, the resource is one that an entry with another key released, and nothing connects the two keys. */
  #isReleasedByAnotherEntry({ kind, id }: Execution, { key }: Intent, { controller }: Running): boolean {
    const released = isSort(kind) ? this.#truth.history.releasedFrom(kind, id ?? '') : undefined;
    if (released === undefined || released === key) return false;
    return member(entryOf(controller.file.model, key)?.moved, 'from') !== released;
  }

  /** The retiring server is as the spec wants it, so that it must take its key back. */
  #isSpare(execution: Execution, { key, request }: Intent, { mirror }: Running): boolean {
    const { kind, id } = execution;
    if (kind !== 'server' || id === null) return false;
    const binding = mirror.bindings.get(retiringKey(key, id));
    if (binding === undefined || binding.tainted !== undefined) return false;
    return equal(this.#truth.history.writeOf(execution)?.request.body, request.body);
  }

  /** No key shows the resource any more, and the spec says that no unmanaged resource belongs to it. @source API §8 */
  #isIgnoredByFile(first: Execution, { atMs }: Execution, running: Running): boolean {
    return isIgnoring(first, running) && atMs - first.atMs >= keyLifeMs;
  }

  /** Only the clock of the host showed the age of the key, and that clock is wrong. @source API §8 */
  #isForgotten(first: Execution, { atMs }: Execution, { controller }: Running): boolean {
    const { dateHeader } = this.#truth.emulator.readings;
    return controller.clockWasSet && !dateHeader && atMs - first.atMs >= keyLifeMs;
  }

  /** No answer has said that the service failed, and no documented read shows the server. @source API §8 */
  #isUnreported({ kind, id, requestId }: Execution): boolean {
    const { history } = this.#truth;
    return kind === 'server' && id !== null && history.isUnseen(id, false) && !this.#read.has(requestId);
  }

  /** Each state acted on its own knowledge. Under one key both buy if the API did not store a server error. @source API §8 */
  #haveParted(
    first: Execution,
    execution: Execution,
    intent: Intent,
    { mirror, controller }: Running,
  ): boolean {
    const { history } = this.#truth;
    // The other state has adopted, by a wrong `id`, the resource that this state has for another entry.
    const { key = intent.key } = holderOf(mirror, first) ?? {};
    if (key !== intent.key && entryOf(controller.file.model, key) !== undefined) return true;
    const other = history.writes.get(first.idempotencyKey ?? '');
    if (other?.incarnation !== intent.incarnation || other.attempt !== intent.attempt) return true;
    // Both machines have added the network interface at the same time.
    const isCard = first.kind === 'card' && this.#makers.get(first)?.controller !== controller;
    if (isCard && execution.atMs - first.atMs < 60_000) return true;
    // One machine's server took, as a free one, the address that the other had bought.
    const { ips } = projectOf(this.#truth);
    const held = ips.some(({ id, serverId }) => String(id) === first.id && serverId !== null);
    if (intent.kind === 'ip' && held) return true;
    const oneMachine = this.#makers.get(first)?.controller === this.#makers.get(execution)?.controller;
    const oneKey = first.idempotencyKey === execution.idempotencyKey;
    return oneKey && !oneMachine && execution.atMs - first.atMs < unseenMs;
  }

  #isNotShownYet(first: Execution, { atMs }: Execution): boolean {
    const { staleReadsMs } = this.#truth.emulator.readings;
    const ended = projectOf(this.#truth).tasks.find(({ effect }) => makes(effect, first))?.endsMs;
    return isHidden(this.#truth, first) || atMs - (ended ?? first.atMs) <= staleReadsMs;
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
   * A network interface in a replaced network is another one, as is one in a server that was given to the line since, or
   * that replaces the server. A state that was put back has the old server.
   */
  #isSameCard(first: Execution, execution: Execution, line: string): boolean {
    const [before = '', now = ''] = [first, execution].map(({ id }) => (id ?? '').split('/')[0]);
    if (before !== now && this.#truth.history.lineGiven(now, line) === line) return false;
    if (this.#isReplacement(now, before) || this.#isReplacement(before, now)) return false;
    // A later request of another state may have had the key of the first one, and another network.
    const networkOf = ({ id }: Execution) => {
      const [server, card] = (id ?? '').split('/');
      const { cards } = projectOf(this.#truth).servers.find((each) => String(each.id) === server) ?? {};
      return cards?.find((each) => each.id === card)?.networkId;
    };
    return first.id !== execution.id && networkOf(first) === networkOf(execution);
  }

  /** Whether the live server was created to replace the other one. */
  #isReplacement(server: string, old: string): boolean {
    const { isLive } = this.#truth.history;
    return [...this.#replaced].some(([each, id]) => each.id === server && id === old && isLive(each));
  }
}

/** The purchase replaces the server, or an earlier purchase has replaced it: the state knows that it must be deleted. */
function retires({ kind, id }: Execution, { key, replaces }: Intent, bindings: Mirror['bindings']): boolean {
  const [server = ''] = (id ?? '').split('/');
  const owner = takeApart(key).parent ?? key;
  if (kind === 'server' && id !== null && id === replaces) return true;
  return (kind === 'server' || kind === 'card') && bindings.has(retiringKey(owner, server));
}

/** The spec gives the resource, or its server, to another entry, for which vdcsync does not manage it. */
function isOfAnotherEntry({ id }: Execution, { key, parentId }: Intent, { controller }: Running): boolean {
  const [collection = '', name = ''] = key.split('.');
  const entries = Object.entries(Object(member(controller.file.model, collection)));
  return entries.some(
    ([other, entry]) =>
      other !== name &&
      member(entry, 'managed') === false &&
      String(member(entry, 'id')) === (parentId === undefined ? id : id?.split('/')[0]),
  );
}

/** The state binds the resource to an earlier key of the line, and neither the binding nor the spec connects the two keys. */
function isRenamedSince(first: Execution, { key }: Intent, { mirror, controller }: Running): boolean {
  const holder = holderOf(mirror, first);
  if (holder === undefined || holder.key === key || holder.formerKeys?.includes(key)) return false;
  const { moved } = entryOf(controller.file.model, key) ?? {};
  return member(moved, 'from') !== holder.key;
}

/** The state has the address as the own address of a server that it did not create. */
function isOfAdoptedServer(first: Execution, mirror: Mirror): boolean {
  const holder = first.kind === 'ip' ? holderOf(mirror, first) : undefined;
  const { parent } = holder === undefined ? {} : takeApart(holder.key);
  return parent !== undefined && appliedServer(mirror.bindings.get(parent)).mayBeOlder;
}

function holderOf({ bindings }: Mirror, { kind, id }: Execution): Binding | undefined {
  return [...bindings.values()].find((each) => each.kind === kind && each.id === id);
}

function isIgnoring({ kind }: Execution, { desired }: Running): boolean {
  return (kind === 'server' || kind === 'ip') && desired.settings.unmanaged === 'ignore';
}
