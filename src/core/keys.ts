/**
 * Names of resources in the spec: `networks.backend`, `servers.web-1.firewall`.
 *
 * A key names one resource permanently: the key survives replacement. State,
 * plan, journal and idempotency keys refer to keys.
 */
export type ResourceKey = string & { readonly __brand: 'ResourceKey' };

/** A sort of resource, by the API's own noun. */
export type KindName =
  | 'network'
  | 'ip'
  | 'iso'
  | 'server'
  | 'network_interface'
  | 'firewall'
  | 'backup'
  | 'backup_policy'
  | 'drive'
  | 'server_image';

/** The kind as an operator calls it. */
export function nounOf(kind: KindName): string {
  return kind === 'ip' ? 'address' : kind.replaceAll('_', ' ');
}

/** The top-level maps of the spec file that hold resources. */
export const collections = ['networks', 'ips', 'isos', 'servers', 'server_images'] as const;
export type Collection = (typeof collections)[number];

const kindOfCollection: Record<Collection, KindName> = {
  networks: 'network',
  ips: 'ip',
  isos: 'iso',
  servers: 'server',
  server_images: 'server_image',
};

const kindOfChild: Record<string, KindName> = {
  network_interfaces: 'network_interface',
  firewall: 'firewall',
  backup: 'backup',
  backup_policy: 'backup_policy',
  iso: 'drive',
  public_ipv4: 'ip',
};

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
  return container.startsWith('servers.') && key.startsWith(`${container}.`);
}

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
  const [collection, name, child, ...rest] = text.split('.');
  if (!isCollection(collection) || !name) return undefined;
  const key = text as ResourceKey;
  if (collection !== 'servers' || child === undefined) {
    return { key, kind: kindOfCollection[collection], name: text.slice(collection.length + 1) };
  }
  const kind = kindOfChild[child];
  // A network interface is named by its network; a backup that is no longer the newest by its id.
  const named = rest.length > 0;
  if (kind === undefined || (kind === 'network_interface' && !named)) return undefined;
  if (named && kind !== 'network_interface' && kind !== 'backup') return undefined;
  return { key, kind, name: rest.length > 0 ? rest.join('.') : child, parent: topLevelKey('servers', name) };
}

/** Like `parseKey`, for keys that were valid when they were stored. */
export function takeApart(key: ResourceKey): ParsedKey {
  const parsed = parseKey(key);
  if (parsed === undefined) throw new Error(`Not a resource key: ${key}`);
  return parsed;
}

function isCollection(text: string | undefined): text is Collection {
  return collections.includes(text as Collection);
}
