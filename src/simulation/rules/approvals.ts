import { partsOf } from '../../core/intent.ts';
import { operationId } from '../../core/plan.ts';
import type { Intent } from '../../core/state.ts';
import type { Running } from '../controller.ts';
import type { Truth } from './truth.ts';

/**
 * I17: with `settings.approval: plan`, an operation begins only under the last plan that the operator approved, for
 * the same file, and is done once. A state that was put back may contain any earlier approval.
 */
export function checkApproved(
  { fail }: Truth,
  { desired, controller, byPerson }: Running,
  intent: Intent,
): void {
  if (desired.settings.approval !== 'plan' || byPerson) return;
  // A question about a key that an earlier state may have used. It is no operation of a plan.
  if (partsOf(intent).unconfirmed !== undefined) return;
  const id = operationId(intent.verb, intent.key);
  const last = controller.approved.at(-1);
  const isGranted =
    last?.epoch === controller.epoch
      ? last.desired === desired.digest && last.left.has(id)
      : controller.approved.some((each) => each.desired === desired.digest && each.operations.has(id));
  if (!isGranted) fail('I17', `${id} begins, and the operator has not approved it`);
}

/** An operation that is done needs another approval. */
export function consumeApproved({ controller }: Running, { verb, key }: Intent): void {
  controller.approved.at(-1)?.left.delete(operationId(verb, key));
}
