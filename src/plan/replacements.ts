import { digestOf } from '../core/json.ts';
import { entryKeyOf, type ResourceKey, retiredFrom, takeApart } from '../core/keys.ts';
import type { World } from '../core/kind.ts';
import { factsOf } from '../core/kind-facts.ts';
import { type Operation, type OperationId, operationId } from '../core/plan.ts';
import type { Intent } from '../core/state.ts';
import type { GuardInput } from './objections.ts';

/** The replacement of a server that begins only once other replacements are complete. */
export interface ReplacementTurn {
  /** The operation with which the replacement begins. */
  readonly first: OperationId;
  /** The servers of the other replacements. */
  readonly after: readonly ResourceKey[];
  /** The remaining operations of the other replacements. */
  readonly ends: readonly OperationId[];
}

/**
 * The turns of the replacements in a plan: one server after the other, or as many at once as the entry of a server
 * permits (`at_once`). So values that the API refuses cost at most one server. Replacements that have begun come first.
 * A server that claims an address comes before servers that free further addresses, and a server that another replacement
 * waits for comes before that one.
 *
 * A proof does not show all values that the API refuses. So of the servers that are deleted first, the first one with the
 * same values is replaced alone, even if `at_once` permits more.
 */
export function turnsOf(
  operations: readonly Operation[],
  world: World,
  begun: ReadonlySet<ResourceKey>,
): readonly ReplacementTurn[] {
  const present = new Set(operations.map(({ id }) => id));
  const planned = operations.flatMap(({ key, kind, verb, replacement }) =>
    verb === 'create' && replacement !== undefined && factsOf(kind).container ? [key] : [],
  );
  if (planned.length === 0) return [];
  const claims = (key: ResourceKey) => world.subjects.get(key)?.desired?.value.public_ipv4?.ip !== undefined;
  const rank = (key: ResourceKey) => (begun.has(key) ? 0 : claims(key) ? 1 : 2);
  const ranked = [...new Set([...begun, ...planned])].sort(
    (one, other) => rank(one) - rank(other) || (one < other ? -1 : 1),
  );
  const all = neededFirst(ranked, operations);
  const steps = Map.groupBy(
    operations.filter(({ key }) => isStep(key)),
    ({ key }) => entryKeyOf(key),
  );
  const alike = firstAlike(all, world);
  let alone: readonly ResourceKey[] = [...begun];
  return all.flatMap((key, at): ReplacementTurn[] => {
    if (begun.has(key)) return [];
    const remove = operationId('delete', key);
    if (!present.has(remove)) return [turn(operationId('create', key), [all[at - atOnce(key, world)]])];
    const first = alike.get(key);
    if (first !== key) return [turn(remove, [first, all[at - atOnce(key, world)]])];
    const before = alone;
    alone = [...begun, key];
    return [turn(remove, [...before, all[at - 1]])];
  });

  function turn(first: OperationId, others: readonly (ResourceKey | undefined)[]): ReplacementTurn {
    const after = [...new Set(others)].filter((each) => each !== undefined);
    return { first, after, ends: after.flatMap((each) => (steps.get(each) ?? []).map(({ id }) => id)) };
  }
}

/** The servers in their order, but none before a server whose operations its own operations wait for. */
function neededFirst(servers: readonly ResourceKey[], operations: readonly Operation[]): ResourceKey[] {
  const byId = new Map(operations.map((operation) => [operation.id, operation]));
  const own = Map.groupBy(operations, ({ key }) => entryKeyOf(key));
  const waiting = new Set(servers);
  const result: ResourceKey[] = [];
  const put = (server: ResourceKey) => {
    if (!waiting.delete(server)) return;
    // A set also visits the operations that are added during the visit.
    const needed = new Set((own.get(server) ?? []).flatMap(({ needs }) => needs));
    for (const id of needed) {
      const { key, needs = [] } = byId.get(id) ?? {};
      if (key !== undefined && waiting.has(entryKeyOf(key))) put(entryKeyOf(key));
      else for (const each of needs) needed.add(each);
    }
    result.push(server);
  };
  for (const server of servers) put(server);
  return result;
}

/** Of each server, the first one with the same values: servers of one role differ in name and address alone. */
function firstAlike(
  keys: readonly ResourceKey[],
  { subjects }: World,
): ReadonlyMap<ResourceKey, ResourceKey> {
  const valuesOf = (key: ResourceKey) => {
    const { name: _name, public_ipv4: _address, ...values } = subjects.get(key)?.desired?.value ?? {};
    return digestOf(values);
  };
  const groups = [...Map.groupBy(keys, valuesOf).values()];
  return new Map(groups.flatMap((group) => group.map((key) => [key, group[0] ?? key] as const)));
}

/**
 * The servers whose replacement an earlier run or round has begun: the old server retires, or is deleted already.
 *
 * @param completing the keys whose operation completes an earlier write
 */
export function begunIn(
  world: World,
  inFlight: Iterable<Intent>,
  completing: Iterable<ResourceKey> = [],
): ReadonlySet<ResourceKey> {
  const retiring = [...world.subjects.values()].flatMap(({ key, parent }) => {
    const successor = retiredFrom(key);
    const isOver = parent !== undefined && successor !== undefined && world.isThere(successor);
    return successor === undefined || isOver ? [] : [successor];
  });
  // A server of the key existed before.
  const created = [...inFlight].filter(
    ({ kind, verb, incarnation }) => factsOf(kind).container && verb === 'create' && incarnation !== '0',
  );
  const deleted = [...completing].filter(
    (key) => factsOf(takeApart(key).kind).container && !world.isThere(key),
  );
  const keys = [...retiring, ...created.map(({ key }) => key), ...deleted];
  return new Set(keys.filter((key) => world.subjects.get(key)?.desired?.managed === true));
}

/**
 * The creation is the second half of a replacement: this state has deleted the resource before, and the idempotency key of
 * the creation shows whether another copy of the state has created the new one. Nothing else of its line exists.
 */
export function isSecondHalf({ begun }: Pick<GuardInput, 'begun'>, key: ResourceKey): boolean {
  return begun?.get(key) === true;
}

/** A backup is taken when it is due, and the address of a deleted server needs nothing any more. */
export function isStep(key: ResourceKey): boolean {
  const { repeats, independent } = factsOf(takeApart(key).kind);
  return repeats !== true && independent !== true;
}

/** The creation of a replacement whose deletion comes after it. */
export function precedesDeletion({
  key,
  verb,
  replacement,
}: Pick<Operation, 'key' | 'verb' | 'replacement'>): boolean {
  return verb === 'create' && replacement !== undefined && replacement !== operationId('delete', key);
}

function atOnce(key: ResourceKey, { subjects }: World): number {
  const replace = subjects.get(key)?.desired?.value.replace;
  return (typeof replace === 'object' ? replace.at_once : undefined) ?? 1;
}
