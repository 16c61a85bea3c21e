import { addressObject, objectName } from './claims.ts';
import type { ResourceKey } from './keys.ts';
import type { Subject, World, WorldParts } from './kind.ts';
import { factsOf } from './kind-facts.ts';
import { once } from './turns.ts';

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
  const serversByNetwork = once(() => grouped([...subjects.values()].flatMap(cardsOf)));

  const subjectsOf: World['subjectsOf'] = (kind) => subjectsByKind().get(kind) ?? [];
  const serverSubjects = once(() => [...subjects.values()].filter(({ kind }) => factsOf(kind).container));
  const addressesOf: World['addressesOf'] = ({ kind, id }) => {
    const { container, knownBy } = factsOf(kind);
    if (container) return ipsByServer().get(id) ?? [];
    return knownBy === undefined ? [] : [ipsById().get(id) ?? []].flat();
  };
  const keyOf: World['keyOf'] = (object) => keysById().get(objectName(object));

  function cardsOf({ kind, key }: Subject): (readonly [string, ResourceKey])[] {
    const cards = factsOf(kind).container ? observed.get(key)?.cards : undefined;
    const networks = (cards ?? []).flatMap((card) =>
      card.public || card.network_id === null ? [] : [String(card.network_id)],
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
          const { id, cards } = observed.get(key) ?? {};
          return id === undefined || cards === undefined || listed.has(id);
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
