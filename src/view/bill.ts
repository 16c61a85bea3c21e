import { type Attribution, attribute, serversShown } from '../core/attribute.ts';
import {
  addressObject,
  type Claim,
  foreignClaims,
  isFoundServer,
  type LiveObject,
  objectName,
  serverObject,
} from '../core/claims.ts';
import { money, part } from '../core/decimal.ts';
import { isUnconfirmed, partsOf } from '../core/intent.ts';
import { nounOf, type ResourceKey, takeApart } from '../core/keys.ts';
import { factsOf, isAddress, type KindName } from '../core/kind-facts.ts';
import type { Ip } from '../core/resources.ts';
import type { Intent } from '../core/state.ts';
import { leftBackups } from '../engine/claims/release.ts';
import { isQuiet } from '../plan/unmanaged.ts';
import { entriesIn, knownIn, type ProjectFacts, time, timeOrNull } from './facts.ts';
import type { BilledView, IgnoredObject, ProjectView } from './project-view.ts';

type AddressView = NonNullable<ProjectView['addresses']>[number];

/** The resources that cost money, with and without a use. */
export function billOf(facts: ProjectFacts) {
  const { claims, intents } = knownIn(facts);
  const ips = facts.world?.ips;
  const keyOf = holdersIn(facts);
  const holders = attribute({ ...facts.world, ips: ips ?? [], keyOf }, { claims, intents });
  const boundAt = new Map(
    knownIn(facts).bindings.flatMap((each) => (isAddress(each.kind) ? [[each.id, each.boundAt]] : [])),
  );
  const addresses = ips?.map((ip) => addressView(ip, facts, { holders, keyOf, boundAt })) ?? null;
  const used = (use: AddressView['use']) =>
    addresses?.filter((each) => each.use === use).map(billedAddress) ?? null;
  const idle = used('idle');
  return {
    addresses,
    address_price: priceOf(1, facts),
    billed: billedOf(facts, addresses),
    idle,
    idle_monthly: idle === null ? null : priceOf(idle.length, facts),
    unconfirmed: used('unconfirmed'),
    unconfirmed_creations: intents.filter(mayHaveBought).map(({ key }) => key),
    unmanaged: ips === undefined ? null : unmanagedIn(facts, ips, holders),
    ignored: ignoredObjects(claims, ips),
    left_backups: leftBackups(claims).map(({ server, key, backups, at }) => ({
      ...{ server_id: server, key, backups, since: time(at) },
    })),
  };
}

/** How many addresses and servers with left backups are billed although no entry of the spec asks for them. */
export function leaksIn({
  idle,
  unconfirmed,
  left_backups: left,
}: Pick<ProjectView, 'idle' | 'unconfirmed' | 'left_backups'>): number {
  return unaskedIn({ idle }).length + (unconfirmed?.length ?? 0) + left.length;
}

/** The billed addresses that no server uses, and that no entry of the spec asks for. */
export function unaskedIn({ idle }: Pick<ProjectView, 'idle'>): readonly BilledView[] {
  return (idle ?? []).filter(({ key }) => key === null);
}

/** The entry that is bound to an object, names its id, or plans to adopt it. */
function holdersIn(facts: ProjectFacts): (object: LiveObject) => ResourceKey | undefined {
  const { world, plan } = facts;
  const named = (kind: KindName, id: string | undefined, key: ResourceKey) =>
    id === undefined ? [] : [[objectName({ kind, id }), key] as const];
  // A binding comes last, because it counts more than the other ones.
  const keys = new Map([
    ...(plan?.operations ?? []).flatMap(({ kind, key, verb, target }) =>
      verb === 'adopt' ? named(kind, target, key) : [],
    ),
    ...entriesIn(facts).flatMap(({ kind, key, id }) => named(kind, id ?? world?.observed.get(key)?.id, key)),
    ...knownIn(facts).bindings.flatMap(({ kind, key, id }) => named(kind, id, key)),
  ]);
  return (object) => keys.get(objectName(object));
}

