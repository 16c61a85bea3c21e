import { type DesiredResource, isBare } from '../../core/desired.ts';
import { partsOf } from '../../core/intent.ts';
import { takeApart } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Binding } from '../../core/state.ts';
import type { UnreachedKey } from '../../plan/warnings.ts';
import { incarnationOf, isInScope } from '../claims/scope.ts';
import { inWriteSlot } from '../intents/begin.ts';
import { keyMayBeKnown } from '../intents/endings.ts';
import { requestOf } from '../intents/next-incarnation.ts';
import { isUnaskable } from '../intents/probe-key.ts';
import { isReservation, reservationOf, reserve } from '../intents/reserve-key.ts';
import type { Run } from '../run.ts';

/**
 * Reserves the keys of the entries that a lost state, or an older copy, would use for another purchase: their resources
 * were created under keys that cannot be derived from the spec. Keys that the API does not answer for now are reserved by
 * a later run.
 */
export async function reserveUnreached(run: Run): Promise<void> {
  for (const { binding } of await unreachedIn(run)) {
    const { key, kind } = binding;
    if ((await reservationOf(run, binding)) !== undefined) continue;
    await inWriteSlot(run, { key, kind, verb: 'create' }, () => reserve(run, binding));
  }
}

/** The entries whose key could not be reserved, or was used by another state. */
export async function unreachedKeys(run: Run): Promise<readonly UnreachedKey[]> {
  const unreached = await Promise.all(
    (await unreachedIn(run)).map(async (each): Promise<readonly UnreachedKey[]> => {
      const reservation = await reservationOf(run, each.binding);
      if (reservation === 'used_elsewhere') return [{ ...each, from: 'used_elsewhere' }];
      return reservation === undefined && (await isUnreserved(run, each.binding)) ? [each] : [];
    }),
  );
  return unreached.flat();
}

/** A run has tried to reserve the key, or cannot try. */
async function isUnreserved(run: Run, binding: Binding): Promise<boolean> {
  const { key, kind } = binding;
  const request = requestOf(run, { key, kind, verb: 'create', changes: [] });
  if (request === undefined || run.intents.has(key) || run.facts.pausedBy(request, 'none') !== undefined)
    return true;
  const past = await run.deps.store.intents({ key, limit: 50 });
  return (await isUnaskable(run, { request })) || past.some(isReservation);
}

interface Unreached extends UnreachedKey {
  readonly binding: Binding;
}

async function unreachedIn(run: Run): Promise<readonly Unreached[]> {
  const asked = [...run.bindings.values()].filter((each) => mayBeUnreached(run, each));
  const unreached = await Promise.all(asked.map((binding) => unreachedBy(run, binding)));
  return unreached.flatMap((each) => each ?? []);
}

/**
 * The other bindings cost no reads. A process with many runs asks only where the spec has a scope, the entry has an earlier
 * key, or the resource was bound in the last hour.
 */
function mayBeUnreached(run: Run, { key, formerKeys, boundAt }: Binding): boolean {
  const { deps, mode, world } = run;
  const { desired } = world.subjects.get(key) ?? {};
  if (desired?.managed !== true || takeApart(key).parent !== undefined) return false;
  if (desired.id !== undefined && desired.held === undefined) return false;
  if (formerKeys !== undefined || run.desired.scope !== undefined) return true;
  const isAsked = mode.repeating === undefined || deps.clock.now() - boundAt < 3_600_000;
  return isAsked && isUnseen(desired);
}

/** No list shows the resource. */
function isUnseen(desired: DesiredResource): boolean {
  return isBare(desired) || factsOf(desired.kind).unlisted === true;
}

/**
 * @returns `undefined` if the spec leads to the key under which the resource was created, or if the API has forgotten that
 * key
 */
async function unreachedBy(run: Run, binding: Binding): Promise<Unreached | undefined> {
  const { key, id, formerKeys = [] } = binding;
  const { desired } = run.world.subjects.get(key) ?? {};
  if (desired === undefined) return undefined;
  const past = await Promise.all(
    [key, ...formerKeys].map((each) => run.deps.store.intents({ key: each, limit: 50 })),
  );
  const present = String((await incarnationOf(run, key)).incarnation);
  // The resource of another creation was replaced, or was found before the entry got this one.
  const creation = past.flat().find((each) => {
    const { outcome, because, answer } = partsOf(each);
    // A failed task may have left the resource.
    const isIts = answer?.id === undefined ? outcome === 'done' : answer.id === id;
    const isFound = because === 'found' && (each.key !== key || each.incarnation === present);
    return each.verb === 'create' && (isIts || isFound);
  });
  const isYoung = keyMayBeKnown(run, { firstSentAt: binding.boundAt, firstSentApiAt: null });
  if (creation === undefined)
    return isUnseen(desired) && isYoung ? { key, from: 'elsewhere', binding } : undefined;
  if (!keyMayBeKnown(run, creation)) return undefined;
  if (!isInScope(run, creation)) return { key, from: 'scope', binding };
  const isStated = creation.key === desired.moved && desired.isInferred !== true;
  const isDerived = creation.key === key || isStated;
  return isDerived ? undefined : { key, from: creation.key, binding };
}
