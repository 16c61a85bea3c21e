import { type Attributed, type Attribution, cameSince, serversShown } from '../core/attribute.ts';
import { addressObject, heldKeysOf, isHeldClaim, serverObject } from '../core/claims.ts';
import { type DesiredResource, isBare, wantedAddress } from '../core/desired.ts';
import { partsOf } from '../core/intent.ts';
import { nounOf, type ResourceKey, retiredFrom, takeApart } from '../core/keys.ts';
import type { Diff, Subject, World } from '../core/kind.ts';
import { factsOf, isAddress } from '../core/kind-facts.ts';
import { command, edit, giveScope, outside, type Remedy, setting, settleFirst } from '../core/remedy.ts';
import type { Binding, Intent } from '../core/state.ts';
import { type Draft, draftOne, isToBeMade } from './draft.ts';
import type { GuardInput, Objection, PlanFacts } from './objections.ts';
import { isSecondHalf } from './replacements.ts';
import { described, ignoring, isNone, notOurs, unmanagedFor } from './unmanaged.ts';

/** The condition and the consequence of `unmanaged: ignore`. */
export const ignoringAll =
  'if no unmanaged resource belongs to this spec: vdcsync then ignores all of them, and creates new ones';

/** An unmanaged resource may be the one that this spec describes: bought before, or by another copy of the state. */
export function unmanaged(draft: Draft, input: GuardInput, { matches }: PlanFacts): Objection | undefined {
  if (!mayDuplicate(draft, input)) return undefined;
  const { kinds, world, register } = input;
  const { subject } = draft;
  const found = unmanagedFor(subject.kind, register, world);
  if (isNone(found)) return undefined;
  const { key, kind } = subject;
  // A state that knows the project from before has no servers that are visible only by a free address.
  const isUnseen = factsOf(kind).container && found.servers.length === 0;
  if (!register.isNew && isUnseen && !takesAwaited(subject, world, kinds)) return undefined;
  const id = matches().get(key);
  const ip = isAddress(kind) ? world.ip(id ?? '') : undefined;
  const what = described(found);
  const one = isAddress(kind)
    ? 'already exists: ID is its id or the address'
    : 'already exists: ID is its id in the client area';
  return {
    reason: register.isNew
      ? `the state is new, and the project already has ${what}: a creation could be a duplicate${unseen(subject, world)}`
      : `this state did not create ${what}. Another copy of the state may have created it; creating one more could be a duplicate`,
    remedies: [
      command('adopt', [key, id ?? 'ID'], {
        when: `if ${key} ${id === undefined ? one : `is ${ip === undefined ? `server ${id}` : `address ${ip.address} (id ${ip.id})`}`}`,
      }),
      ...(isAddress(kind) ? adoptions(found.servers, input) : []),
      { ...ignoring(found), when: notOurs(found) },
      setting('unmanaged', 'ignore', ignoringAll),
    ],
  };
}

/** The servers that wait for the address have no objection of their own, but one of them may be the unmanaged server. */
function adoptions([server, another]: readonly number[], input: GuardInput): Remedy[] {
  const { world, kinds, openIntents } = input;
  if (server === undefined || another !== undefined) return [];
  const waiting = world.serverSubjects().filter((each) => {
    const { key, desired, binding } = each;
    const isNew = desired?.managed === true && desired.id === undefined && binding === undefined;
    // An open write has remedies of its own.
    if (openIntents.some((open) => open.key === key)) return false;
    return isNew && draftOne(kinds, world, each).diff.verdict.verdict === 'blocked';
  });
  return waiting.map(({ key }) => command('adopt', [key, server], { when: `if server ${server} is ${key}` }));
}

/**
 * Whether a server takes any free address while an entry for an address waits: it could take the unmanaged address that
 * the entry waits for.
 */
function takesAwaited(subject: Subject, world: World, kinds: GuardInput['kinds']): boolean {
  const waits = ({ desired, binding, parent }: Subject) =>
    desired !== undefined && binding === undefined && parent === undefined;
  return takesFree(subject, world, kinds) !== undefined && world.subjectsOf('ip').some(waits);
}

