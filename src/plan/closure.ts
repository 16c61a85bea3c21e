import { type ResourceKey, retiredFrom, takeApart } from '../core/keys.ts';
import type { Operation, OperationId, Selection } from '../core/plan.ts';
import { successorOf } from './order.ts';

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
  // A replaced server has another key until its deletion.
  const within = (each: ResourceKey) =>
    key === each || takeApart(key).parent === each || retiredFrom(key) === each;
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
