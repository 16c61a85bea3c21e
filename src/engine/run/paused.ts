import { childKey, retiredFrom } from '../../core/keys.ts';
import { type Operation, type OperationId, operationId, type Plan } from '../../core/plan.ts';
import type { OperationResult } from '../../core/progress.ts';
import { run } from '../../core/remedy.ts';

/**
 * The operations that a reader of the plan knows of: the operations of the plan, and the deletion of an old copy for
 * a new one.
 */
export function shownBy({ operations }: Plan): ReadonlySet<OperationId> {
  const copies = operations.flatMap(({ key, changes }) =>
    changes.flatMap(({ path, from }) =>
      path === 'oldest' ? [operationId('delete', childKey(key, String(from)))] : [],
    ),
  );
  return new Set([...operations.map(({ id }) => id), ...copies]);
}

/** Reports the losses that the shown plan did not contain, instead of causing them. */
export function unshownResults(unshown: readonly Operation[]): readonly OperationResult[] {
  const what = ({ loses, replacement }: Operation) =>
    loses === undefined
      ? `be deleted${replacement === undefined ? '' : ' and created again'}`
      : `lose ${loses}`;
  return unshown.map((operation) => ({
    key: operation.replacement === undefined ? operation.key : (retiredFrom(operation.key) ?? operation.key),
    verb: operation.replacement === undefined ? operation.verb : 'update',
    outcome: 'blocked',
    code: 'not_shown',
    detail: `the resource would ${what(operation)}, and the first plan of this run did not show that`,
    remedies: [run('apply')],
    durationMs: 0,
  }));
}
