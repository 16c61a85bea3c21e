import type { Operation, OperationId, Plan } from '../core/plan.ts';

/** What is held back for now, and what cannot be done without it. */
export function withheldOf(
  plan: Plan,
  withholds: (operation: Operation) => boolean,
): ReadonlySet<OperationId> {
  const withheld = new Set<OperationId>();
  // Operations stand after what they need.
  for (const operation of plan.operations) {
    const half = operation.replacement !== undefined && withheld.has(operation.replacement);
    if (half || withholds(operation) || operation.needs.some((id) => withheld.has(id))) {
      withheld.add(operation.id);
    }
  }
  return withheld;
}