/** A purchase needs proof that nothing of its line exists: no earlier key has an open creation or a binding. */
export function earlierOpen(draft: Draft, input: GuardInput): Objection | undefined {
  const { register, openIntents, world } = input;
  const { key, kind, desired, binding } = draft.subject;
  // A replacement buys too. The reads may show the resource of the open creation already.
  const isBought = isToBeMade(draft) || draft.diff.verdict.verdict === 'replace';
  if (!isBought || desired === undefined) return undefined;
  // Another entry of the spec has a line of its own.
  const earlier = [...register.line(desired)].filter(
    (each) => world.subjects.get(each)?.desired === undefined,
  );
  for (const each of earlier) {
    const open = openIntents.find((intent) => intent.key === each);
    const bound = world.subjects.get(each)?.binding;
    // A bound entry knows its resource, so that only an open creation may make another one.
    const isKnown = binding !== undefined || isSecondHalf(input, key);
    const isOpen = isKnown ? open?.verb === 'create' : (open ?? bound) !== undefined;
    if (!isOpen) continue;
    const what =
      open === undefined ? `is bound to ${nounOf(kind)} ${bound?.id}` : `has an open write (${open.verb})`;
    const back =
      open === undefined && bound !== undefined && retiredFrom(each) === key
        ? command('adopt', [key, bound.id], { when: `to give ${key} its retiring ${nounOf(kind)} back` })
        : command('apply');
    return {
      reason: `${each}, an earlier key of ${key}, ${what}: another creation could be a duplicate`,
      remedies: open?.phase === 'blocked' ? settleFirst(each) : [back],
    };
  }
  return undefined;
}

/** No key of the line of a purchase was answered with a resource. */
export function lineOpen(
  { subject: { key, kind, desired, binding, parent }, diff: { verdict } }: Draft,
  input: GuardInput,
): Objection | undefined {
  const { register, world } = input;
  if (verdict.verdict === 'delete') return takenBackSoon(world, parent ?? key);
  if (verdict.verdict === 'adopt' && desired?.held?.by === 'found')
    return world.settings.unmanaged === 'ignore' && factsOf(kind).bought
      ? answeredWith(desired, verdict.target, world)
      : undefined;
  const isBought = verdict.verdict === 'create' || verdict.verdict === 'replace';
  if (!isBought || desired === undefined) return undefined;
  const line = register.line(desired);
  if (binding !== undefined || isSecondHalf(input, key)) return besideReleased(desired, line, input);
  const elsewhere = register.answeredElsewhere.get(key);
  if (elsewhere !== undefined)
    return 'key' in elsewhere
      ? answeredWithBound(desired, elsewhere)
      : elsewhere.holder.is === 'found'
        ? answeredWith(desired, elsewhere.id, world)
        : answeredWithIgnored(desired, elsewhere.id, 'which is ignored', world);
  const held = register.held(key);
  // The question to the key has ended in this run. The next plan adopts the resource, if it is not the one that is gone.
  const isNew = held?.holder.is === 'found' && (desired.held === undefined || desired.id !== held.id);
  if (isNew) return answeredWith(desired, held.id, world);
  // The operator has given the object of this line to another entry, and that entry has left its own.
  const takers = [...world.subjects.values()].filter(({ binding: taken }) =>
    taken?.formerKeys?.some((each) => line.has(each)),
  );
  return besideReleased(desired, new Set(takers.map((each) => each.key)), input);
}

/** A key of the line was answered with the resource. Under `unmanaged: ignore`, that may be one of another spec. */
function answeredWith({ key, kind }: DesiredResource, id: string, { settings }: World): Objection {
  if (settings.unmanaged !== 'ignore' || factsOf(kind).bought !== true)
    return {
      code: 'key_conflict',
      reason: `an idempotency key of ${key} was used for ${nounOf(kind)} ${id}`,
      remedies: [command('apply')],
    };
  return answeredWithIgnored({ key, kind }, id, 'which `unmanaged: ignore` ignores');
}

function answeredWithIgnored(
  { key, kind }: Pick<DesiredResource, 'key' | 'kind'>,
  id: string,
  why: string,
  world?: World,
): Objection {
  const what = `${nounOf(kind)} ${id}`;
  const isGone = world !== undefined && isAddress(kind) && world.ip(id) === undefined;
  const reason = `an idempotency key of ${key} was used for ${what}, ${why}${isGone ? '. No read shows it' : ''}`;
  const later = command('apply', [], { when: 'an hour later: another read then confirms that it is gone' });
  const adopt = command('adopt', [key, id], { when: `if ${what} is ${key}` });
  return { code: 'key_conflict', reason, remedies: isGone ? [later] : [adopt, giveScope()] };
}

