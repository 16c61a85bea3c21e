import { comesWithServer, type ResourceKey, retiredFrom, retiringKey, takeApart } from '../core/keys.ts';
import type { ResourceKind, Subject, World } from '../core/kind.ts';
import { factsOf, type KindName } from '../core/kind-facts.ts';
import { type Operation, type OperationId, operationId, type Selection } from '../core/plan.ts';
import type { Binding } from '../core/state.ts';
import { predecessorHolding } from '../core/world.ts';
import type { ReplacementTurn } from './replacements.ts';

/** Determines for every operation which others come first. */
export function linked(
  operations: readonly Operation[],
  kinds: ReadonlyMap<KindName, ResourceKind>,
  world: World,
  unconfirmed: ReadonlySet<ResourceKey>,
): readonly Operation[] {
  const present = new Set(operations.map(({ id }) => id));
  const further = new Map<OperationId, OperationId[]>();
  const planned = new Set(operations.map(({ kind }) => kind));
  for (const kind of kinds.values()) {
    if (!planned.has(kind.name)) continue;
    for (const [id, ids] of kind.order?.sequence?.(operations, world, unconfirmed) ?? []) {
      further.set(id, [...(further.get(id) ?? []), ...ids]);
    }
  }
  return operations.map((operation) => {
    const needs = [...own(operation, kinds, world), ...(further.get(operation.id) ?? [])];
    const others = needs.filter((id) => present.has(id) && id !== operation.id);
    return { ...operation, needs: [...new Set(others)] };
  });
}

/** Operations in their order, and those that cannot be sorted because they wait for each other, with all that needs them. */
interface Ordered {
  readonly operations: readonly Operation[];
  readonly circular: readonly Operation[];
}

/**
 * Sorts linked operations. Creation starts with networks, addresses and ISOs, then servers, then the resources inside
 * servers; deletion is the reverse. Otherwise the order is that of kinds, then of keys. No kind refers to a later one, so
 * operations that wait for each other are a bug, which must not stop the others.
 */
export function order(
  operations: readonly Operation[],
  kinds: ReadonlyMap<KindName, ResourceKind>,
  turns: readonly ReplacementTurn[],
): Ordered {
  const all = givingLast(inTurn(operations, turns));
  const kindOrder = [...kinds.keys()];
  const inOrder = sorted(all, kindOrder);
  if (inOrder !== undefined) return { operations: inOrder, circular: [] };
  const byId = new Map(all.map((operation) => [operation.id, operation]));
  const stopped = closure(all, ({ id, needs }) => needs.some((need) => leadsTo(byId, need, id)));
  const rest = all.filter(({ id }) => !stopped.has(id));
  return { operations: sorted(rest, kindOrder) ?? [], circular: all.filter(({ id }) => stopped.has(id)) };
}

/** A replacement begins after the one before it, unless that one waits for it for another reason. */
function inTurn(operations: readonly Operation[], turns: readonly ReplacementTurn[]): readonly Operation[] {
  const byId = new Map(operations.map((operation) => [operation.id, operation]));
  for (const { first, ends } of turns) {
    const begins = byId.get(first);
    if (begins === undefined) continue;
    const before = ends.filter(
      (id) => byId.has(id) && !begins.needs.includes(id) && !leadsTo(byId, id, first),
    );
    byId.set(first, { ...begins, needs: [...begins.needs, ...before] });
  }
  return operations.flatMap(({ id }) => byId.get(id) ?? []);
}

/** Whether the first operation needs the second one, directly or through others. */
function leadsTo(
  operations: ReadonlyMap<OperationId, Operation>,
  from: OperationId,
  to: OperationId,
  seen = new Set<OperationId>(),
): boolean {
  if (from === to || seen.has(from)) return from === to;
  seen.add(from);
  return (operations.get(from)?.needs ?? []).some((id) => leadsTo(operations, id, to, seen));
}

/** The creation that a deletion makes room for: of the same resource, or of the server that an address came with. */
export function successorOf({ key, verb, replacement }: Operation): OperationId | undefined {
  if (verb !== 'delete') return undefined;
  const { parent } = takeApart(key);
  return replacement ?? (parent === undefined ? undefined : operationId('create', parent));
}

/**
 * A deletion that makes room for a creation waits for all needs of that creation, except for other deletions of this
 * kind.
 */
