import { objectName, unidentifiedServer } from '../../core/claims.ts';
import { partsOf } from '../../core/intent.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Binding, Intent, StateChange } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { ownerOf } from './claims.ts';
import { isInScope } from './scope.ts';

/** Records that an earlier state used an idempotency key of `key` for a server that neither an answer nor a read shows. */
export function unidentified({ deps }: Run, key: ResourceKey): StateChange {
  const holder = { is: 'unidentified', key } as const;
  const claim = { ...unidentifiedServer(key), identity: {}, holder, at: deps.clock.now() };
  return { type: 'claim', claim };
}

export function hasUnidentified({ claims }: Pick<Run, 'claims'>, key: ResourceKey): boolean {
  return claims.has(objectName(unidentifiedServer(key)));
}

/** The operator has found no other server in the client area. */
export function noneExists(key: ResourceKey): StateChange {
  const reason = 'the operator reported that no other server exists';
  return { type: 'unclaim', object: unidentifiedServer(key), reason };
}

/** The operator names a server that this state did not know, which is the unidentified server of the line. */
export function identified(run: Run, binding: Binding): StateChange[] {
  const { key, kind, id } = binding;
  const isKnown = run.claims.has(objectName(binding)) || ownerOf(run, binding) !== undefined;
  if (!factsOf(kind).container || isKnown) return [];
  const line = run.lines().of(run.world.subjects.get(key)?.desired ?? { key });
  const reason = `the operator adopted ${id} for ${key}`;
  return [...run.claims.values()].flatMap(({ holder }) =>
    holder.is === 'unidentified' && line.has(holder.key)
      ? [{ type: 'unclaim', object: unidentifiedServer(holder.key), reason } as const]
      : [],
  );
}

/**
 * An earlier state may have created this server to replace another one, which may still exist: this state has not seen
 * how the server of an earlier incarnation ended.
 */
export async function perhapsReplaced(run: Run, intent: Intent): Promise<StateChange[]> {
  const { key, kind, incarnation } = intent;
  if (!factsOf(kind).container) return [];
  const past = (await run.deps.store.intents({ key, limit: 50 })).filter((each) => isInScope(run, each));
  for (let before = Number(incarnation) - 1; before >= 0; before -= 1) {
    const last = past.find((each) => each.verb === 'create' && each.incarnation === String(before));
    const { outcome } = last === undefined ? {} : partsOf(last);
    if (outcome === 'done') return [];
    if (outcome !== 'absent') return [unidentified(run, key)];
  }
  return [];
}
