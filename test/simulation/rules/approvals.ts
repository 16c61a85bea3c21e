import equal from 'fast-deep-equal';
import type { Desired } from '../../../src/core/desired.ts';
import { partsOf } from '../../../src/core/intent.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { type Change, type Operation, operationId, type Plan } from '../../../src/core/plan.ts';
import type { Intent } from '../../../src/core/state.ts';
import type { Running } from '../../../src/simulation/controller.ts';
import { projectOf, type Truth } from '../../../src/simulation/rules/truth.ts';

/**
 * I17: an operation of a plan that `settings.approval` asks about begins only under the last plan that the operator
 * approved, for the same spec and with the same content, and is done once. A state that was put back may contain any
 * earlier approval.
 */
export function checkApproved(truth: Truth, running: Running, intent: Intent): void {
  const { fail } = truth;
  const { desired, controller, byOperator, plan } = running;
  const { approval } = desired.settings;
  if (approval === 'none' || byOperator) return;
  // A question about a key that an earlier state may have used. It is no operation of a plan.
  if (partsOf(intent).unconfirmed !== undefined) return;
  const id = operationId(intent.verb, intent.key);
  if (plan?.operations.some((each) => each.id === id) !== true)
    fail('I17', `${id} begins, and no plan of the run contains it`);
  if (plan === undefined) return;
  // The run pauses operations that are not in its first plan.
  const shown = new Set([id, ...(running.firstPlan ?? plan).operations.map((each) => each.id)]);
  const operations = plan.operations.filter(
    (each) => shown.has(each.id) && shown.has(each.replacement ?? each.id),
  );
  const carriedOut = { ...plan, operations };
  if (approval !== 'plan' && !isOver(carriedOut, approval)) return;
  const last = controller.approved.at(-1);
  const granted =
    last?.epoch === controller.epoch
      ? last.desired === desired.digest
        ? [last.left.get(id)]
        : []
      : controller.approved.flatMap((each) =>
          each.desired === desired.digest ? [each.operations.get(id)] : [],
        );
  const approved = granted.filter((each) => each !== undefined);
  if (approved.length === 0) fail('I17', `${id} begins, and the operator has not approved it`);
  else if (!approved.some((each) => isSame(each, intent, (key) => liveIdOf(key, running, truth))))
    fail('I17', `${id} begins with other content than the operator has approved`);
}

/** An operation that is done needs another approval. */
export function consumeApproved({ controller }: Running, { verb, key }: Intent): void {
  controller.approved.at(-1)?.left.delete(operationId(verb, key));
}

/** The thresholds, read again from the documentation. */
function isOver(
  { operations, cost }: Plan,
  limits: Exclude<Desired['settings']['approval'], 'none' | 'plan'>,
): boolean {
  const { deletions, replacements, monthly_increase: limit } = limits;
  const deleted = operations.filter(({ verb }) => verb === 'delete');
  const replaced = operations.filter((each) => each.replacement !== undefined);
  if (deletions && deleted.some((each) => !replaced.includes(each))) return true;
  if (replacements && replaced.length > 0) return true;
  return (
    limit !== null &&
    Number.parseFloat(cost.known_monthly_most ?? cost.known_monthly_delta) -
      Number.parseFloat(cost.known_monthly_freed ?? '0') >
      limit
  );
}

/** The same changes of the same resource, and a request with the values that the plan shows. */
function isSame(
  operation: Operation,
  intent: Intent,
  idOf: (key: ResourceKey) => string | undefined,
): boolean {
  const { changes, target, verb } = operation;
  const { path, body } = intent.request;
  if (verb === 'delete' && path.id !== undefined && String(path.id) !== target) return false;
  if (!hasContent(operation, intent)) return false;
  const sent = (body ?? {}) as Readonly<Record<string, unknown>>;
  return changes.every((change) => {
    const value = sent[change.path] ?? sent[`${change.path}_id`];
    // A plan shows another resource by its key.
    return value === undefined || isShown(value, change) || String(value) === idOf(change.to as ResourceKey);
  });
}

/** The id behind a key of the spec. A network that is not managed has no binding, and is known by its name. */
function liveIdOf(key: ResourceKey, { desired, mirror }: Running, truth: Truth): string | undefined {
  const bound = mirror.bindings.get(key)?.id;
  if (bound !== undefined) return bound;
  const entry = desired.resources.find((each) => each.key === key && !each.managed);
  const network = projectOf(truth).networks.find(({ name }) => name === entry?.value.name);
  return network && String(network.id);
}

/**
 * An approval covers the wanted values: by the time of the write, some of them may be in force. Of a replacement it covers
 * the content as a whole. Once the old resource is deleted, a plan shows all values of the new one.
 */
function hasContent({ changes, replacement, verb }: Operation, intent: Intent): boolean {
  const written = ({ to, to_id, from }: Change) => (to === null ? { from } : { to, to_id });
  const isIn = (change: Change, others: readonly Change[]) =>
    others.some((each) => each.path === change.path && equal(written(each), written(change)));
  if (verb === 'delete') return equal(changes, intent.changes);
  if (replacement === undefined) return intent.changes.every((change) => isIn(change, changes));
  const isNew = ({ path }: Change) => intent.changes.some((each) => each.path === path);
  return changes.every((change) => isIn(change, intent.changes) || (change.to === null && !isNew(change)));
}

function isShown(value: unknown, { to, to_id }: Change): boolean {
  if (equal(value, to) || value === to_id) return true;
  // An order of preference, or an address: the plan shows a word, and the request contains an object.
  return Array.isArray(to) ? to.includes(value) : typeof value === 'object' && typeof to === 'string';
}