function givingLast(operations: readonly Operation[]): readonly Operation[] {
  const byId = new Map(operations.map((operation) => [operation.id, operation]));
  for (const operation of operations) {
    const successor = byId.get(successorOf(operation) ?? operation.id);
    if (successor === undefined || successor.id === operation.id) continue;
    const further = successor.needs.filter(
      (id) => !operation.needs.includes(id) && !leadsTo(byId, id, operation.id),
    );
    byId.set(operation.id, { ...operation, needs: [...operation.needs, ...further] });
  }
  return operations.flatMap(({ id }) => byId.get(id) ?? []);
}

/** The keys that must exist before the operation can start. */
export function prerequisites(
  { key, verb }: Pick<Operation, 'key' | 'verb'>,
  kinds: ReadonlyMap<KindName, ResourceKind>,
  world: World,
): readonly ResourceKey[] {
  const subject = world.subjects.get(key);
  if (subject?.desired === undefined || (verb !== 'create' && verb !== 'update')) return [];
  const references = kinds.get(subject.kind)?.entry.references?.(subject.desired.value) ?? [];
  return [...(subject.parent === undefined ? [] : [subject.parent]), ...references.map((each) => each.key)];
}

/**
 * The keys that must exist before a retiring server, or its address, is deleted: the server that took over its key,
 * and the resources that the spec declares inside that server. A backup is taken when it is due. A server that must be
 * replaced again, because its address is that of the retiring one, need not be complete.
 */
export function successorsOf(key: ResourceKey, world: World): readonly ResourceKey[] {
  const { subjects, childrenOf } = world;
  if (subjects.get(key)?.binding?.orphaned) return [];
  const successor = retiredFrom(key);
  const isWanted = ({ desired, kind }: Subject) =>
    desired?.managed === true && factsOf(kind).repeats !== true;
  const server = successor === undefined ? undefined : subjects.get(successor);
  if (successor === undefined || server === undefined || !isWanted(server)) return [];
  if (predecessorHolding(server, world) !== undefined) return [successor];
  return [
    successor,
    ...childrenOf(successor).flatMap((each) => (isWanted(each) && !comesWithServer(each) ? [each.key] : [])),
  ];
}

/**
 * The keys whose live resources the operation relies on: the server that contains it, its prerequisites, and the
 * successors of a retiring server.
 */
export function restsOn(
  operation: Pick<Operation, 'key' | 'verb'>,
  kinds: ReadonlyMap<KindName, ResourceKind>,
  world: World,
): readonly ResourceKey[] {
  const { parent } = takeApart(operation.key);
  return [
    ...(parent === undefined ? [] : [parent]),
    ...prerequisites(operation, kinds, world),
    ...(operation.verb === 'delete' ? successorsOf(operation.key, world) : []),
  ];
}

/**
 * The keys that must be gone before the operation can start: the resources that use a
 * resource that is deleted, and the old address under a key that the address of another server will take.
 */
export function obstacles(
  { key, verb, kind }: Pick<Operation, 'key' | 'verb' | 'kind'>,
  kinds: ReadonlyMap<KindName, ResourceKind>,
  world: World,
): readonly ResourceKey[] {
  const subject = world.subjects.get(key);
  if (subject === undefined) return [];
  if (verb === 'update') return [];
  if (verb === 'delete') return kinds.get(kind)?.order?.goneBefore?.(subject, verb, world) ?? [];
  // The address of a server that is replaced retires with it, and needs no place under the key.
  const { takesAgain } = kinds.get(kind)?.creation ?? {};
  const live = world.idOf(key);
  const isInside = ({ parentId = live }: Binding) => world.isThere(key) && parentId === live;
  const outliving = world.childrenOf(key).flatMap((child) => {
    if (child.binding === undefined || !comesWithServer(child) || isInside(child.binding)) return [];
    return takesAgain?.(subject, child.key, world) === true ? [] : [child.key];
  });
  if (verb === 'adopt') return outliving;
  const others = kinds.get(kind)?.order?.goneBefore?.(subject, verb, world) ?? [];
  return [...outliving, ...failedBefore(key, world), ...others];
}

/** The remains of a failed creation, next to the server that it should have replaced. They are gone before another creation. */
function failedBefore(key: ResourceKey, world: World): readonly ResourceKey[] {
  if (!world.isThere(key)) return [];
  return world
    .serverSubjects()
    .filter((each) => each.binding?.tainted !== undefined && retiredFrom(each.key) === key)
    .map((each) => each.key);
}

