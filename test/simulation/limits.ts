import { appliedServer } from '../../src/core/applied.ts';
import { partsOf } from '../../src/core/intent.ts';
import { member } from '../../src/core/json.ts';
import { type ResourceKey, takeApart } from '../../src/core/keys.ts';
import type { Binding, Intent } from '../../src/core/state.ts';
import type { Execution } from '../../src/emulator/world.ts';
import type { Running } from '../../src/simulation/controller.ts';
import type { Mirror } from '../../src/simulation/durable.ts';
import { type Birth, isSort, listsOf } from '../../src/simulation/resource-history.ts';
import { hiddenResource, unreportedServer } from '../../src/simulation/rules/purchases.ts';
import {
  keyLifeMs,
  type Limits,
  projectOf,
  type SecondPurchase,
  type Truth,
} from '../../src/simulation/rules/truth.ts';
import { entryOf } from '../../src/simulation/spec-file.ts';
import { isCutOff, isHidden, isPendingForGood, isServerCutOff, isUnseen, makes } from './unshown.ts';

const minute = 60_000;
/** For this time a state may not see a purchase by another one: a minute of read lag, one to act on a read, one to send. */
const unseenMs = 3 * minute;

/** The limits of stories in which a state is lost or put back, another one acts, or the API answers in another way. */
export const storyLimits: Limits = {
  isOfAnotherFile(truth, first, { key }, maker, buyer) {
    if (maker === undefined || buyer === undefined || maker.controller === buyer.controller) return false;
    if (maker.scope !== buyer.scope) return true;
    const { file } = buyer.controller;
    const lineOf = (each: ResourceKey) => file.lines.nameOf(takeApart(each).parent ?? each);
    const made = truth.history.writeOf(first);
    return maker.controller.file !== file && made !== undefined && lineOf(made.key) !== lineOf(key);
  },
  isOfAnotherEntry({ id }, { key, parentId }, { controller }) {
    const [collection = '', name = ''] = key.split('.');
    const entries = Object.entries(Object(member(controller.file.model, collection)));
    return entries.some(
      ([other, entry]) =>
        other !== name && String(member(entry, 'id')) === (parentId === undefined ? id : id?.split('/')[0]),
    );
  },
  ofPurchase: limitOf,
};

/** Of the deletion of a resource that is not the bound one. */
export function limitOfDeletion(
  truth: Truth,
  running: Running,
  intent: Intent,
  binding: Binding,
  birth: Birth,
): string | undefined {
  const isUnseen = running.controller.behind || intent.attempt > 0 || isBare(truth, binding);
  return isUnseen && looksTheSame(truth, running, binding, birth)
    ? 'a newer resource with the id and the identity of a deleted one'
    : undefined;
}

function limitOf(truth: Truth, purchase: SecondPurchase): string | undefined {
  const { first, execution, intent, running, maker, buyer, isUnstored } = purchase;
  const { history } = truth;
  const { mirror } = running;
  const { behind } = running.controller;
  const another = maker?.state !== buyer?.state;
  const isSameKey = history.writes.get(first.idempotencyKey ?? '')?.key === intent.key;
  // A second state asks as little as an old copy does.
  const isBehind = behind || maker?.controller !== buyer?.controller;
  if (isCutOff(truth, first) || ((isUnstored || isUnasked(truth, purchase)) && isServerCutOff(truth, first)))
    return 'only a list shows the resource, and the list is cut off';
  if (truth.machines() > 1 && haveParted(truth, purchase)) return 'two states that have parted';
  if (another && isIgnoredByFile(first, execution, running))
    return 'an earlier state bought the resource, its key is forgotten, and the spec ignores it';
  if (maker?.scope !== buyer?.scope && isIgnoring(first, running))
    return 'the resource was bought under another `project.scope`, and the spec ignores it';
  if (behind && !purchase.isReserved && isRenamedSince(first, intent, running))
    return 'an old copy of the state has another key for the resource, and no `moved` names that key';
  if (another && first.kind === 'iso' && isRenamedUnbound(truth, first, intent, running))
    return 'a lost state had another key for the ISO, no `moved` names that key, and no read shows its URL';
  if ((another || behind) && isIgnoring(first, running) && isOfNoKey(truth, first, intent, running))
    return 'an earlier state had another key for the resource, which the spec ignores, and no `moved` names that key';
  if (behind && first.kind === 'network' && isRenamedUnbound(truth, first, intent, running))
    return 'an old copy of the state is older than the network and its rename, which no `moved` shows';
  if (another && first.kind === 'network' && isAnotherNetwork(truth, first, execution, intent))
    return 'a lost state had a network of another name and subnet for the key, which is forgotten';
  if ((another || behind) && isReleasedByAnotherEntry(truth, first, intent, running))
    return 'the spec released the resource under another key, which neither `moved` nor the state connects';
  if (another && isOfAdoptedServer(first, mirror))
    return 'another state bought the address for an entry, and its server was adopted with `new: true`';
  if (intent.kind === 'backup' && maker?.controller !== buyer?.controller && !isSameKey)
    return 'two files back up one server under two keys';
  if (purchase.isHidden) return hiddenResource;
  if (first.kind === 'server' && history.isBare(first.id ?? ''))
    return 'another user took away the address of a server whose answer was lost';
  if (another && isPendingForGood(first, execution))
    return 'another state sent a creation whose task never ends, and its key is forgotten';
  if (
    another &&
    !purchase.isReserved &&
    isUnseen(truth, first, isBehind) &&
    (maker?.scope !== buyer?.scope || isUnasked(truth, purchase))
  )
    return 'another state bought a resource that no documented read shows';
  if (another && isUnstored && isNotShownYet(truth, first, execution))
    return 'another state bought the resource of a server error again before any read showed the resource';
  if (isForgotten(truth, first, execution, running))
    return 'a clock was set back, and an API without `Date` has forgotten the key';
  if (purchase.isUnreported) return unreportedServer;
  return undefined;
}

