import { type ResourceKey, retiredFrom, takeApart } from '../core/keys.ts';
import type { World } from '../core/kind.ts';
import { factsOf } from '../core/kind-facts.ts';
import { type Operation, type OperationId, operationId } from '../core/plan.ts';
import type { Intent } from '../core/state.ts';

/** The replacement of a server that begins only once another replacement is complete. */
export interface Turn {
  /** The operation with which the replacement begins. */
  readonly first: OperationId;
  /** The server of the other replacement. */
  readonly after: ResourceKey;
  /** The remaining operations of the other replacement. */
  readonly ends: readonly OperationId[];
}

/**
 * The turns of the replacements in a plan: one server after the other, or as many at once as the entry of a server
 * permits (`at_once`). So values that the API refuses cost at most one server. Replacements that have begun come first.
 * A server that claims an address comes before servers that free further addresses.
 */
export function turnsOf(
  operations: readonly Operation[],
  world: World,
  inFlight: Iterable<Intent>,
): readonly Turn[] {
  const present = new Set(operations.map(({ id }) => id));
  const planned = operations.flatMap(({ key, kind, verb, replacement }) =>
    verb === 'create' && replacement !== undefined && factsOf(kind).container ? [key] : [],
  );
  if (planned.length === 0) return [];
  const begun = begunIn(world, inFlight);
  const claims = (key: ResourceKey) => world.subjects.get(key)?.desired?.value.public_ipv4?.ip !== undefined;
  const rank = (key: ResourceKey) => (begun.has(key) ? 0 : claims(key) ? 1 : 2);
  const all = [...new Set([...begun, ...planned])].sort(
    (one, other) => rank(one) - rank(other) || (one < other ? -1 : 1),
  );
  const steps = Map.groupBy(
    operations.filter(({ key }) => isStep(key)),
    ({ key }) => serverAfter(key),
  );
  return all.flatMap((key, at): Turn[] => {
    const after = all[at - atOnce(key, world)];
    if (begun.has(key) || after === undefined) return [];
    const remove = operationId('delete', key);
    const first = present.has(remove) ? remove : operationId('create', key);
    return [{ first, after, ends: (steps.get(after) ?? []).map(({ id }) => id) }];
  });
}

/** The servers whose replacement an earlier run or round has begun: the old server retires, or is deleted already. */
function begunIn(world: World, inFlight: Iterable<Intent>): ReadonlySet<ResourceKey> {
  const retiring = [...world.subjects.values()].flatMap(({ key, parent }) => {
    const successor = retiredFrom(key);
    const isOver = parent !== undefined && successor !== undefined && world.isThere(successor);
    return successor === undefined || isOver ? [] : [successor];
  });
  // A server of the key existed before.
  const created = [...inFlight].filter(
    ({ kind, verb, incarnation }) => factsOf(kind).container && verb === 'create' && incarnation !== '0',
  );
  const keys = [...retiring, ...created.map(({ key }) => key)];
  return new Set(keys.filter((key) => world.subjects.get(key)?.desired?.managed === true));
}

/** A backup is taken when it is due, and the address of a deleted server needs nothing any more. */
export function isStep(key: ResourceKey): boolean {
  const { repeats, independent } = factsOf(takeApart(key).kind);
  return repeats !== true && independent !== true;
}

/** The server that exists after the replacement. */
export function serverAfter(key: ResourceKey): ResourceKey {
  return retiredFrom(key) ?? takeApart(key).parent ?? key;
}

function atOnce(key: ResourceKey, { subjects }: World): number {
  const replace = subjects.get(key)?.desired?.value.replace;
  return (typeof replace === 'object' ? replace.at_once : undefined) ?? 1;
}
