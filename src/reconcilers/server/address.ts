import { addressObject, serverObject } from '../../core/claims.ts';
import { bindingBy, type EntryFields, namedAddress } from '../../core/desired.ts';
import { member } from '../../core/json.ts';
import { childKey, type ResourceKey, retiredFrom, retiringKey } from '../../core/keys.ts';
import type { Diff, Subject, World } from '../../core/kind.ts';
import { type Operation, type OperationId, operationId, type Warning } from '../../core/plan.ts';
import type { StaleReads, WriteRequest } from '../../core/ports.ts';
import { command, edit, outside, type Remedy, settleFirst } from '../../core/remedy.ts';
import type { Ip } from '../../core/resources.ts';
import { formerAddress, holderOf, isGivenUp, isKept, poolOf } from '../address-pool.ts';
import { priceOfAddress } from '../prices.ts';
import type { BodyProblem } from './body.ts';
import type { ServerEntry, ServerObserved } from './entry.ts';
import { orderOf } from './existing.ts';

/**
 * The public address in the request that creates a server.
 *
 * `{ip: NAME}` has no documented form of its own: `{reuse: true}` takes *a* free address,
 * so it takes the named address only if that is the only free one. Hence the checks
 * and the order in this spec. With the profile's `named_address` neither is needed. A server that is created again
 * takes its former address in the same way.
 *
 * @source API §4 POST /servers body
 */
export function sentAddress(key: ResourceKey, entry: ServerEntry, world: World): unknown {
  if (formerAddress(key, world) === undefined && namedAddress(entry) === undefined) return entry.public_ipv4;
  const template = world.profile.operations.named_address?.body;
  if (template === undefined) return { reuse: true };
  return fill(template, Number(world.idOf(claimedBy(key, world) ?? key)));
}

/** The address as one word, for plans and comparison. */
export function addressOf(entry: Pick<EntryFields, 'public_ipv4'>): string | undefined {
  const wanted = entry.public_ipv4;
  return namedAddress(entry) ?? (wanted && (wanted.new ? 'new' : 'reuse'));
}

/** The reason why `{ip: NAME}` is not possible now. */
export function addressProblem(key: ResourceKey, entry: ServerEntry, world: World): BodyProblem | undefined {
  const ipKey = namedAddress(entry);
  if (ipKey === undefined) return undefined;
  const id = world.idOf(ipKey);
  const live = id === undefined ? undefined : world.ip(id);
  const holder = live?.server_id ?? null;
  const subject = world.subjects.get(key);
  const isOwn = String(holder) === subject?.binding?.id;
  if (holder !== null && !isOwn && leavingHolder(key, world) === undefined) {
    const owner = world.keyOf(serverObject(holder));
    const isReplaced = owner !== undefined && isGivenAway(ipKey, owner, world);
    if (owner !== undefined && (isReplaced || isDeletedUnasked(owner, world))) {
      const end = isReplaced ? 'replacement' : 'deletion';
      const reason = `waits for ${owner}, which holds ${ipKey} (${live?.address}) until its ${end}`;
      return { code: 'dependency_blocked', reason, remedies: () => settleFirst(owner) };
    }
    const called = owner === undefined ? `server ${holder}` : `${owner} (server ${holder})`;
    const when = `if server ${holder} is ${key}: see the client area`;
    const adopt = command('adopt', [key, holder], { when });
    return {
      code: 'address_in_use',
      reason: `${ipKey} (${live?.address}) is attached to ${called}`,
      remedies: () => [
        ...(owner === undefined ? [bindingBy(subject?.desired, adopt)] : []),
        edit(key, { choose: { public_ipv4: [] }, when: 'to use another address' }),
        outside(`delete ${called} first`, { about: [String(holder)] }),
      ],
    };
  }
  if (world.profile.operations.named_address !== undefined) return undefined;
  const goesFirst = subject && world.settings.prune ? releasedFirst(subject, world) : [];
  const isGoing = ({ id }: Ip) => goesFirst.some((each) => each === world.keyOf(addressObject(id)));
  const isInTheWay = (each: Ip) =>
    String(each.id) !== id && !isGoing(each) && !mayExchange(each, ipKey, world);
  const others = world.freeIps().filter(isInTheWay);
  const left = keepsOld(key, world)
    ? []
    : otherAddressesOf(key, id, world).filter((each) => staysBehind(each, world));
  const allBound = others.every((each) => !world.isUnbound(each));
  const [other, ...further] = [...others, ...left];
  if (other === undefined) return undefined;
  const more = further.length > 0 ? ` and ${further.length} more are` : ' is';
  const once = others.length > 0 ? '' : ' once the old server is deleted';
  const about = others.map(({ address }) => address);
  return {
    code: 'address_not_the_only_free_one',
    reason: `the API attaches any free address, and ${other.address}${more} free too${once}: the server could get another address than ${ipKey}`,
    remedies: () => [
      ...(others.length > 0 && allBound
        ? [outside(`attach or delete ${about.join(', ')}`, { about })]
        : left.flatMap((each) => leftOut(each, world))),
      ...(others.length === 0
        ? [edit(key, { set: { replace: { order: 'create_first' } }, when: 'if its type has no packages' })]
        : []),
      // With `reuse`, the server could take the address of another user.
      allBound
        ? edit(key, { set: { public_ipv4: { reuse: true } } })
        : edit(key, { set: { public_ipv4: { new: true } }, when: 'to buy an address with the server' }),
      outside('enable `named_address` in the API profile'),
    ],
  };
}

