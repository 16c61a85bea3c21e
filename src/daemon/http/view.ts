import { addressObject, networkObject, serverObject } from '../../core/claims.ts';
import { type KeyStatus, keyStatuses } from '../../core/key-status.ts';
import { containersOf, namesakeOf, type ResourceKey, takeApart } from '../../core/keys.ts';
import { factsOf, isAddress } from '../../core/kind-facts.ts';
import { oncePer } from '../../core/once.ts';
import { namedAddress } from '../../core/server-entry.ts';
import { grouped } from '../../core/world.ts';
import type { ProjectFacts } from '../project/facts.ts';
import { exposedServers, unattachedAddresses } from '../project/troubles.ts';
import { idOf, statusNow } from './key-status.ts';
import { Pager } from './pager.ts';

/** One box of the picture. */
export interface Box {
  readonly id: string;
  readonly title: string;
  readonly note: string;
  readonly standing: KeyStatus;
  /** The standing in words, where its own are not enough. */
  readonly says?: string;
  /** Billed, and of no use. */
  readonly idle: boolean;
}

/** The project as a picture: resources and their connections. */
export interface Picture {
  readonly networks: readonly Box[];
  readonly servers: readonly Box[];
  readonly addresses: readonly Box[];
  /** Ids of two boxes each. */
  readonly links: readonly (readonly [string, string])[];
}

/** Every key that the file or the state names, in order. */
export const keysOf = oncePer((facts: ProjectFacts): readonly ResourceKey[] => {
  const wanted = facts.offer?.desired.resources.map(({ key }) => key) ?? [];
  const bound = facts.known?.bindings.map(({ key }) => key) ?? [];
  return [...new Set([...wanted, ...bound])].sort();
});

/** Indexes for the boxes. */
const indexOf = oncePer((facts: ProjectFacts) => {
  const desired = facts.offer?.desired;
  return {
    wanted: new Map(desired?.resources.map((each) => [each.key, each])),
    inside: grouped(
      keysOf(facts).flatMap((key) => containersOf(key).map((container) => [container, key] as const)),
    ),
    exposed: new Set(exposedServers(facts)),
    networks: new Map(facts.world?.networks.map((each) => [String(each.id), each])),
    creations: new Map(
      facts.known?.intents.flatMap((each) => (each.verb === 'create' ? [[each.key, each] as const] : [])),
    ),
  };
});

export function pictureOf(facts: ProjectFacts, pager = new Pager()): Picture {
  return pageOf(wholePicture(facts), pager);
}

function wholePicture(facts: ProjectFacts): Picture {
  const keys = keysOf(facts).map((key) => takeApart(key));
  const servers = keys.filter(({ kind }) => factsOf(kind).container).map(({ key }) => serverBox(facts, key));
  const networks = keys
    .filter(({ kind }) => kind === networkObject('').kind)
    .map(({ key }) => networkBox(facts, key));
  const { boxes: addresses, links: held } = addressBoxes(facts);
  const known = new Set([...servers, ...networks, ...addresses].map(({ id }) => id));
  const links = [...networkLinks(facts), ...held, ...wantedAddresses(facts)].filter(
    ([a, b]) => known.has(a) && known.has(b),
  );
  return { networks, servers, addresses, links: distinct(links) };
}

/** The servers of one page with their networks and addresses, and as many of those that no server has. */
function pageOf({ networks, servers, addresses, links }: Picture, pager: Pager): Picture {
  const shown = pager.of(servers);
  const linked = grouped(links.flatMap(([a, b]) => [[a, b] as const, [b, a] as const]));
  const ofShown = new Set(shown.flatMap(({ id }) => linked.get(id) ?? []));
  const onPage = (boxes: readonly Box[]) => [
    ...new Pager().of(boxes.filter(({ id }) => ofShown.has(id))),
    ...pager.of(boxes.filter(({ id }) => !linked.has(id))),
  ];
  const parts = { networks: onPage(networks), servers: shown, addresses: onPage(addresses) };
  const ids = new Set([...parts.networks, ...shown, ...parts.addresses].map(({ id }) => id));
  return { ...parts, links: links.filter(([a, b]) => ids.has(a) && ids.has(b)) };
}

function serverBox(facts: ProjectFacts, key: ResourceKey): Box {
  const { wanted: entries, inside } = indexOf(facts);
  const own = [key, ...(inside.get(key) ?? [])];
  // As bad as the worst of its parts.
  const seen = own.map((each) => statusNow(facts, each));
  const standing = keyStatuses.findLast((each) => seen.includes(each)) ?? 'unknown';
  const wanted = entries.get(key)?.value;
  const type = wanted?.server_type === undefined ? '' : String(wanted.server_type);
  const id = idOf(facts, key);
  const note = [type, id === undefined ? absence(facts, key) : `id ${id}`]
    .filter((each) => each !== '')
    .join(' · ');
  const box = { id: key, title: nameOf(key), note, idle: false };
  if (indexOf(facts).exposed.has(key)) return { ...box, standing: 'blocked', says: 'exposed' };
  const says = standing === 'undeclared' ? { says: 'a part of it has left the file' } : {};
  return { ...box, standing, ...says };
}

