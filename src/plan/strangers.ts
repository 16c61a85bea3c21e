import type { KindName, ResourceKey } from '../core/keys.ts';
import { topLevelKey } from '../core/keys.ts';
import type { SeenServer, Subject, World } from '../core/kind.ts';
import { type Remedy, type Run, run } from '../core/remedy.ts';
import type { Ip, NetworkInterface } from '../core/resources.ts';
import type { Intent } from '../core/state.ts';

/** What is billed in the project and is neither in the file nor in the state. */
export interface Strangers {
  readonly servers: readonly number[];
  /** Theirs, and those that are free. */
  readonly addresses: readonly Ip[];
}

/** Servers of which nothing but a network's count is to be seen. */
export interface Unlisted {
  readonly network: string;
  readonly servers: number;
}

/** Strangers, and what was known of the project before. */
export interface Found extends Strangers {
  /** What the state knew: nothing, or what was there. */
  readonly since: 'new' | 'settled';
  readonly unlisted?: Unlisted | undefined;
  /** Held by this file's servers, and bought by nobody knows whom: an entry of `ips` may stand for them. */
  readonly held?: readonly Ip[];
  readonly vouched?: Vouched | undefined;
  readonly declaredAbsent?: readonly DeclaredAbsent[];
}

/** A creation that the operator has declared absent with `resolve --absent`. */
export interface DeclaredAbsent {
  readonly key: ResourceKey;
  readonly kind: 'server' | 'ip';
  /** Wall ms. */
  readonly at: number;
  /** Ids in the lists from before the creation: none of them is its result. */
  readonly servers: readonly (number | string)[];
  readonly ips: readonly (number | string)[];
}

/**
 * Strangers that are known to be somebody else's: they were there when this state came to
 * the project, or an operator said so. Whatever comes later may be what another copy of the
 * state has bought.
 */
export interface Vouched {
  readonly servers: readonly number[];
  /** Id and address: an id may be used again. @assumption A17 */
  readonly addresses: readonly string[];
  /** Of `addresses`, those that an operator has said are somebody else's: what they cost is told no more. */
  readonly ignored?: readonly string[];
  /** What keys stood for until the file said that it is not managed, by id or address name. */
  readonly letGo?: Readonly<Record<ResourceKey, string>>;
  /** Whoever is not vouched for came later: the project was seen without other strangers, or the file ignored them. */
  readonly settled?: boolean;
  /** Those that lists lacked, by server id or address name, and when that was first seen, wall ms. */
  readonly missed?: Readonly<Record<string, number>>;
}

/** What is nobody's new one, by kind. */
export type Accounted = (kind: KindName, id: string) => boolean;

/** Whether what has the id that a key is bound to is another one by now. @assumption A17 */
export type Changed = (key: ResourceKey) => boolean;

export const nobody: Vouched = { servers: [], addresses: [] };

/** How an address is remembered. */
export function nameOf({ id, address }: Ip): string {
  return `${id} ${address}`;
}

/** Whether an operator has said of the address that it is somebody else's. */
export function isIgnored(ip: Ip, vouched: Vouched | undefined): boolean {
  return vouched?.ignored?.includes(nameOf(ip)) === true;
}

/** Every stranger that nobody has vouched for. */
export function findStrangers(
  world: World,
  vouched: Vouched = nobody,
  accounted: Accounted = () => false,
  changed: Changed = () => false,
): Strangers {
  const isVouched = vouchedServers(world, vouched);
  const addresses = new Set(vouched.addresses);
  const isBound = (kind: KindName, id: number) => {
    const key = world.keyOf(kind, String(id));
    return key !== undefined && !changed(key);
  };
  const isKnown = (id: number) => isVouched(id) || isBound('server', id) || accounted('server', String(id));
  return {
    servers: [...serversShown(world)].filter((id) => !isKnown(id)),
    addresses: world.ips.filter(
      (ip) =>
        !addresses.has(nameOf(ip)) &&
        !isBound('ip', ip.id) &&
        !accounted('ip', String(ip.id)) &&
        !(ip.server_id !== null && isKnown(ip.server_id)),
    ),
  };
}

