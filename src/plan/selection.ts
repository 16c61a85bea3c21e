import { type ResourceKey, takeApart } from '../core/keys.ts';
import type { Operation, OperationId, Selection } from '../core/plan.ts';

export function isSelected({ targets, excludes }: Selection, key: ResourceKey): boolean {
  const within = (each: ResourceKey) => key === each || takeApart(key).parent === each;
  return (targets.length === 0 || targets.some(within)) && !excludes.some(within);
}

/** The operations that are left. Both halves of a replacement stay or go together. */
export function select(
  operations: readonly Operation[],
  selection: Selection | undefined,
): readonly Operation[] {
  if (selection === undefined) return operations;
  const byId = new Map(operations.map((each) => [each.id, each]));
  const linked = ({ needs, replacement }: Operation) =>
    replacement === undefined ? needs : [...needs, replacement];
  const chosen = new Set<OperationId>();
  const choose = (operation: Operation) => {
    if (chosen.has(operation.id)) return;
    chosen.add(operation.id);
    for (const id of linked(operation)) {
      const needed = byId.get(id);
      if (needed !== undefined) choose(needed);
    }
  };
  const { targets, excludes } = selection;
  for (const operation of operations) {
    if (isSelected({ targets, excludes: [] }, operation.key)) choose(operation);
  }
  const dropped = new Set(
    operations.filter(({ key }) => !isSelected({ targets: [], excludes }, key)).map(({ id }) => id),
  );
  for (let size = -1; size !== dropped.size; ) {
    size = dropped.size;
    for (const operation of operations) {
      if (linked(operation).some((id) => dropped.has(id))) dropped.add(operation.id);
    }
  }
  return operations.filter(({ id }) => chosen.has(id) && !dropped.has(id));
}