/** No id is bound. A creation without an answer may have had its effect nevertheless. */
export function absence(facts: ProjectFacts, key: ResourceKey): string {
  const sent = indexOf(facts).creations.get(key);
  if (sent === undefined) return 'not created yet';
  const isUnconfirmed = sent.phase === 'blocked' || sent.phase === 'unknown';
  return isUnconfirmed ? 'unconfirmed, may be billed' : 'being created';
}

function networkBox(facts: ProjectFacts, key: ResourceKey): Box {
  const id = idOf(facts, key);
  const seen = id === undefined ? undefined : indexOf(facts).networks.get(id);
  const wanted = indexOf(facts).wanted.get(key);
  const cidr = seen?.cidr ?? wanted?.value.cidr ?? '';
  return {
    id: key,
    title: nameOf(key),
    note: cidr,
    ...(wanted?.managed === false
      ? { standing: 'unknown', says: 'not managed' }
      : { standing: statusNow(facts, key) }),
    idle: false,
  };
}

/** All addresses of the project, and those that are only declared so far. */
function addressBoxes(facts: ProjectFacts): { boxes: Box[]; links: (readonly [string, string])[] } {
  const { world } = facts;
  const { idle, unconfirmed } = unattachedAddresses(facts);
  const boxes: Box[] = [];
  const links: (readonly [string, string])[] = [];
  const shown = new Set<string>();
  const doubts = new Map(unconfirmed.map((each) => [each.ip.id, each]));
  const idleIds = new Set(idle.map(({ ip }) => ip.id));
  for (const ip of world?.ips ?? []) {
    const key = world?.keyOf(addressObject(ip.id));
    const server = ip.server_id === null ? undefined : world?.keyOf(serverObject(ip.server_id));
    const id = key ?? `ip ${ip.id}`;
    shown.add(id);
    const doubt = doubts.get(ip.id);
    if (doubt?.key) shown.add(doubt.key);
    const isIdle = idleIds.has(ip.id);
    const whose =
      key === undefined ? (server === undefined ? 'not in the file' : 'comes with its server') : nameOf(key);
    const note = doubt ? `may be ${doubt.key}` : whose;
    const says = doubt ? 'billed and unconfirmed' : isIdle ? 'billed and idle' : 'not managed';
    const standing =
      key === undefined ? { standing: 'unknown' as const, says } : { standing: statusNow(facts, key) };
    boxes.push({ id, title: ip.address, note, ...standing, idle: isIdle || doubt !== undefined });
    if (server !== undefined) links.push([server, id]);
  }
  for (const key of keysOf(facts)) {
    const { kind, parent } = takeApart(key);
    if (!isAddress(kind) || shown.has(key)) continue;
    const live = idOf(facts, key);
    const note = live === undefined ? absence(facts, key) : `id ${live}`;
    const standing = statusNow(facts, key);
    // A server's own address comes with its server.
    const says = standing === 'unknown' && facts.plan !== undefined ? { says: 'pending' } : {};
    boxes.push({ id: key, title: nameOf(key), note, standing, ...says, idle: false });
    if (parent !== undefined) links.push([parent, key]);
  }
  return { boxes, links };
}

/** By the observed network interfaces, and by those of the state. */
function networkLinks(facts: ProjectFacts): (readonly [string, string])[] {
  const { world } = facts;
  const wanted = keysOf(facts).flatMap((key) => {
    const parsed = takeApart(key);
    const network = namesakeOf(parsed);
    const isMissing = idOf(facts, key) === undefined;
    return network === undefined || parsed.parent === undefined || isMissing
      ? []
      : [[network, parsed.parent] as const];
  });
  const seen = keysOf(facts).flatMap((key) =>
    factsOf(takeApart(key).kind).container
      ? (world?.observed.get(key)?.cards ?? []).flatMap((card) => {
          const network = card.network_id === null ? undefined : world?.keyOf(networkObject(card.network_id));
          return network === undefined ? [] : [[network, key] as const];
        })
      : [],
  );
  return [...wanted, ...seen];
}

/** Addresses that a server's entry names, before they are attached. */
function wantedAddresses({ offer }: ProjectFacts): (readonly [string, string])[] {
  return (offer?.desired.resources ?? []).flatMap(({ key, value }) => {
    const named = namedAddress(value);
    return named === undefined ? [] : [[key, named] as const];
  });
}

/** A server's own address has no name but its server's. */
function nameOf(key: ResourceKey): string {
  const { name, parent, kind } = takeApart(key);
  return parent !== undefined && isAddress(kind) ? `own address of ${takeApart(parent).name}` : name;
}

function distinct(links: readonly (readonly [string, string])[]): (readonly [string, string])[] {
  return [...new Map(links.map((link) => [link.join('\n'), link])).values()];
}