/** The operations that delete the live resource of a key: under this key, or, after a successor exists, under its own. */
export function endsOf(key: ResourceKey, world: World): readonly OperationId[] {
  const id = world.idOf(key);
  const retired = id === undefined ? [] : [retiringKey(key, id)];
  return [key, ...retired].map((each) => operationId('delete', each));
}

function own(
  operation: Operation,
  kinds: ReadonlyMap<KindName, ResourceKind>,
  world: World,
): readonly OperationId[] {
  const { key, verb } = operation;
  const { parent } = takeApart(key);
  return [
    ...(verb === 'create' ? [operationId('delete', key)] : []),
    ...(verb === 'delete' && parent !== undefined ? [operationId('delete', parent)] : []),
    // The adoption of a server may wait for its creation, and its address belongs to the server alone.
    ...(verb === 'adopt' && parent !== undefined ? [operationId('adopt', parent)] : []),
    ...obstacles(operation, kinds, world).flatMap((obstacle) => endsOf(obstacle, world)),
    ...(verb === 'delete' ? successorsOf(key, world) : []).flatMap((successor) =>
      (['create', 'update', 'adopt'] as const).map((each) => operationId(each, successor)),
    ),
    ...prerequisites(operation, kinds, world).flatMap((needed) => [
      operationId('create', needed),
      operationId('adopt', needed),
    ]),
  ];
}

/** By rank, but no operation before its needs. `undefined`: operations wait for each other. */
function sorted(
  operations: readonly Operation[],
  kindOrder: readonly KindName[],
): readonly Operation[] | undefined {
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
    if (missing.some(({ id }) => open.has(id))) return undefined;
    open.add(next.id);
    stack.push(next, ...missing);
  }
  return [...result.values()];
}

/**
 * The operations that an operation cannot be carried out without: its needs, and its other half. The plan holds both
 * halves of a replacement or none, because the deleted resource must be created again. The same applies to an address
 * that is deleted for a new server.
 */
export function linksOf(operation: Operation): readonly OperationId[] {
  const half = operation.replacement ?? successorOf(operation);
  return half === undefined ? operation.needs : [...operation.needs, half];
}

/**
 * The operations that stay or go together with the seeds. `dependents`: the seeds, and all operations that cannot be
 * carried out without them. `requirements`: the seeds, and all operations that they cannot be carried out without.
 */
export function closure(
  operations: readonly Operation[],
  isSeed: (operation: Operation) => boolean,
  along: 'dependents' | 'requirements' = 'dependents',
): ReadonlySet<OperationId> {
  const links = operations.flatMap((each) => linksOf(each).map((link) => [each.id, link] as const));
  const edges = along === 'requirements' ? links : links.map(([from, to]) => [to, from] as const);
  const next = Map.groupBy(edges, ([from]) => from);
  const present = new Set(operations.map(({ id }) => id));
  const open = operations.filter(isSeed).map(({ id }) => id);
  const found = new Set(open);
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const [, to] of next.get(id) ?? []) {
      if (found.has(to) || !present.has(to)) continue;
      found.add(to);
      open.push(to);
    }
  }
  return found;
}

export function isSelected({ targets, excludes }: Selection, key: ResourceKey): boolean {
  // A replaced server, and a resource inside it, have other keys until their deletion.
  const server = takeApart(key).parent ?? key;
  const own = `${retiredFrom(server) ?? server}${key.slice(server.length)}` as ResourceKey;
  const within = (each: ResourceKey) =>
    [key, own].some((name) => name === each || takeApart(name).parent === each);
  return (targets.length === 0 || targets.some(within)) && !excludes.some(within);
}

/** The targets with all that they need, without the excluded operations and all that needs them. */
export function select(
  operations: readonly Operation[],
  selection: Selection | undefined,
): readonly Operation[] {
  if (selection === undefined) return operations;
  const { targets, excludes } = selection;
  const chosen = closure(operations, ({ key }) => isSelected({ targets, excludes: [] }, key), 'requirements');
  const dropped = closure(operations, ({ key }) => !isSelected({ targets: [], excludes }, key));
  return operations.filter(({ id }) => chosen.has(id) && !dropped.has(id));
}
