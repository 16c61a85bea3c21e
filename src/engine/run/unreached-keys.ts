import { isBare } from '../../core/desired.ts';
import { partsOf } from '../../core/intent.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Binding, Intent } from '../../core/state.ts';
import type { UnreachedKey } from '../../plan/warnings.ts';
import { isInScope } from '../claims/scope.ts';
import { inWriteSlot } from '../intents/begin.ts';
import { asksKey, keyIsFresh } from '../intents/endings.ts';
import { isUnaskable } from '../intents/probe-key.ts';
import { isReserved, reserve } from '../intents/reserve-key.ts';
import type { Run } from '../run.ts';

/** A key without reach, with the id and the creation of its resource. */
interface Unreached extends UnreachedKey {
  readonly id: string;
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
  for (const { key, id, creation } of await keysWithoutReach(run)) {
    if (!asksKey(run, creation) || (await isUnaskable(run, creation)) || (await isReserved(run, { key, id })))
      continue;
    const { kind, verb } = creation;
    await inWriteSlot(run, { key, kind, verb }, () => reserve(run, { key, kind }));
  }
}

/** A process with many runs asks only about renamed entries: their reads are further statements of each reconciliation. */
async function keysWithoutReach(run: Run): Promise<readonly Unreached[]> {
  const asked = [...run.bindings.values()].filter(
    ({ key, formerKeys }) =>
      isUnseen(run, key) && (run.mode.repeating === undefined || formerKeys !== undefined),
  );
  const unreached = await Promise.all(asked.map((binding) => withoutReach(run, binding)));
  return unreached.flatMap((each) => each ?? []);
}

/** No list shows the resource of the entry. */
function isUnseen(run: Run, key: ResourceKey): boolean {
  const { desired } = run.world.subjects.get(key) ?? {};
  return desired !== undefined && (isBare(desired) || factsOf(desired.kind).unlisted === true);
}

async function withoutReach(run: Run, { key, id, formerKeys = [] }: Binding): Promise<Unreached | undefined> {
  const past = await Promise.all(
    [key, ...formerKeys].map((each) => run.deps.store.intents({ key: each, limit: 50 })),
  );
  // The resource of another creation was replaced.
  const creation = past.flat().find((each) => {
    const { outcome, answer } = partsOf(each);
    return each.verb === 'create' && outcome === 'done' && (answer?.id ?? id) === id;
  });
  if (creation === undefined || !keyIsFresh(run, creation)) return undefined;
  if (!isInScope(run, creation)) return { key, id, from: 'scope', creation };
  const isRenamed = creation.key !== key && run.world.subjects.get(key)?.desired?.moved === undefined;
  return isRenamed ? { key, id, from: creation.key, creation } : undefined;
}
