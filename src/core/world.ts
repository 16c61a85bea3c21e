import { addressObject, objectName, serverObject } from './claims.ts';
import { type ExpiredEntry, namedAddress } from './desired.ts';
import { isUnconfirmed, partsOf } from './intent.ts';
import { entryKeyOf, firewallKey, type ResourceKey, retiredFrom } from './keys.ts';
import type { Subject, World, WorldParts } from './kind.ts';
import { factsOf } from './kind-facts.ts';
import type { Warning } from './plan.ts';
import type { Intent } from './state.ts';
import { once } from './work.ts';

/**
 * A world with its indexes. Each index is built at its first use: a diff that
 * reads all subjects for every subject would be quadratic.
 */
export function createWorld(parts: WorldParts): World {
  const { ips, subjects, observed } = parts;
  const ipsById = once(() => new Map(ips.map((ip) => [String(ip.id), ip])));
  const ipsByServer = once(() =>
    grouped(ips.flatMap((ip) => (ip.server_id === null ? [] : [[String(ip.server_id), ip] as const]))),
  );
  const freeIps = once(() => ips.filter(({ server_id }) => server_id === null));
  const childrenByParent = once(() =>
    grouped(
      [...subjects.values()].flatMap((subject) =>
        subject.parent === undefined ? [] : [[subject.parent, subject] as const],
      ),
    ),
  );
  const subjectsByKind = once(() => grouped([...subjects.values()].map((each) => [each.kind, each])));
  const idOf = (key: ResourceKey) => {
    const subject = subjects.get(key);
    return subject?.binding?.id ?? subject?.desired?.id ?? observed.get(key)?.id;
  };
  const keysById = once(
    () =>
      new Map<string, ResourceKey>(
        [...subjects.values()].flatMap(({ kind, key, parent }) => {
          const id = parent === undefined || factsOf(kind).independent ? idOf(key) : undefined;
          return id === undefined ? [] : [[objectName({ kind, id }), key] as const];
        }),
      ),
  );
  const serversByNetwork = once(() => grouped([...subjects.values()].flatMap(attachmentsOf)));

  const subjectsOf: World['subjectsOf'] = (kind) => subjectsByKind().get(kind) ?? [];
  const serverSubjects = once(() => [...subjects.values()].filter(({ kind }) => factsOf(kind).container));
  const addressesOf: World['addressesOf'] = ({ kind, id }) => {
    const { container, knownBy } = factsOf(kind);
    if (container) return ipsByServer().get(id) ?? [];
    return knownBy === undefined ? [] : [ipsById().get(id) ?? []].flat();
  };
  const keyOf: World['keyOf'] = (object) => keysById().get(objectName(object));

  function attachmentsOf({ kind, key }: Subject): (readonly [string, ResourceKey])[] {
    const interfaces = factsOf(kind).container ? observed.get(key)?.interfaces : undefined;
    const networks = (interfaces ?? []).flatMap((each) =>
      each.public || each.network_id === null ? [] : [String(each.network_id)],
    );
    return [...new Set(networks)].map((network) => [network, key]);
  }

  return {
    ...parts,
    idOf,
    isThere: (key) =>
      subjects.get(key)?.binding?.tainted === undefined && observed.get(key)?.id !== undefined,
    keyOf,
    subjectsOf,
    serverSubjects,
    childrenOf: (key) => childrenByParent().get(key) ?? [],
    serversIn: (network) => serversByNetwork().get(network) ?? [],
    ip: (id) => ipsById().get(id),
    isUnbound: ({ id }) => keyOf(addressObject(id)) === undefined,
    listsServers: once(() => {
      const listed = new Set(parts.servers?.map(({ id }) => String(id)));
      return (
        parts.servers !== undefined &&
        serverSubjects().every(({ key }) => {
          const { id, interfaces } = observed.get(key) ?? {};
          return id === undefined || interfaces === undefined || listed.has(id);
        })
      );
    }),
    addressesOf,
    nameOf: (object) =>
      factsOf(object.kind).knownBy === undefined ? object.id : (addressesOf(object)[0]?.address ?? object.id),
    ipsOf: (server) => ipsByServer().get(server) ?? [],
    freeIps,
  };
}