interface Holding {
  readonly holders: Attribution;
  readonly keyOf: (object: LiveObject) => ResourceKey | undefined;
  /** By the live id of the address. */
  readonly boundAt: ReadonlyMap<string, number>;
}

function addressView(ip: Ip, facts: ProjectFacts, { holders, keyOf, boundAt }: Holding): AddressView {
  const holder = holders.address(ip);
  // Through its server, an address has the key of the server.
  const serverKey = 'key' in holder && factsOf(takeApart(holder.key).kind).knownBy ? holder.key : undefined;
  const key = keyOf(addressObject(ip.id)) ?? serverKey ?? null;
  const isOpen = serverKey !== undefined && holder.is === 'pending' && !holder.certain;
  const use =
    ip.server_id !== null ? 'attached' : isQuiet(holder) ? 'ignored' : isOpen ? 'unconfirmed' : 'idle';
  const server = ip.server_id === null ? undefined : keyOf(serverObject(ip.server_id));
  const since = use === 'attached' ? boundAt.get(String(ip.id)) : idleSince(ip, facts);
  return {
    ...{ id: String(ip.id), address: ip.address, key, use, since: timeOrNull(since) },
    ...{ server_id: ip.server_id === null ? null : String(ip.server_id), server: server ?? null },
  };
}

/** From the deletion of the server that held it; without a deletion, from when this process first saw it idle. */
function idleSince(ip: Ip, { known, idleSince: seen }: ProjectFacts): number | undefined {
  const left = known?.history?.find((each) => {
    const { verb, kind, preimage } = each;
    const isDeletion = verb === 'delete' && factsOf(kind).container && partsOf(each).outcome === 'done';
    return isDeletion && preimage.addresses?.includes(ip.address);
  });
  return (left && partsOf(left).closedAt) ?? seen?.get(ip.id);
}

function billedAddress({ id, address, key, since }: AddressView): BilledView {
  return { id, what: `address ${address}`, key, since };
}

/**
 * Includes unsettled creations, resources that wait for adoption, and the servers of others, because they may cost money
 * already.
 */
function billedOf(facts: ProjectFacts, addresses: readonly AddressView[] | null): readonly BilledView[] {
  const { bindings, intents, claims } = knownIn(facts);
  const arriving = intents.flatMap((intent) => {
    const { key, kind, verb, createdAt } = intent;
    const id = partsOf(intent).answer?.id;
    return verb === 'create' && id !== undefined ? [{ key, kind, id, boundAt: createdAt }] : [];
  });
  const adopted = new Set(bindings.map(({ key }) => key));
  const adopting = (facts.plan?.operations ?? []).flatMap(({ key, kind, verb, target: id }) =>
    verb === 'adopt' && id !== undefined && !adopted.has(key) ? [{ key, kind, id, boundAt: undefined }] : [],
  );
  const ended = [
    ...(facts.plan?.warnings ?? []).filter(({ code }) => code === 'released'),
    ...(facts.plan?.blocked ?? []).filter(({ code }) => code === 'not_found'),
  ];
  const ending = new Set(ended.map(({ key }) => key));
  const bound = bindings.filter(({ key }) => !ending.has(key) || facts.world?.observed.has(key) !== false);
  // The creation of a resource may still be open that another key is bound to.
  const each = Map.groupBy([...bound, ...arriving, ...adopting], objectName);
  const bought = [...each.values()]
    .flatMap(([first]) => first ?? [])
    .filter(({ kind }) => factsOf(kind).counted)
    .map(({ id, kind, key, boundAt }) => billed(id, nounOf(kind), key, boundAt));
  const recorded = bindings
    .filter(({ kind }) => isAddress(kind))
    .map(({ id, key, identity, boundAt }) => billed(id, 'address', key, boundAt, identity.address));
  const known = new Set(bought.map(({ what }) => what));
  const foreign = foreignClaims(claims);
  const left = foreign
    .filter(({ kind }) => isAddress(kind))
    .map(({ id, identity }) => billed(id, 'address', null, undefined, identity.address));
  const outside = [...foreign.filter(({ kind }) => factsOf(kind).container), ...claims.filter(isFoundServer)];
  const others = [
    ...new Set([...serversShown(facts.world ?? { ips: [] }), ...outside.map(({ id }) => Number(id))]),
  ]
    .map((id) => billed(String(id), 'server', null))
    .filter(({ what }) => !known.has(what));
  const backups = leftBackups(claims).flatMap(({ server, key, backups: ids, at }) =>
    ids.map((id) => billed(id, 'backup', key, at, `${id} of server ${server}`)),
  );
  const released = claims
    .filter(
      ({ kind, holder }) => factsOf(kind).counted && !factsOf(kind).container && holder.is === 'released',
    )
    .map(({ kind, id, parentId, at }) =>
      billed(id, nounOf(kind), null, at, parentId && `${id} of server ${parentId}`),
    );
  return [
    ...bought,
    ...others,
    ...(addresses?.map(billedAddress) ?? [...recorded, ...left]),
    ...backups,
    ...released,
  ];
}