/** The ids of servers that addresses or the list of servers show. */
export function serversShown({ ips, servers = [] }: World): ReadonlySet<number> {
  return new Set<number>([
    ...ips.flatMap(({ server_id }) => server_id ?? []),
    ...servers.map(({ id }) => id),
  ]);
}

/** Those that an entry of the kind may stand for. */
export function strangersFor(kind: KindName, { servers, addresses, held = [] }: Found): Strangers {
  return { servers, addresses: kind === 'ip' ? [...addresses, ...held] : addresses };
}

/** Servers that are still what was vouched for: one whose addresses are all others has the id anew. @assumption A17 */
export function vouchedServers(world: World, { servers, addresses }: Vouched): (id: number) => boolean {
  const ids = new Set(servers);
  const names = new Set(addresses);
  return (id) => {
    const held = world.ipsOf(String(id)).filter(world.isNobodys);
    return ids.has(id) && (held.length === 0 || held.some((ip) => names.has(nameOf(ip))));
  };
}

/** An address that was vouched for by itself, and not with the server that holds it. */
export function isLeftAlone(world: World, vouched: Vouched | undefined, id: string): boolean {
  const ip = world.ip(id);
  if (ip === undefined || vouched === undefined || !vouched.addresses.includes(nameOf(ip))) return false;
  return ip.server_id === null || !vouched.servers.includes(ip.server_id);
}

/**
 * Where more servers are attached than are known to have a card there: the rest has no
 * public address, so no list shows it. @source API §2
 *
 * @param others the cards of servers that are not this file's
 */
export function unlisted(
  world: World,
  others: readonly (readonly NetworkInterface[])[] = [],
): Unlisted | undefined {
  if (world.listsServers()) return undefined;
  const ours = world.subjectsOf('server').flatMap(({ key }) => {
    const cards = (world.observed.get(key) as SeenServer | undefined)?.cards;
    return cards === undefined ? [] : [cards];
  });
  const isIn = (network: number, cards: readonly NetworkInterface[]) =>
    cards.some(({ network_id }) => network_id === network);
  const attached = [...ours, ...others];
  const more = world.networks
    .map(({ id, name, server_count }) => ({
      network: name,
      servers: (server_count ?? 0) - attached.filter((cards) => isIn(id, cards)).length,
    }))
    .sort((a, b) => b.servers - a.servers);
  return more.find(({ servers }) => servers > 0);
}

export function isNone({ servers, addresses }: Strangers): boolean {
  return servers.length + addresses.length === 0;
}

/** For a message: `servers 2001 (203.0.113.10) and 2002, and address 203.0.113.11`. */
export function described({ servers, addresses }: Strangers): string {
  const held = (id: number) => addresses.filter(({ server_id }) => server_id === id);
  const free = addresses.filter(({ server_id }) => server_id === null || !servers.includes(server_id));
  const named = servers.map((id) => {
    const its = held(id).map(({ address }) => address);
    return `${id}${its.length === 0 ? '' : ` (${its.join(', ')})`}`;
  });
  const groups = [
    ...counted('server', named),
    ...counted(
      'address',
      free.map(({ address }) => address),
    ),
  ];
  return groups.join(named.length > 1 || free.length > 1 ? ', and ' : ' and ');
}

function counted(noun: 'server' | 'address', names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const [last, ...others] = [...names].reverse();
  if (others.length === 0) return [`${noun} ${last}`];
  return [`${noun === 'server' ? 'servers' : 'addresses'} ${others.reverse().join(', ')} and ${last}`];
}

/** For a message: the creations that were declared absent and may have made one of them. */
export function perhapsAbsent(
  { servers, addresses }: Strangers,
  declared: Found['declaredAbsent'] = [],
): string {
  const cameSince = (before: readonly (number | string)[], ids: readonly number[]) =>
    ids.filter((id) => !before.map(String).includes(String(id)));
  const texts = declared.flatMap(({ key, kind, at, servers: known, ips }) => {
    const came =
      kind === 'server'
        ? cameSince(known, servers)
        : addresses.flatMap(({ id, address }) => (cameSince(ips, [id]).length > 0 ? [address] : []));
    const date = new Date(at).toISOString().slice(0, 10);
    return came.length === 0
      ? []
      : [`${came.join(' or ')} may be ${key}, which was declared absent on ${date} (\`resolve --absent\`)`];
  });
  return texts.join('; ');
}

