import {
  addressObject,
  type Claim,
  type Holder,
  isForeign,
  isFoundServer,
  type LiveObject,
  objectName,
  serverObject,
} from './claims.ts';
import { isUnconfirmed, partsOf } from './intent.ts';
import { childKey, type ResourceKey } from './keys.ts';
import { factsOf, isAddress } from './kind-facts.ts';
import type { ReadPort } from './ports.ts';
import type { Preimage } from './preimage.ts';
import type { Ip, Network, NetworkInterface, ServerId } from './resources.ts';
import type { Intent } from './state.ts';

/** Who holds an observed server or address. */
export type Attributed =
  /** Bound to the key, or named by its entry; an address also where its server is. */
  | { readonly is: 'managed'; readonly key: ResourceKey }
  /** An open write made it, or, where that is not `certain`, may have made it; or a deletion ended moments ago. */
  | { readonly is: 'pending'; readonly key: ResourceKey; readonly certain: boolean }
  | Extract<Holder, { readonly is: 'ignored' | 'released' }>
  | { readonly is: 'unmanaged' };

/** Objects that are in neither spec nor state. */
export interface Unmanaged {
  readonly servers: readonly number[];
  /** Theirs, and those that are free. */
  readonly addresses: readonly Ip[];
}

/** The lists of the project. A world has them. */
export interface Shown {
  readonly ips: readonly Ip[];
  readonly servers?: readonly { readonly id: number }[];
  keyOf(object: LiveObject): ResourceKey | undefined;
}

/** The holders that the state knows, in addition to the bindings. */
export interface ClaimRecords {
  readonly claims: readonly Claim[];
  readonly intents: readonly Intent[];
  /** Deletions that have ended so recently that reads may still show the deleted objects. @assumption A9 */
  readonly removed?: readonly Intent[];
  /** Whether the id that a key is bound to belongs to another object by now. @assumption A17 */
  readonly changed?: (key: ResourceKey) => boolean;
}

/** One holder for every observed object, computed on request, because a project may be large. */
export interface Attribution {
  server(id: string): Attributed;
  address(ip: Ip): Attributed;
  readonly unmanaged: Unmanaged;
}

/**
 * Finds the holder of an observed server or address. An ignored or released object has no other holder; then a binding
 * counts, and then an open write that made the object, or may have made it.
 *
 * @assumption A17
 */
export function attribute(
  shown: Shown,
  { claims, intents, removed = [], changed = () => false }: ClaimRecords,
): Attribution {
  const claimed = new Map(claims.map((claim) => [objectName(claim), claim]));
  const unboundByServer = Map.groupBy(
    shown.ips.filter(({ id }) => shown.keyOf(addressObject(id)) === undefined),
    ({ server_id }) => String(server_id),
  );
  const pending = pendingOf(intents, removed);
  const attached = Map.groupBy(shown.ips, ({ server_id }) => String(server_id));

  const bound = (object: LiveObject): Attributed | undefined => {
    const key = shown.keyOf(object);
    return key === undefined || changed(key) ? undefined : { is: 'managed', key };
  };
  const addressClaim = ({ id, address }: Ip) => {
    const { identity, holder } = claimed.get(objectName(addressObject(id))) ?? {};
    return identity?.address === address ? foreign(holder) : undefined;
  };
  /** A server that has only other addresses reuses the id. @assumption A17 */
  const serverClaim = (id: string) => {
    const { identity, holder } = claimed.get(objectName(serverObject(id))) ?? {};
    const its = unboundByServer.get(id) ?? [];
    const isSame = (ip: Ip) => ip.address === identity?.address || addressClaim(ip) !== undefined;
    return its.length === 0 || its.some(isSame) ? foreign(holder) : undefined;
  };
  const server = (id: string): Attributed =>
    serverClaim(id) ??
    bound(serverObject(id)) ??
    pending(serverObject(id), attached.get(id) ?? []) ??
    unmanaged;
  const address = (ip: Ip): Attributed =>
    addressClaim(ip) ??
    bound(addressObject(ip.id)) ??
    pending(addressObject(ip.id), [ip]) ??
    (ip.server_id === null ? unmanaged : server(String(ip.server_id)));
  let found: Unmanaged | undefined;
  return {
    server,
    address,
    get unmanaged() {
      found ??= {
        servers: [...new Set([...serversShown(shown), ...foundServers(claims)])].filter(
          (id) => server(String(id)).is === 'unmanaged',
        ),
        addresses: shown.ips.filter((ip) => address(ip).is === 'unmanaged'),
      };
      return found;
    },
  };
}

const unmanaged: Attributed = { is: 'unmanaged' };

function foreign(holder: Holder | undefined) {
  return holder !== undefined && isForeign(holder) ? holder : undefined;
}