/** Several values a key, in their order. */
export function grouped<Key, Value>(
  pairs: readonly (readonly [Key, Value])[],
): ReadonlyMap<Key, readonly Value[]> {
  const groups = new Map<Key, Value[]>();
  for (const [key, value] of pairs) {
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [value]);
    else group.push(value);
  }
  return groups;
}

/** The enabled firewall that the spec declares for a server. A disabled firewall filters nothing, as the spec asks. */
export function firewallOf(world: Pick<World, 'childrenOf'>, server: ResourceKey): Subject | undefined {
  return world
    .childrenOf(server)
    .find(
      ({ kind, desired }) =>
        factsOf(kind).endsExposure === true && desired?.managed === true && desired.value.enabled === true,
    );
}

/** The facts about a server that the last refresh does not show. */
interface Since {
  readonly intents: readonly Intent[];
  /** Keys whose operation has ended well since the refresh. */
  readonly done?: ReadonlySet<ResourceKey>;
}

/**
 * The exposed servers: each has a public address and no firewall in force, and the spec declares a firewall. The cause
 * does not matter. Every output asks this function.
 */
export function exposedServers(world: World, { intents, done }: Since): readonly Warning[] {
  const open = new Map(intents.map((intent) => [intent.key, intent]));
  const servers = world.serverSubjects();
  return servers.flatMap(({ key, desired }): readonly Warning[] => {
    // An entry whose rename waits declares the firewall of the bound server.
    const entry = desired ?? servers.find((each) => each.desired?.moved === key)?.desired;
    const firewall = entry && firewallOf(world, entry.key);
    const own = firewallKey(key);
    if (firewall === undefined || done?.has(own)) return [];
    // The API has accepted the firewall.
    if (open.get(own)?.phase === 'accepted') return [];
    const message = world.idOf(key) === undefined ? beforeItsId(open.get(key)) : seen(world, key, own);
    return message === undefined ? [] : [{ code: 'exposed', key, message }];
  });
}

const isExposed =
  'the server has a public address, and its firewall is not in force: all its ports are open to the internet';
const mayBeExposed = 'the server may exist without its firewall: all its ports would be open to the internet';

function seen(world: World, key: ResourceKey, firewall: ResourceKey): string | undefined {
  const server = world.observed.get(key);
  // A server that was bound after the refresh is new.
  if (server === undefined) return isPublicByFile(world, key) ? isExposed : undefined;
  if (server.id === undefined) return undefined;
  const isPublic = world.ipsOf(server.id).length > 0 || (server.interfaces ?? []).some((each) => each.public);
  const wall = world.observed.get(firewall);
  // While a rename waits, no entry has this key, so its firewall is not read.
  const { desired, binding } = world.subjects.get(firewall) ?? {};
  if (wall === undefined && desired === undefined && binding !== undefined) return undefined;
  return isPublic && wall?.inForce !== true ? isExposed : undefined;
}

function isPublicByFile(world: World, key: ResourceKey): boolean {
  return world.subjects.get(key)?.desired?.value.public_ipv4 !== undefined;
}

/** The creation has not ended. A server that the API answered as created may be gone if reads did not find it since. */
function beforeItsId(creation: Intent | undefined): string | undefined {
  if (creation?.verb !== 'create') return undefined;
  const { answer } = partsOf(creation);
  const isAnswered = creation.phase === 'accepted' && creation.notSeenAt === undefined;
  if (isAnswered && answer?.id !== undefined) return isExposed;
  return answer?.id !== undefined || isUnconfirmed(creation) ? mayBeExposed : undefined;
}

/** The server that the server of the key has replaced, if it still holds the address that the entry names. */
export function predecessorHolding({ key, desired }: Subject, world: World): string | undefined {
  const named = namedAddress(desired?.value);
  const id = named === undefined ? undefined : world.idOf(named);
  const holder = id === undefined ? null : (world.ip(id)?.server_id ?? null);
  const owner = holder === null ? undefined : world.keyOf(serverObject(holder));
  return owner !== undefined && retiredFrom(owner) === key ? String(holder) : undefined;
}

/** The expired entry of the resource, or of the server that the resource is in. */
export function expiredEntry(
  { key }: Pick<Subject, 'key'>,
  { expiry }: Pick<World, 'expiry'>,
): ExpiredEntry | undefined {
  const own = entryKeyOf(key);
  // A rename that no run has recorded names the key of the resource.
  return expiry?.expired?.find((each) => each.key === own || each.moved === own);
}