/** Neither the key of the entry nor its `moved` is the one under which the resource was bought. */
function isOfNoKey(truth: Truth, first: Execution, { key }: Intent, { controller }: Running): boolean {
  const made = truth.history.writeOf(first)?.key;
  return made !== key && member(entryOf(controller.file.model, key)?.moved, 'from') !== made;
}

/** The state has no binding to the resource, and neither its key nor its name shows whose it is. @source API §2 */
function isRenamedUnbound(
  truth: Truth,
  first: Execution,
  { key, request }: Intent,
  { mirror, controller }: Running,
): boolean {
  const made = truth.history.writeOf(first);
  if (made === undefined || made.key === key || holderOf(mirror, first) !== undefined) return false;
  if (member(made.request.body, 'name') === member(request.body, 'name')) return false;
  return member(entryOf(controller.file.model, key)?.moved, 'from') !== made.key;
}

/** The key is forgotten, or one that no state can derive from the spec. @source API §8 */
function isUnasked(truth: Truth, purchase: SecondPurchase): boolean {
  const { first, all: of, intent, running } = purchase;
  const { key } = intent;
  const { controller } = running;
  const { atMs } = purchase.execution;
  const made = truth.history.writeOf(first);
  if (made === undefined || atMs - first.atMs >= keyLifeMs) return true;
  // The key of an attempt before it is unused, or forgotten.
  const stored = new Set(
    projectOf(truth).answers.flatMap(({ key: name, sinceMs }) =>
      sinceMs <= first.atMs && atMs - sinceMs < keyLifeMs ? [name] : [],
    ),
  );
  const known = new Set(
    [...truth.history.writes.values()]
      .filter((each) => each.key === made.key && each.incarnation === made.incarnation)
      .flatMap(({ attempt, idempotencyKey }) => (stored.has(idempotencyKey) ? [attempt] : [])),
  );
  for (let attempt = 0; attempt < made.attempt; attempt++) if (!known.has(attempt)) return true;
  // A new state asks about later incarnations only if the project shows that it was used.
  const isLater = Number(made.incarnation) > 0 && first !== of[0] && atMs - (of[0]?.atMs ?? 0) >= keyLifeMs;
  const { networks, ips } = projectOf(truth);
  if (isLater && ips.length === 0 && networks.every(({ isDefault }) => isDefault)) return true;
  if (isLater && Number(made.incarnation) > 3) return true;
  const { model } = controller.file;
  if (made.key === key || member(entryOf(model, key)?.moved, 'from') === made.key) return false;
  // The key of another entry shows that it was used.
  return entryOf(model, made.key) === undefined || isHeld(running.mirror, first);
}

/** No key shows the network any more, and nothing in it is as the entry asks. @source API §8 */
function isAnotherNetwork(truth: Truth, first: Execution, { atMs }: Execution, { request }: Intent): boolean {
  const made = truth.history.writeOf(first)?.request.body;
  const isSame = (field: string) => member(made, field) === member(request.body, field);
  return atMs - first.atMs >= keyLifeMs && !isSame('name') && !isSame('cidr');
}

