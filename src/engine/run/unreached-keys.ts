import { isBare } from '../../core/desired.ts';
import { partsOf } from '../../core/intent.ts';
import type { UnreachedKey } from '../../plan/warnings.ts';
import { isInScope } from '../claims/scope.ts';
import { keyIsFresh } from '../intents/endings.ts';
import type { Run } from '../run.ts';

/**
 * The servers without an address whose keys the API still knows, and a new state could not derive from the spec. A process
 * with many runs does not ask: the read would be one more statement of each reconciliation.
 */
export async function unreachedKeys(run: Run): Promise<readonly UnreachedKey[]> {
  if (run.mode.repeating !== undefined) return [];
  const done = await run.deps.store.intents({ outcome: 'done', limit: 100 });
  const boundNow = new Map(
    [...run.bindings.values()].flatMap((binding) =>
      [...(binding.formerKeys ?? []), binding.key].map((each) => [each, binding] as const),
    ),
  );
  return done.flatMap((intent): UnreachedKey[] => {
    const { key, id } = boundNow.get(intent.key) ?? {};
    const { desired } = (key && run.world.subjects.get(key)) ?? {};
    if (intent.verb !== 'create' || desired === undefined || !isBare(desired)) return [];
    // The server of an earlier creation was replaced.
    const isOwn = (partsOf(intent).answer?.id ?? id) === id;
    if (!isOwn || !keyIsFresh(run, intent)) return [];
    if (!isInScope(run, intent)) return [{ key: desired.key, from: 'scope' }];
    const isRenamed = intent.key !== desired.key && desired.moved === undefined;
    return isRenamed ? [{ key: desired.key, from: intent.key }] : [];
  });
}