function billed(id: string, noun: string, key: ResourceKey | null, since?: number, called = id): BilledView {
  return { id, what: `${noun} ${called}`, key, since: timeOrNull(since) };
}

/** A creation of a billed resource that was sent, and whose effect is neither known nor excluded. */
function mayHaveBought(intent: Intent): boolean {
  const { verb, kind } = intent;
  const { answer } = partsOf(intent);
  const { counted, bought } = factsOf(kind);
  if (verb !== 'create' || (counted ?? bought) === undefined || answer?.id !== undefined) return false;
  return answer !== undefined || isUnconfirmed(intent);
}

/** With `unmanaged: ignore` they count as ignored. */
function unmanagedIn({ offer }: ProjectFacts, ips: readonly Ip[], { unmanaged }: Attribution) {
  if (offer?.desired.settings.unmanaged === 'ignore') return [];
  const ofServers = unmanaged.servers.map((id) => serverWith(ips, id));
  const servers = new Set<number | null>(unmanaged.servers);
  const alone = unmanaged.addresses.filter(({ server_id }) => !servers.has(server_id));
  return [...ofServers, ...alone.map(({ id, address }) => ({ ...addressObject(id), addresses: [address] }))];
}

function priceOf(addresses: number, { prices }: ProjectFacts): ProjectView['address_price'] {
  if (prices?.address === undefined) return null;
  return { currency: prices.currency ?? null, known: money(part(prices.address, addresses)) };
}

/**
 * The ignored and released objects, except for addresses that are reported as idle. `ips` is empty if the API was not
 * read.
 */
export function ignoredObjects(claims: readonly Claim[], ips: readonly Ip[] = []): readonly IgnoredObject[] {
  const foreign = foreignClaims(claims);
  const isServer = ({ kind }: Claim) => factsOf(kind).container === true;
  const servers = new Set(foreign.filter(isServer).map(({ id }) => Number(id)));
  const isReported = ({ id, identity, holder }: Claim) => {
    const live = ips.find((ip) => String(ip.id) === id && ip.address === identity.address);
    if (live === undefined) return false;
    return live.server_id === null ? !isQuiet(holder) : servers.has(live.server_id);
  };
  return [
    ...[...servers].map((id) => serverWith(ips, id)),
    ...foreign
      .filter((claim) => !isServer(claim) && !isReported(claim))
      .map(({ kind, id, identity: { address } }) => ({ kind, id, addresses: [address ?? []].flat() })),
  ];
}

/** A server, with the addresses that it holds. */
function serverWith(ips: readonly Ip[], id: number) {
  const addresses = ips.filter(({ server_id }) => server_id === id).map(({ address }) => address);
  return { ...serverObject(id), addresses };
}

/** `server 2001 (203.0.113.10)`, `address 203.0.113.11`. */
export function ignoredName({ kind, id, addresses }: IgnoredObject): string {
  const names = addresses.join(', ');
  if (!factsOf(kind).container) return `${nounOf(kind)} ${names}`;
  return `${nounOf(kind)} ${id}${names === '' ? '' : ` (${names})`}`;
}