/** For the state, the resource is one that an entry with another key released, and nothing connects the two keys. */
function isReleasedByAnotherEntry(
  truth: Truth,
  { kind, id }: Execution,
  { key }: Intent,
  { controller }: Running,
): boolean {
  const released = isSort(kind) ? truth.history.releasedFrom(kind, id ?? '') : undefined;
  if (released === undefined || released === key) return false;
  return member(entryOf(controller.file.model, key)?.moved, 'from') !== released;
}

/** No key shows the resource any more, and the spec says that no unmanaged resource belongs to it. @source API §8 */
function isIgnoredByFile(first: Execution, { atMs }: Execution, running: Running): boolean {
  return isIgnoring(first, running) && atMs - first.atMs >= keyLifeMs;
}

/** Only the clock of the host showed the age of the key, and that clock is wrong. @source API §8 */
function isForgotten(truth: Truth, first: Execution, { atMs }: Execution, { controller }: Running): boolean {
  const { dateHeader } = truth.emulator.readings;
  return controller.clockWasSet && !dateHeader && atMs - first.atMs >= keyLifeMs;
}

/** Each state acted on its own knowledge. Under one key both buy if the API did not store a server error. @source API §8 */
function haveParted(
  truth: Truth,
  { first, execution, intent, running, maker, buyer }: SecondPurchase,
): boolean {
  const { mirror, controller } = running;
  const { history } = truth;
  // The other state has adopted, by a wrong `id`, the resource that this state has for another entry.
  const { key = intent.key } = holderOf(mirror, first) ?? {};
  if (key !== intent.key && entryOf(controller.file.model, key) !== undefined) return true;
  const other = history.writes.get(first.idempotencyKey ?? '');
  if (other?.incarnation !== intent.incarnation || other.attempt !== intent.attempt) return true;
  // Both machines have added the network interface at the same time.
  const isCard = first.kind === 'card' && maker?.controller !== controller;
  if (isCard && execution.atMs - first.atMs < 60_000) return true;
  // One machine's server took, as a free one, the address that the other had bought.
  const { ips } = projectOf(truth);
  const held = ips.some(({ id, serverId }) => String(id) === first.id && serverId !== null);
  if (intent.kind === 'ip' && held) return true;
  const oneMachine = maker?.controller === buyer?.controller;
  const oneKey = first.idempotencyKey === execution.idempotencyKey;
  return oneKey && !oneMachine && execution.atMs - first.atMs < unseenMs;
}

function isNotShownYet(truth: Truth, first: Execution, { atMs }: Execution): boolean {
  const { staleReadsMs } = truth.emulator.readings;
  const ended = projectOf(truth).tasks.find(({ effect }) => makes(effect, first))?.endsMs;
  return isHidden(truth, first) || atMs - (ended ?? first.atMs) <= staleReadsMs;
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

/** It is bound, or the API has named it in the answer to an open creation. */
function isHeld(mirror: Mirror, first: Execution): boolean {
  const isNamed = (each: Intent) => each.kind === first.kind && partsOf(each).answer?.id === first.id;
  return holderOf(mirror, first) !== undefined || [...mirror.open.values()].some(isNamed);
}

function isIgnoring({ kind }: Execution, { desired }: Running): boolean {
  return (kind === 'server' || kind === 'ip') && desired.settings.unmanaged === 'ignore';
}

/**
 * A resource that was created later, and has the id and the identity of the bound one: a state that was put back, or
 * that deletes the older one, knows only that one, and no documented read shows the difference. Of a server without an
 * address, any state knows only that one. @assumption A17
 */
function looksTheSame(truth: Truth, { mirror }: Running, binding: Binding, { sort, id }: Birth): boolean {
  const { history, emulator } = truth;
  const { identity } = binding;
  if (!emulator.readings.reuseIds || history.makerOf(sort, id) === undefined) return false;
  const project = projectOf(truth);
  if (sort !== 'server') {
    const live = listsOf(project)[sort].find((each) => String(each.id) === id);
    return Object.entries(identity).every(([field, value]) => member(live, field) === value);
  }
  if (isBare(truth, binding)) return true;
  const bound = new Set(
    [...mirror.bindings.values()].flatMap((each) => (each.kind === 'ip' ? [each.id] : [])),
  );
  return project.ips.some(
    (ip) =>
      String(ip.serverId) === id &&
      (identity.ipv4 === undefined ? bound.has(String(ip.id)) : ip.address === identity.ipv4),
  );
}

/** A server that had no address when it was bound, and has none. */
function isBare(truth: Truth, { kind, id, identity }: Binding): boolean {
  const hasNone = projectOf(truth).ips.every(({ serverId }) => String(serverId) !== id);
  return kind === 'server' && identity.ipv4 === undefined && hasNone;
}