/** The server that holds the address retires, or is replaced to get another one. */
function isGivenAway(address: ResourceKey, server: ResourceKey, world: World): boolean {
  const subject = world.subjects.get(server);
  if (subject?.desired === undefined) return retiredFrom(server) !== undefined;
  const { managed, value } = subject.desired;
  return managed && addressOf(value) !== address && isGivenUp({ key: address }, subject);
}

/**
 * Whether the server may get this free address instead: the key of this address and the named key then exchange their
 * addresses. Both are of this spec and of one pool, and no entry fixes one of them by `id:` or `protect`.
 */
export function mayExchange({ id }: Pick<Ip, 'id'>, named: ResourceKey, world: World): boolean {
  const key = world.keyOf(addressObject(id));
  const [one, other] = [named, key].map((each) => each && world.subjects.get(each));
  if (one === undefined || other?.binding === undefined || other.desired === undefined) return false;
  if (other.parent !== undefined) return false;
  return !isFixed(one) && !isFixed(other) && poolOf(one) === poolOf(other);
}

function isFixed({ desired, binding }: Subject): boolean {
  return desired?.id !== undefined || (desired ?? binding)?.protect === true;
}

/** The keys whose address the server may get instead of the address that its entry names. */
export function mayExchangeWarning(key: ResourceKey, entry: ServerEntry, world: World): Warning[] {
  const named = namedAddress(entry);
  if (named === undefined || world.profile.operations.named_address !== undefined) return [];
  const id = world.idOf(named);
  const others = world
    .freeIps()
    .filter((each) => String(each.id) !== id && mayExchange(each, named, world))
    .flatMap((each) => world.keyOf(addressObject(each.id)) ?? []);
  if (id === undefined || others.length === 0) return [];
  const message = `the API attaches any free address: ${named} may exchange its address with ${others.join(' or ')}. To prevent this, write \`id: ${id}\` in the entry of ${named}, or enable \`named_address\` in the API profile`;
  return [{ code: 'addresses_may_exchange', key, message }];
}

/** The edit by which an address that would remain in the project is released before its server is deleted. */
function leftOut({ id }: Ip, world: World): readonly Remedy[] {
  const key = world.keyOf(addressObject(id));
  if (key === undefined || world.subjects.get(key)?.parent !== undefined) return [];
  const when = 'with `prune: true` under `settings`, the next apply then deletes the address first';
  return [edit(key, { entry: 'remove', when })];
}

/** The server that holds the address which the new server must get, and is deleted first: its entry has left the spec. */
function leavingHolder(key: ResourceKey, world: World): ResourceKey | undefined {
  const ip = world.isThere(key) ? undefined : claimedBy(key, world);
  const holder = ip === undefined ? undefined : holderOf(ip, world);
  return holder !== undefined && isDeletedUnasked(holder, world) ? holder : undefined;
}

/** The server has left the spec, and is deleted without a question. */
function isDeletedUnasked(server: ResourceKey, world: World): boolean {
  const { binding, desired } = world.subjects.get(server) ?? {};
  const goes = binding !== undefined && desired === undefined && !binding.protect && !binding.recovered;
  return goes && world.settings.prune && retiredFrom(binding.key) === undefined;
}

/**
 * The resources that go before a free address is taken: the server that holds the address, addresses of the server that
 * have left the spec, and addresses that were created with a server that is gone.
 */
export function releasedFirst({ key }: Subject, world: World): readonly ResourceKey[] {
  if (!takesAddress(key, world)) return [];
  const subjectOf = ({ id }: Ip) => world.subjects.get(world.keyOf(addressObject(id)) as ResourceKey) ?? [];
  const replaced = (keepsOld(key, world) ? [] : otherAddressesOf(key, undefined, world))
    .flatMap(subjectOf)
    .filter(({ parent, desired }) => parent === undefined && desired === undefined);
  const left = world
    .freeIps()
    .flatMap(subjectOf)
    .filter(
      (each) =>
        each.parent !== undefined &&
        // The address of a replaced server stays until the new server exists.
        retiredFrom(each.key) === undefined &&
        formerAddress(each.parent, world) === undefined &&
        !isKept(each, world.subjects.get(each.parent), world),
    );
  const holder = leavingHolder(key, world);
  return [...(holder === undefined ? [] : [holder]), ...[...replaced, ...left].map((each) => each.key)];
}

