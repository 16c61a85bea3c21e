import type { KindName, ResourceKey } from '../core/keys.ts';
import { takeApart, topLevelKey } from '../core/keys.ts';
import type { ResourceKind, Subject, World } from '../core/kind.ts';
import { type Operation, type OperationId, operationId } from '../core/plan.ts';

/**
 * Says of every operation which others come first, and puts them in an order that keeps to it.
 *
 * Creation goes from networks, addresses and ISOs to servers and what is inside them;
 * deletion the other way. Where nothing else decides, the order is that of kinds, then of keys.
 *
 * @throws Error on a cycle, which would be a bug: no kind refers to a later one.
 */
export function order(
  operations: readonly Operation[],
  kinds: ReadonlyMap<KindName, ResourceKind>,
  world: World,
): readonly Operation[] {
  const present = new Set(operations.map(({ id }) => id));
  const index = indexOf(world);
  const further = new Map<OperationId, OperationId[]>();
  for (const kind of kinds.values()) {
    for (const [id, ids] of kind.sequence?.(operations, world) ?? []) {
      further.set(id, [...(further.get(id) ?? []), ...ids]);
    }
  }
  const linked = operations.map((operation) => {
    const needs = [...own(operation, kinds, world, index), ...(further.get(operation.id) ?? [])];
    const deletes = operation.verb === 'delete';
    const others = needs.filter((id) => (deletes || present.has(id)) && id !== operation.id);
    return { ...operation, needs: [...new Set(others)] };
  });
  return sorted(linked, [...kinds.keys()]);
}

/** The keys that have to exist before the operation can start. */
export function prerequisites(
  { key, verb }: Operation,
  kinds: ReadonlyMap<KindName, ResourceKind>,
  world: World,
): readonly ResourceKey[] {
  const subject = world.subjects.get(key);
  if (subject?.desired === undefined || (verb !== 'create' && verb !== 'update')) return [];
  const references = kinds.get(subject.kind)?.references(subject.desired.value) ?? [];
  return [...(subject.parent === undefined ? [] : [subject.parent]), ...references.map((each) => each.key)];
}

/** Subjects by what deletions and renewals ask for. */
interface Index {
  readonly childrenOf: ReadonlyMap<ResourceKey, readonly Subject[]>;
  readonly serverOfId: ReadonlyMap<string, ResourceKey>;
  /** Servers with a card in a network, by the network's key. */
  readonly serversIn: ReadonlyMap<ResourceKey, readonly ResourceKey[]>;
}

function indexOf(world: World): Index {
  const subjects = [...world.subjects.values()];
  const inServers = subjects.flatMap((subject) =>
    subject.parent === undefined ? [] : [{ subject, parent: subject.parent }],
  );
  const cards = inServers.filter(({ subject }) => subject.kind === 'network_interface');
  return {
    childrenOf: grouped(inServers.map(({ subject, parent }) => [parent, subject])),
    serverOfId: new Map(
      subjects.flatMap(({ kind, binding, key }) =>
        kind === 'server' && binding !== undefined ? [[binding.id, key] as const] : [],
      ),
    ),
    serversIn: grouped(
      cards.map(({ subject, parent }) => [topLevelKey('networks', takeApart(subject.key).name), parent]),
    ),
  };
}

function grouped<Key, Value>(pairs: readonly (readonly [Key, Value])[]): ReadonlyMap<Key, readonly Value[]> {
  const groups = new Map<Key, Value[]>();
  for (const [key, value] of pairs) {
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [value]);
    else group.push(value);
  }
  return groups;
}

function own(
  operation: Operation,
  kinds: ReadonlyMap<KindName, ResourceKind>,
  world: World,
  index: Index,
): readonly OperationId[] {
  const { key, verb } = operation;
  if (verb === 'delete') {
    return holders(operation, world, index).map((holder) => operationId('delete', holder));
  }
  return [
    ...(verb === 'create' ? [operationId('delete', key), ...leftovers(key, index)] : []),
    ...prerequisites(operation, kinds, world).flatMap((needed) => [
      operationId('create', needed),
      operationId('adopt', needed),
    ]),
  ];
}

/** A new server's address takes the key of the old one's, which has to be released before. */
function leftovers(key: ResourceKey, { childrenOf }: Index): readonly OperationId[] {
  return (childrenOf.get(key) ?? [])
    .filter(({ binding }) => binding !== undefined)
    .map((child) => operationId('delete', child.key));
}

/**
 * Servers that hold the address, or a card in the network, that is to go. Where one of
 * them stays, the deletion is not in the plan, and the need for it holds this one back.
 */
function holders({ key, kind }: Operation, world: World, index: Index): readonly ResourceKey[] {
  const isThere = (server: ResourceKey) => world.subjects.get(server)?.binding !== undefined;
  if (kind === 'network') return (index.serversIn.get(key) ?? []).filter(isThere);
  if (kind !== 'ip') return [];
  const id = world.idOf(key);
  const server = world.ips.find((each) => String(each.id) === id)?.server_id;
  const holder = index.serverOfId.get(String(server));
  return holder === undefined ? [] : [holder];
}

/** By rank, but no operation before those it needs. */
function sorted(operations: readonly Operation[], kindOrder: readonly KindName[]): readonly Operation[] {
  const rank = ({ verb, kind }: Operation) => {
    if (verb === 'adopt') return 0;
    const at = kindOrder.indexOf(kind) + 1;
    return verb === 'delete' ? 2 * kindOrder.length + 1 - at : at;
  };
  const byId = new Map(operations.map((operation) => [operation.id, operation]));
  const stack = [...operations].sort((a, b) => rank(b) - rank(a) || (a.key < b.key ? 1 : -1));
  const open = new Set<OperationId>();
  const result = new Map<OperationId, Operation>();
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    if (result.has(next.id)) continue;
    const missing = next.needs.filter((id) => !result.has(id)).flatMap((id) => byId.get(id) ?? []);
    if (missing.length === 0) {
      open.delete(next.id);
      result.set(next.id, next);
      continue;
    }
    if (missing.some(({ id }) => open.has(id))) {
      throw new Error(`Operations wait for each other: ${[...open, next.id].join(', ')}`);
    }
    open.add(next.id);
    stack.push(next, ...missing);
  }
  return [...result.values()];
}
