import { isUnidentified, objectName, unidentifiedServer } from '../../core/claims.ts';
import { partsOf } from '../../core/intent.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Binding, Intent, StateChange } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { ownerOf } from './claims.ts';
import { isInScope } from './scope.ts';

/**
 * Records that an earlier state used the idempotency key of the incarnation for a server that neither an answer nor a
 * read shows.
 */
export function unidentified(
  { deps, claims }: Run,
  { key, incarnation }: Pick<Intent, 'key' | 'incarnation'>,
): StateChange {
  const object = unidentifiedServer(key);
  const { holder: before } = claims.get(objectName(object)) ?? {};
  const isNew = before?.is !== 'unidentified';
  const holder =
    isNew || before.incarnation !== incarnation
      ? ({ is: 'unidentified', key, ...(isNew ? { incarnation } : {}) } as const)
      : before;
  return { type: 'claim', claim: { ...object, identity: {}, holder, at: deps.clock.now() } };
}

/** Whether an idempotency key of `key` is known as one that names no server. */
export function hasUnidentified({ claims }: Pick<Run, 'claims'>, key: ResourceKey): boolean {
  return claims.has(objectName(unidentifiedServer(key)));
}

/** The operator has named the unidentified servers of these keys, or has found none in the client area. */
export function settled({ claims }: Pick<Run, 'claims'>, keys: ReadonlySet<ResourceKey>): StateChange[] {
  const named = [...claims.values()].filter(isUnidentified).filter(({ holder }) => keys.has(holder.key));
  return named.map((claim) => ({
    type: 'claim',
    claim: { ...claim, holder: { ...claim.holder, settled: true } },
  }));
}

/**
 * The operator names a server that this state did not know, which is the unidentified server of the line. The answer to an
 * open question is about its incarnation: the server of an earlier one may be another one.
 */
export function identified(run: Run, binding: Binding): StateChange[] {
  const { key, kind } = binding;
  const isKnown = run.claims.has(objectName(binding)) || ownerOf(run, binding) !== undefined;
  if (!factsOf(kind).container || isKnown) return [];
  const line = run.lines().of(run.world.subjects.get(key)?.desired ?? { key });
  const named = [...line].filter((each) => {
    const open = run.intents.get(each);
    return open === undefined || isUnidentifiedIn(run, open);
  });
  return settled(run, new Set(named));
}

/** Whether the unidentified server of the key, if any, is that of the incarnation. */
function isUnidentifiedIn(
  { claims }: Pick<Run, 'claims'>,
  { key, incarnation }: Pick<Intent, 'key' | 'incarnation'>,
): boolean {
  const { holder } = claims.get(objectName(unidentifiedServer(key))) ?? {};
  return holder?.is === 'unidentified' && holder.incarnation === incarnation;
}

/**
 * The key of the creation was answered with a server, which is unidentified no more. An earlier state may have created
 * it to replace another one, which may still exist: this state has not seen how the server of an earlier incarnation
 * ended.
 */
export async function answeredWithServer(run: Run, intent: Intent): Promise<StateChange[]> {
  const object = unidentifiedServer(intent.key);
  const reason = 'its idempotency key was answered';
  const ended = isUnidentifiedIn(run, intent) ? [{ type: 'unclaim', object, reason } as const] : [];
  return [...ended, ...(await unidentifiedPredecessor(run, intent))];
}

async function unidentifiedPredecessor(run: Run, intent: Intent): Promise<StateChange[]> {
  const { key, kind, incarnation } = intent;
  if (!factsOf(kind).container) return [];
  const past = (await run.deps.store.intents({ key, limit: 50 })).filter((each) => isInScope(run, each));
  for (let before = Number(incarnation) - 1; before >= 0; before -= 1) {
    const last = past.find((each) => each.verb === 'create' && each.incarnation === String(before));
    const { outcome, because } = last === undefined ? {} : partsOf(last);
    if (outcome === 'done') return [];
    // An incarnation before a used one was used too: the API has forgotten its key.
    if (outcome !== 'absent' || because === 'unused')
      return [unidentified(run, { key, incarnation: String(before) })];
  }
  return [];
}