/** The ids of servers that addresses or the list of servers show. */
export function serversShown({ ips, servers = [] }: Omit<Shown, 'keyOf'>): ReadonlySet<number> {
  return new Set<number>([
    ...ips.flatMap(({ server_id }) => server_id ?? []),
    ...servers.map(({ id }) => id),
  ]);
}

/** The servers that the keys of an earlier state were answered with. Possibly no list shows them. */
function foundServers(claims: readonly Claim[]): readonly number[] {
  return claims.filter(isFoundServer).map(({ id }) => Number(id));
}

/** An object that an open or recent write names, and the addresses that identify the object. */
interface Named {
  readonly holder: Attributed;
  readonly addresses: readonly string[];
}

/** The objects that open writes have made, may have made, or have just removed. */
function pendingOf(intents: readonly Intent[], removed: readonly Intent[]) {
  const named = new Map<string, Named>();
  const put = (object: string, key: ResourceKey, certain: boolean, addresses: readonly string[] = []) =>
    named.set(object, { holder: { is: 'pending', key, certain }, addresses });
  for (const { kind, key, request, preimage } of removed)
    put(`${kind} ${request.path.id}`, key, true, preimage.addresses);
  for (const { kind, key, ...intent } of intents)
    for (const id of partsOf(intent).blocked?.candidates ?? []) put(`${kind} ${id}`, key, false);
  // If reads do not show the created resource, a resource with the same id is another one.
  for (const { kind, key, ...intent } of intents) {
    const { answer, blocked } = partsOf(intent);
    if (answer?.id !== undefined && blocked?.code !== 'not_there')
      put(`${kind} ${answer.id}`, key, true, [answer.facts.address ?? []].flat());
  }
  const open = intents.filter(mayHaveMade);
  return (object: LiveObject, ips: readonly Ip[]): Attributed | undefined => {
    const found = named.get(objectName(object));
    if (found !== undefined && isNamed(found, ips)) return found.holder;
    const server = isAddress(object.kind) ? intents.find((each) => boughtAddress(each, ips)) : undefined;
    if (server !== undefined)
      return { is: 'pending', key: childKey(server.key, 'public_ipv4'), certain: true };
    const maker = open.find(({ preimage }) => cameSince(preimage, object));
    return maker && { is: 'pending', key: maker.key, certain: false };
  };
}

/** The answer to the creation of a server named an address that the project did not have before. A failed task may leave it. */
function boughtAddress({ kind, preimage, ...intent }: Intent, [ip]: readonly Ip[]): boolean {
  const { address } = partsOf(intent).answer?.facts ?? {};
  if (ip === undefined || factsOf(kind).container !== true || address === undefined) return false;
  return [address].flat().includes(ip.address) && cameSince(preimage, addressObject(ip.id));
}

/** An object that has only other addresses than the named object reuses its id. @assumption A17 */
function isNamed({ addresses }: Named, ips: readonly Ip[]): boolean {
  return addresses.length === 0 || ips.length === 0 || ips.some(({ address }) => addresses.includes(address));
}

/** A purchase that may have been carried out: an object that has come since may be its result. */
function mayHaveMade(intent: Intent): boolean {
  const { verb, kind } = intent;
  return verb === 'create' && factsOf(kind).bought === true && isUnconfirmed(intent);
}

/** Whether the list from before the creation lacks it. The list is named as in the spec. */
export function cameSince(preimage: Preimage, { kind, id }: LiveObject): boolean {
  const { collection } = factsOf(kind);
  const before = collection && preimage[collection];
  return before !== undefined && !before.map(String).includes(id);
}

/** The network interfaces of servers by live id, so that a server that several keys name counts once. */
export type ServerInterfaces = ReadonlyMap<string, readonly NetworkInterface[]>;

/** The network interfaces of those of the servers that exist. */
export async function interfacesOf(
  ids: Iterable<string>,
  read: Pick<ReadPort, 'findNetworkInterfaces'>,
): Promise<ServerInterfaces> {
  const seen = await Promise.all(
    [...ids].map(async (id) => [id, await read.findNetworkInterfaces(Number(id) as ServerId)] as const),
  );
  return new Map(seen.flatMap(([id, each]) => (each === undefined ? [] : [[id, each] as const])));
}

/**
 * The servers that a network counts in addition to the known servers. No list may show them.
 * @source API §2
 */
export function countedBeside(
  { id, server_count }: Pick<Network, 'id' | 'server_count'>,
  known: ServerInterfaces,
): number {
  const inside = [...known.values()].filter((each) => each.some(({ network_id }) => network_id === id));
  return Math.max(0, (server_count ?? 0) - inside.length);
}