/** Whether the server that the key is bound to holds its addresses until the new server exists. */
function keepsOld(key: ResourceKey, world: World): boolean {
  const subject = world.subjects.get(key) as Subject<ServerEntry> | undefined;
  const live = world.observed.get(key) as ServerObserved | undefined;
  if (subject?.desired === undefined || live?.id === undefined) return false;
  return orderOf({ subject, entry: subject.desired.value, live, world }) === 'create_first';
}

/** The addresses of the server that a key is bound to, except for the address with that id. */
function otherAddressesOf(key: ResourceKey, id: string | undefined, world: World): readonly Ip[] {
  return world.ipsOf(world.idOf(key) ?? '').filter((each) => String(each.id) !== id);
}

/** The address still exists, and is free, when another server is created after the deletion of its server. */
function staysBehind(address: Ip, world: World): boolean {
  const names = world.subjectsOf('ip').filter(({ key }) => world.idOf(key) === String(address.id));
  // The address that came with the server is deleted once the other server exists.
  const stays = (each: Subject) => each.parent !== undefined || each.desired !== undefined;
  return names.length === 0 || names.some(stays);
}

/** The price of an address of the server's own; `{reuse: true}` takes a free one as long as there is one. */
export function addressAlongside(
  key: ResourceKey,
  { public_ipv4: wanted }: ServerEntry,
  world: World,
): Pick<Diff, 'alongside'> {
  const isNew =
    formerAddress(key, world) === undefined && (wanted?.new || (wanted?.reuse && !findsFree(key, world)));
  return isNew ? { alongside: { key: childKey(key, 'public_ipv4'), price: priceOfAddress(world) } } : {};
}

/** Servers that would take a free address do so one after the other; a replaced server frees its own address first. */
function findsFree(key: ResourceKey, world: World): boolean {
  const takers = world
    .serverSubjects()
    .filter((each) => each.key === key || !world.isThere(each.key))
    .filter(({ desired }) => desired?.value.public_ipv4?.reuse)
    .map((each) => each.key)
    .sort();
  const left = keepsOld(key, world) ? [] : world.ipsOf(world.idOf(key) ?? '').filter(world.isUnbound);
  const free = world.freeIps().filter((ip) => !isReleased(ip, world));
  return takers.indexOf(key) < free.length + left.length;
}

/** The address has left the spec, and is released before a free one is taken. */
function isReleased({ id }: Ip, { settings, keyOf, subjects }: World): boolean {
  const key = keyOf(addressObject(id));
  return settings.prune && key !== undefined && subjects.get(key)?.desired === undefined;
}

/**
 * The order decides which server gets which address: claims first, then operations that free other addresses, and last
 * servers that take any address. An unconfirmed operation never waits for an operation that waits for its confirmation.
 */
export function addressSequence(
  operations: readonly Operation[],
  world: World,
  unconfirmed: ReadonlySet<ResourceKey>,
): ReadonlyMap<OperationId, readonly OperationId[]> {
  const claims = claimSequence(operations, world, unconfirmed);
  // An address that must be released is gone before `{reuse: true}` could take it, which would block its release.
  const ids = new Set(operations.map(({ id }) => id));
  const staysUntilReplaced = ({ key }: Operation) => {
    const server = world.ip(world.idOf(key) ?? '')?.server_id ?? null;
    const holder = server === null ? undefined : world.keyOf(serverObject(server));
    return holder !== undefined && ids.has(operationId('delete', retiringKey(holder, String(server))));
  };
  const releases = operations
    .filter(({ kind, verb }) => kind === 'ip' && verb === 'delete')
    .filter((each) => retiredFrom(each.key) === undefined && !staysUntilReplaced(each));
  const takers = operations.filter(
    ({ kind, verb, key }) => kind === 'server' && verb === 'create' && wantedBy(key, world)?.reuse,
  );
  const after = takers.map(({ id, key: taker }) => {
    // A claim comes before the deletion of the server that holds the address, so it waits only for addresses that are free.
    const waits = !unconfirmed.has(taker) && claimedBy(taker, world) === undefined;
    const first = releases.filter(({ key }) => waits || isIdle(key, world));
    return [id, [...(claims.get(id) ?? []), ...first.map((each) => each.id)]] as const;
  });
  return new Map([...claims, ...after]);
}

/** The address is free, and no server is created in place of its former server: it is released at any time. */
function isIdle(address: ResourceKey, world: World): boolean {
  const isOwn = world.subjects.get(address)?.parent !== undefined;
  return !isOwn && world.ip(world.idOf(address) ?? '')?.server_id === null;
}