/** The resource may be bound to the other entry by mistake. The operator decides which entry has the resource. */
function answeredWithBound(
  { key, kind }: DesiredResource,
  { key: other, id, recovered }: Binding,
): Objection {
  const what = `${nounOf(kind)} ${id}`;
  const reason =
    recovered === 'taken'
      ? `${other} has taken over ${what}, which was bound to ${key} before`
      : `an idempotency key of ${key} was used for ${what}, which is bound to ${other}`;
  const restored = edit(other, { entry: 'restore' });
  return {
    code: 'key_conflict',
    reason,
    remedies: [
      command('adopt', [other, id], { when: `if ${what} is ${other}: vdcsync then creates ${key}` }),
      edit(other, {
        entry: 'remove',
        when: `if ${what} is ${key}, which then takes it back`,
        next: [command('apply'), restored],
      }),
      giveScope(),
    ],
  };
}

/** The write of the resource ended in this run, under the key that the spec has renamed back since. */
function takenBackSoon({ subjects }: World, key: ResourceKey): Objection | undefined {
  const taker = subjects.get(key)?.binding?.formerKeys?.find((former) => {
    const { desired, binding } = subjects.get(former) ?? {};
    const isFresh = desired?.managed && desired.id === undefined && desired.moved === undefined;
    return isFresh && binding === undefined;
  });
  if (taker === undefined) return undefined;
  return {
    reason: `${key} is the earlier name of ${taker}, which takes its resource back`,
    remedies: [command('apply')],
  };
}

/** Another resource of these keys was released, or was found under a key, and may be the one of the entry. */
function besideReleased(
  { key, kind }: DesiredResource,
  line: ReadonlySet<ResourceKey>,
  { register, world }: GuardInput,
): Objection | undefined {
  const left = register.claims
    .filter(isHeldClaim)
    .find((claim) => claim.kind === kind && line.has(heldKeysOf(claim)[0]));
  if (left === undefined) return undefined;
  const found = {
    servers: factsOf(kind).container ? [Number(left.id)] : [],
    addresses: isAddress(kind) ? world.addressesOf(left) : [],
  };
  // An address that the list lacks is gone.
  if (isNone(found)) return undefined;
  return {
    code: 'unmanaged_resources',
    reason: `${described(found)} was ${left.holder.is === 'found' ? `created under the idempotency key of ${left.holder.key}` : `released from ${heldKeysOf(left)[0]} before`}, and may still exist: a creation could be a duplicate`,
    remedies: [
      command('adopt', [key, left.id], { when: `if ${key} shall be ${described(found)}` }),
      { ...ignoring(found), when: notOurs(found) },
    ],
  };
}

/** The server would buy an address, although an address that an earlier server of its line had is free, and billed. */
export function releasedAddress(
  { subject: { key, kind, desired }, diff: { verdict } }: Draft,
  input: GuardInput,
): Objection | undefined {
  const { register, world } = input;
  if (verdict.verdict !== 'create' || !factsOf(kind).container) return undefined;
  if (isSecondHalf(input, key)) return undefined;
  if (world.settings.unmanaged === 'ignore') return undefined;
  if (desired === undefined || !('new' in wantedAddress(desired.value))) return undefined;
  const line = register.line(desired);
  const isOfLine = (former: ResourceKey) => line.has(takeApart(former).parent ?? former);
  const free = world.freeIps();
  const left = free.filter((ip) => {
    const holder = register.address(ip);
    return holder.is === 'released' && world.isUnbound(ip) && isOfLine(holder.formerKey);
  });
  if (left.length === 0) return undefined;
  const found = { servers: [], addresses: left };
  const reused = edit(key, { set: { public_ipv4: { reuse: true } }, when: 'to use that address again' });
  return {
    reason: `${described(found)} was released from ${key} before, and is free: the creation would buy another address`,
    remedies: [
      ...(left.length === free.length ? [reused] : []),
      { ...ignoring(found), when: `if ${key} shall get another address` },
    ],
  };
}

/** A creation that takes a free resource could take the result of an unresolved creation. */
export function besideUnresolved(
  { subject: { key, kind }, diff: { verdict } }: Draft,
  input: GuardInput,
): Objection | undefined {
  const { kinds, world, register, openIntents } = input;
  const makes = verdict.verdict === 'create' || verdict.verdict === 'replace';
  if (!makes || openIntents.some((each) => each.key === key)) return undefined;
  const blocked = openIntents.filter(({ phase }) => phase === 'blocked');
  const other = confusableWith(key, blocked, {
    ...{ world, kinds, register: () => register },
    isKnown: isSecondHalf(input, key),
  });
  if (other === undefined) return undefined;
  return {
    reason: `the creation of ${other.key} is unconfirmed, and this creation could be confused with it`,
    remedies: [
      ...(factsOf(kind).container && isConflict(other) ? [adoptedById(key, kind)] : []),
      outside(`resolve ${other.key} first`, { next: [command('apply')] }),
    ],
  };
}

