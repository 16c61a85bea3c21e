import type { Operation, OperationId, Plan } from '../core/plan.ts';
import { successorOf } from '../plan/order.ts';

/** What is held back for now, and what cannot be done without it. */
export function withheldOf(
  plan: Plan,
  withholds: (operation: Operation) => boolean,
): ReadonlySet<OperationId> {
  const withheld = new Set<OperationId>();
  const isWithheld = (operation: Operation) => {
    const half = operation.replacement ?? successorOf(operation);
    const others = half === undefined ? operation.needs : [...operation.needs, half];
    return withholds(operation) || others.some((id) => withheld.has(id));
  };
  for (let known = -1; known !== withheld.size; ) {
    known = withheld.size;
    for (const operation of plan.operations) if (isWithheld(operation)) withheld.add(operation.id);
  }
  return withheld;
}