/**
 * Servers that claim a named address are created one after the other. Each address is allocated
 * only when the claim before it is settled: else `{reuse: true}` could take another address.
 * Operations that free further addresses come after all claims: releases of unclaimed addresses,
 * deletions of servers, and creations of servers that take any free address. The deletion of a server that holds a
 * claimed address comes directly before its claim. If a request can name its address, only the servers that take any free
 * address wait for claims.
 */
function claimSequence(
  operations: readonly Operation[],
  world: World,
  unconfirmed: ReadonlySet<ResourceKey>,
): ReadonlyMap<OperationId, readonly OperationId[]> {
  const isNamed = world.profile.operations.named_address !== undefined;
  const claims = operations
    .flatMap(({ id, kind, verb, key }) => {
      const ip = kind === 'server' && verb === 'create' ? claimedBy(key, world) : undefined;
      if (ip === undefined) return [];
      const isUnconfirmed = unconfirmed.has(key) || unconfirmed.has(ip);
      const holder = leavingHolder(key, world);
      const rank = holder !== undefined ? 3 : world.isThere(ip) ? 0 : isUnconfirmed ? 1 : 2;
      return [{ id, key, ip, holder, rank }];
    })
    // The first claim would take the address that is free already; an unconfirmed address may be free as well.
    .sort((a, b) => a.rank - b.rank || (a.key < b.key ? -1 : 1));
  const free = claims.filter(({ rank }) => rank === 0);
  const placeOf = new Map(
    claims.flatMap(({ key, ip, holder }, at) =>
      [key, ip, ...(holder === undefined ? [] : [holder])].map((each) => [each, at] as const),
    ),
  );
  const edges = new Map<OperationId, readonly OperationId[]>();
  for (const { id, kind, verb, key } of operations) {
    const moves = kind === 'server' || (kind === 'ip' && verb === 'create');
    if (!moves || !(verb === 'delete' || kind === 'ip' || takesAddress(key, world))) continue;
    if (isNamed && !(kind === 'server' && verb === 'create' && claimedBy(key, world) === undefined)) continue;
    // The deletion of a replaced server follows its own claim.
    const own = placeOf.get(retiredFrom(key) ?? key);
    const at =
      own === undefined
        ? (unconfirmed.has(key) ? free : claims).length
        : own + (retiredFrom(key) === undefined ? 0 : 1);
    edges.set(
      id,
      claims.slice(isNamed ? 0 : Math.max(0, at - 1), at).map((claim) => claim.id),
    );
  }
  return edges;
}

/** The API gives the server a free address. If the spec names an address, that must be the only free one. */
export function takesFree(key: ResourceKey, world: World): 'shown' | 'any' | undefined {
  const ip = claimedBy(key, world);
  if (ip === undefined) return takesAddress(key, world) ? 'any' : undefined;
  if (world.profile.operations.named_address !== undefined) return undefined;
  return world.isThere(ip) ? 'shown' : 'any';
}

/** The key of the address that the new server must get. */
function claimedBy(key: ResourceKey, world: World): ResourceKey | undefined {
  if (formerAddress(key, world) !== undefined) return childKey(key, 'public_ipv4');
  return namedAddress(world.subjects.get(key)?.desired?.value);
}

function takesAddress(key: ResourceKey, world: World): boolean {
  const wanted = wantedBy(key, world);
  return wanted !== undefined && (!wanted.new || formerAddress(key, world) !== undefined);
}

function wantedBy(key: ResourceKey, world: World) {
  return world.subjects.get(key)?.desired?.value.public_ipv4;
}

/** A body template with `{ip_id}` filled in; alone in a string it becomes a number. */
function fill(template: unknown, ipId: number): unknown {
  if (template === '{ip_id}') return ipId;
  if (typeof template === 'string') return template.replaceAll('{ip_id}', String(ipId));
  if (Array.isArray(template)) return template.map((each) => fill(each, ipId));
  if (typeof template !== 'object' || template === null) return template;
  return Object.fromEntries(Object.entries(template).map(([name, value]) => [name, fill(value, ipId)]));
}

/** The answers that a write about a server makes untrue. Its deletion detaches it from everything. */
export function staleAfter({ name, path, body }: WriteRequest): StaleReads {
  if (name === 'delete_server') return { lists: ['ips', 'findIp', 'networks', 'servers'], server: path.id };
  if (name === 'resize_server') return { lists: ['servers'], server: path.server_id, inside: ['findServer'] };
  // A newly created address does not change the free addresses. A server that asks for no address may get one.
  // @assumption A22
  const takesNew = member(member(body, 'public_ipv4'), 'new') === true;
  return { lists: ['servers', ...(takesNew ? [] : (['ips', 'findIp'] as const))] };
}