/** The command that says of all of them that they are somebody else's. */
export function ignoring({ servers, addresses }: Strangers): Remedy & Run {
  const free = addresses.filter(({ server_id }) => server_id === null || !servers.includes(server_id));
  return run('ignore', [...servers, ...free.map(({ address }) => address)]);
}

/**
 * The one stranger that each entry may stand for. Nothing where several would do, or where
 * one would do for several entries: a wrong guess is not to be copied from a message.
 */
export function matches(
  buyers: readonly Subject[],
  strangers: Found,
  world: World,
): ReadonlyMap<ResourceKey, string> {
  const options = buyers.map((subject) => ({
    subject,
    ids: candidates(subject, strangersFor(subject.kind, strangers), world),
  }));
  return new Map(
    options.flatMap(({ subject, ids }) => {
      const [only, another] = ids;
      const rivals = options.filter(
        (each) => each.subject.kind === subject.kind && each.ids.includes(only ?? ''),
      );
      return only === undefined || another !== undefined || rivals.length > 1 ? [] : [[subject.key, only]];
    }),
  );
}

function candidates({ kind, desired }: Subject, { servers, addresses }: Strangers, world: World): string[] {
  if (kind === 'ip') return addresses.map(({ id }) => String(id));
  const entry = (desired?.value ?? {}) as {
    readonly name?: string;
    readonly public_ipv4?: { readonly ip?: string };
  };
  const listed = new Map((world.servers ?? []).map((each) => [each.id as number, each.name.trim()]));
  const named = servers.filter((id) => listed.get(id) === entry.name);
  const wanted = entry.public_ipv4?.ip;
  const own = wanted === undefined ? undefined : world.ip(world.idOf(topLevelKey('ips', wanted)) ?? '');
  const holds = (id: number) => world.ipsOf(String(id)).length > 0;
  const fitting =
    named.length > 0
      ? named
      : servers.filter((id) =>
          own === undefined ? holds(id) === (entry.public_ipv4 !== undefined) : own.server_id === id,
        );
  return fitting.map(String);
}

/** What open writes have made, may have made, or have just removed, beside what is bound. */
export function underWay(intents: readonly Intent[], removed: readonly Intent[] = []): Accounted {
  const known = new Set([
    ...intents.flatMap(({ kind, resourceId, blocked }) =>
      // Where reads do not show what it made, what has the id is another one.
      [...(blocked?.code === 'not_there' ? [] : [resourceId]), ...(blocked?.candidates ?? [])].map(
        (id) => `${kind} ${id}`,
      ),
    ),
    ...removed.map(({ kind, request }) => `${kind} ${request.path.id}`),
  ]);
  const unsure = intents.filter(
    ({ verb, kind, ambiguous, phase }) =>
      verb === 'create' && (kind === 'server' || kind === 'ip') && (ambiguous || phase === 'sending'),
  );
  return (kind, id) =>
    known.has(`${kind} ${id}`) || unsure.some(({ preimage }) => cameSince(preimage, kind, id));
}

/** An open creation that may be the cause of it: evidence tells, or an operator. */
function cameSince(preimage: unknown, kind: KindName, id: string): boolean {
  const lists = preimage as { readonly servers?: readonly number[]; readonly ips?: readonly number[] };
  const before = kind === 'server' ? lists.servers : lists.ips;
  return before !== undefined && !before.map(String).includes(id);
}

/** Whether an address or a server that no key stands for has come since the creation was sent. */
export function hasComeSince({ preimage }: Pick<Intent, 'preimage'>, world: World): boolean {
  return (
    world.ips.some((ip) => world.isNobodys(ip) && cameSince(preimage, 'ip', String(ip.id))) ||
    [...serversShown(world)].some(
      (id) => world.keyOf('server', String(id)) === undefined && cameSince(preimage, 'server', String(id)),
    )
  );
}
