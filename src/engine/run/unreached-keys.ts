import { isBare } from '../../core/desired.ts';
import { partsOf } from '../../core/intent.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Binding, Intent } from '../../core/state.ts';
import type { UnreachedKey } from '../../plan/warnings.ts';
import { isInScope } from '../claims/scope.ts';
import { inWriteSlot } from '../intents/begin.ts';
import { asksKey, keyIsFresh } from '../intents/endings.ts';
import { isUnaskable } from '../intents/probe-key.ts';
import { isReserved, reserve } from '../intents/reserve-key.ts';
import type { Run } from '../run.ts';

/** A key without reach, and the creation of its resource. */
interface Unreached extends UnreachedKey {
  readonly creation: Intent;
}

/**
 * The resources that no list shows, whose keys the API still knows, and a new state could not derive from the spec. An API
 * whose keys can be asked has the keys of their entries reserved.
 */
export async function unreachedKeys(run: Run): Promise<readonly UnreachedKey[]> {
  const unreached = await keysWithoutReach(run);
  const isLeft = await Promise.all(unreached.map(({ creation }) => isUnaskable(run, creation)));
  return unreached.filter((_each, at) => isLeft[at]);
}

/**
 * Reserves the keys of these entries, so that a lost state, or an older copy, does not create their resources again. Keys
 * that the API does not answer for now are reserved by a later run.
 */
export async function reserveUnreached(run: Run): Promise<void> {
  for (const { key, creation } of await keysWithoutReach(run)) {
    if (!asksKey(run, creation) || (await isUnaskable(run, creation)) || (await isReserved(run, key)))
      continue;
    const { kind, verb } = creation;
    await inWriteSlot(run, { key, kind, verb }, () => reserve(run, { key, kind }));
  }
}

/** A process with many runs asks only about renamed entries: the read is one more statement of each reconciliation. */
async function keysWithoutReach(run: Run): Promise<readonly Unreached[]> {
  const isRenamed = ({ key, formerKeys }: Binding) =>
    formerKeys !== undefined && run.world.subjects.get(key)?.desired?.moved === undefined;
  if (run.mode.repeating !== undefined && ![...run.bindings.values()].some(isRenamed)) return [];
  const done = await run.deps.store.intents({ outcome: 'done', limit: 100 });
  const boundNow = new Map(
    [...run.bindings.values()].flatMap((binding) =>
      [...(binding.formerKeys ?? []), binding.key].map((each) => [each, binding] as const),
    ),
  );
  return done.flatMap((creation): Unreached[] => {
    const { key, id } = boundNow.get(creation.key) ?? {};
    const { desired } = (key && run.world.subjects.get(key)) ?? {};
    const isSeen = desired === undefined || !(isBare(desired) || factsOf(desired.kind).unlisted);
    if (creation.verb !== 'create' || isSeen) return [];
    // The resource of an earlier creation was replaced.
    const isOwn = (partsOf(creation).answer?.id ?? id) === id;
    if (!isOwn || !keyIsFresh(run, creation)) return [];
    if (!isInScope(run, creation)) return [{ key: desired.key, from: 'scope', creation }];
    const isRenamed = creation.key !== desired.key && desired.moved === undefined;
    return isRenamed ? [{ key: desired.key, from: creation.key, creation }] : [];
  });
}
