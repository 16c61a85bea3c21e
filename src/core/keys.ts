import { type Collection, factsOf, type KindName, kindsWith } from './kind-facts.ts';

/**
 * Names of resources in the spec: `networks.backend`, `servers.web-1.firewall`.
 *
 * A key names one resource permanently: the key survives replacement. State,
 * plan, journal and idempotency keys refer to keys.
 */
export type ResourceKey = string & { readonly __brand: 'ResourceKey' };

function collectionOf(kind: KindName): Collection {
  const { collection } = factsOf(kind);
  if (collection === undefined) throw new Error(`The kind ${kind} has no map in the spec file.`);
  return collection;
}

/** The kind as an operator calls it. */
export function nounOf(kind: KindName | 'project'): string {
  return factsOf(kind).noun ?? kind.replaceAll('_', ' ');
}

const kindOfCollection = new Map<string | undefined, KindName>(
  kindsWith('collection').map((kind) => [factsOf(kind).collection, kind]),
);
const kindOfField = new Map<string | undefined, KindName>(
  kindsWith('field').map((kind) => [factsOf(kind).field, kind]),
);

const [ender] = kindsWith('endsExposure');
const { field: firewallField = ender } = factsOf(ender);

/** The map whose entries have resources inside them: `servers`. */
export const containers = collectionOf(kindsWith('container')[0]);

/** The key of an entry in a top-level map of the spec, such as `servers.web-1`. */
export function topLevelKey(collection: Collection, name: string): ResourceKey {
  return `${collection}.${name}` as ResourceKey;
}

/** The key of something inside a server, such as `servers.web-1.firewall`. */
export function childKey(server: ResourceKey, suffix: string): ResourceKey {
  return `${server}.${suffix}` as ResourceKey;
}

/**
 * Whether the key is inside a server, or is an older backup next to the newest. A dot in other names has no meaning.
 */
export function isInside(key: ResourceKey, container: ResourceKey): boolean {
  return container.startsWith(`${containers}.`) && key.startsWith(`${container}.`);
}

/** Every key that the key is inside, as in {@link isInside}. */
export function containersOf(key: ResourceKey): readonly ResourceKey[] {
  const parts = key.split('.');
  if (parts.length < 3 || parts[0] !== containers) return [];
  return parts.slice(2).map((_, at) => parts.slice(0, at + 2).join('.') as ResourceKey);
}

/** Between the name of an entry and a live id. No name of an entry contains this character. */
const retiringMark = '~';

/**
 * The key of a server that another server replaces, from the moment when the other one takes over its key:
 * `servers.web-1~2001`. It names the resource until its deletion. So each of the two servers has a binding of its own.
 *
 * @param id the live id of the server that goes
 */
export function retiringKey(key: ResourceKey, id: string): ResourceKey {
  return `${key}${retiringMark}${id}` as ResourceKey;
}

/** The key that the retiring server, or the server that the resource is inside, had before; `undefined` for all other keys. */
export function retiredFrom(key: ResourceKey): ResourceKey | undefined {
  if (!key.includes(retiringMark)) return undefined;
  const server = takeApart(key).parent ?? key;
  const at = server.lastIndexOf(retiringMark);
  return at < 0 || !server.startsWith(`${containers}.`) ? undefined : (server.slice(0, at) as ResourceKey);
}

/** The key of the entry that the resource, the server that it is inside, or the successor of that server has. */
export function entryKeyOf(key: ResourceKey): ResourceKey {
  return retiredFrom(key) ?? takeApart(key).parent ?? key;
}

/** A key, and the parts that its text contains. */
export interface ParsedKey {
  readonly key: ResourceKey;
  readonly kind: KindName;
  /** The last name in the key, as written in the spec. */
  readonly name: string;
  /** The server whose deletion deletes the resource. */
  readonly parent?: ResourceKey;
}

/** Takes a key apart; `undefined` where the text is no key. Server names hold no dot. */
export function parseKey(text: string): ParsedKey | undefined {
  const [collection = '', name, child, ...rest] = text.split('.');
  const outer = kindOfCollection.get(collection);
  if (outer === undefined || !name) return undefined;
  const key = text as ResourceKey;
  if (collection !== containers || child === undefined) {
    return { key, kind: outer, name: text.slice(collection.length + 1) };
  }
  const kind = kindOfField.get(child);
  if (kind === undefined) return undefined;
  const { namedAfter, repeats } = factsOf(kind);
  const hasName = rest.length > 0;
  if (hasName ? namedAfter === undefined && !repeats : namedAfter !== undefined) return undefined;
  return { key, kind, name: hasName ? rest.join('.') : child, parent: topLevelKey(collection, name) };
}

/** The key of the entry that a resource inside a server is named after: the network of a network interface. */
export function namesakeOf({ kind, name }: Pick<ParsedKey, 'kind' | 'name'>): ResourceKey | undefined {
  const { namedAfter } = factsOf(kind);
  return namedAfter === undefined ? undefined : topLevelKey(namedAfter, name);
}

/** The key of the resource that ends the exposure of a server: its firewall. */
export function firewallKey(server: ResourceKey): ResourceKey {
  return childKey(server, firewallField);
}

/** Whether the resource is created with the server that it is inside, but not deleted with it: an address. */
export function comesWithServer({
  kind,
  parent,
}: {
  readonly kind: KindName;
  readonly parent?: ResourceKey | undefined;
}): boolean {
  return parent !== undefined && factsOf(kind).independent === true;
}

/**
 * Whether a deletion counts for `settings.max_deletions`. A server's own address is deleted with its server and does
 * not count; a network interface that is created again is no loss.
 */
export function countsAsDeletion(key: ResourceKey, isReplaced: boolean): boolean {
  const { kind, parent } = takeApart(key);
  const { deletion } = factsOf(kind);
  return parent === undefined || deletion === 'always' || (deletion === 'alone' && !isReplaced);
}

/** Like `parseKey`, for keys that were valid when they were stored. */
export function takeApart(key: ResourceKey): ParsedKey {
  const parsed = parseKey(key);
  if (parsed === undefined) throw new Error(`Not a resource key: ${key}`);
  return parsed;
}