export function adoptedById(key: ResourceKey, kind: Subject['kind']): Remedy {
  return command('adopt', [key, 'ID'], { when: `if ${nounOf(kind)} ID in the client area is ${key}` });
}

/** `isKnown`: the state knows that nothing of the line of the key exists. */
type Confusable = Pick<GuardInput, 'kinds' | 'world'> & {
  readonly register: () => Attribution;
  readonly isKnown?: boolean;
};

/** The unconfirmed creation with which a creation of the key could be confused. */
export function confusableWith(
  key: ResourceKey,
  open: readonly Intent[],
  known: Confusable,
): Intent | undefined {
  return open.find(
    (each) =>
      partsOf(each).unconfirmed !== undefined && each.verb === 'create' && isConfusable(each, key, known),
  );
}

/**
 * Whether one of the two creations takes any free resource in the list in which both show. A resource that appeared since
 * the open creation, and that no read attributes, may then be the result of the other creation as well.
 */
function isConfusable(
  open: Intent,
  key: ResourceKey,
  { kinds, world, register, isKnown = false }: Confusable,
): boolean {
  const subject = world.subjects.get(key);
  if (subject === undefined) return false;
  const { desired, binding } = subject;
  const isUnseen = binding === undefined && !isKnown && desired !== undefined && isBare(desired);
  const other = world.subjects.get(open.key);
  // No read shows a server without an address: it may be that of the open creation, of an unknown name or renamed since.
  const isUnresolved = open.phase === 'blocked' || isConflict(open) || other?.desired === undefined;
  if (isUnseen && factsOf(open.kind).container && isUnresolved) return true;
  // A server shows in the list of addresses. No other creation takes a free resource.
  if (!factsOf(open.kind).bought || !factsOf(subject.kind).bought) return false;
  if (open.phase === 'blocked' && hasComeSince(open, world, register())) return true;
  const takes = takesFree(subject, world, kinds);
  // The waiting creation has had no effect, and it is sent again after this creation has taken the visible resource.
  if (takes === 'shown' && isAddress(open.kind) && open.phase === 'waiting') return false;
  return takes !== undefined || (other && takesFree(other, world, kinds)) !== undefined;
}

/** The idempotency key was used for another request, and the request and its resource are not known. */
export function isConflict(open: Intent): boolean {
  const { blocked, unconfirmed } = partsOf(open);
  return blocked?.code === 'key_conflict' || unconfirmed?.question.conflict === true;
}

/** Which free resource the creation takes: the one that its entry names, or any. */
function takesFree(subject: Subject, world: World, kinds: GuardInput['kinds']) {
  return kinds.get(subject.kind)?.creation?.takesFree?.(subject, world);
}

/** Whether an object that may be the result of the creation has come since the creation was sent. */
function hasComeSince({ preimage }: Pick<Intent, 'preimage'>, world: World, register: Attribution): boolean {
  const isOpen = (held: Attributed) => held.is === 'pending' && !held.certain;
  return (
    world.ips.some((ip) => isOpen(register.address(ip)) && cameSince(preimage, addressObject(ip.id))) ||
    [...serversShown(world)].some(
      (id) => isOpen(register.server(String(id))) && cameSince(preimage, serverObject(id)),
    )
  );
}

/** The second half of a replacement is no duplicate: the replaced resource is gone. */
export function mayDuplicate({ subject, diff }: Pick<Draft, 'subject' | 'diff'>, input: GuardInput): boolean {
  const { unmanaged, exclusive } = input.world.settings;
  const mayBeAnother = exclusive || !isSecondHalf(input, subject.key);
  return isPurchase(subject, diff) && unmanaged !== 'ignore' && mayBeAnother;
}

export function isPurchase({ kind }: Subject, { verdict }: Diff): boolean {
  const isMade = verdict.verdict === 'create' || verdict.verdict === 'replace';
  return isMade && factsOf(kind).bought === true;
}

/** @source API §4: servers cannot be listed */
function unseen({ kind, desired }: Subject, { servers }: World): string {
  if (!factsOf(kind).container || servers !== undefined || desired?.value.public_ipv4 !== undefined)
    return '';
  return '. vdcsync does not see servers without a public address, unless the API profile has `list_servers`';
}
