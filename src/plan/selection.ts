import { type ResourceKey, takeApart } from '../core/keys.ts';
import type { Operation, Selection } from '../core/plan.ts';
import { closure } from './closure.ts';

export function isSelected({ targets, excludes }: Selection, key: ResourceKey): boolean {
  const within = (each: ResourceKey) => key === each || takeApart(key).parent === each;
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
