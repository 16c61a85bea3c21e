import type { Claim } from '../../core/claims.ts';
import { partsOf } from '../../core/intent.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Answer, Binding, Intent } from '../../core/state.ts';
import { draftOne } from '../../plan/draft.ts';
import type { Run } from '../run.ts';
import { incarnationOf, isInScope } from './scope.ts';

/** The fields that identify a live resource. */
export type Live = Pick<Binding, 'key' | 'kind' | 'id' | 'parentId'>;

/**
 * The binding of another key to the same live resource. The id of a resource inside a server is unique only within
 * the server. The id of an address is unique in the project, even if the address came with a server.
 *
 * @param but keys that are bound to another resource at the same time
 */
export function ownerOf(
  { bindings }: Run,
  live: Live,
  but: ReadonlySet<ResourceKey> = new Set(),
): Binding | undefined {
  return [...bindings.values()].find((each) => !but.has(each.key) && isSame(each, live));
}

/** The open creation of another key whose answer named the same live resource. */
export function makerOf({ intents }: Run, live: Live): Intent | undefined {
  return [...intents.values()].find((each) => {
    const id = partsOf(each).answer?.id;
    return each.verb === 'create' && id !== undefined && isSame({ ...each, id }, live);
  });
}

/** The last creation of the key that has ended, in the present `project.scope`. */
export async function lastCreation(run: Run, key: ResourceKey): Promise<Intent | undefined> {
  const past = await run.deps.store.intents({ key, limit: 50 });
  return past.find((each) => each.verb === 'create' && each.phase === 'closed' && isInScope(run, each));
}

/**
 * An earlier state may have created this server to replace another one, which may still exist: this state has not seen
 * how the server of an earlier incarnation ended.
 */
export async function mayReplace(run: Run, { key, kind, incarnation }: Intent): Promise<boolean> {
  if (factsOf(kind).container !== true || incarnation === '0') return false;
  const past = (await run.deps.store.intents({ key, limit: 50 })).filter((each) => isInScope(run, each));
  for (let before = Number(incarnation) - 1; before >= 0; before -= 1) {
    const last = past.find((each) => each.verb === 'create' && each.incarnation === String(before));
    const { outcome } = last === undefined ? {} : partsOf(last);
    if (outcome === 'done') return false;
    if (outcome !== 'absent') return true;
  }
  return false;
}

/** The creation of the current incarnation whose idempotency key was answered with a resource of another holder. */
export async function answeredCreation(run: Run, key: ResourceKey): Promise<Intent | undefined> {
  const last = await lastCreation(run, key);
  if (last === undefined || last.incarnation !== String((await incarnationOf(run, key)).incarnation))
    return undefined;
  const { because, outcome } = partsOf(last);
  return because === 'found' && outcome === 'void' ? last : undefined;
}

/**
 * The entries whose idempotency key was answered with a resource that is bound to another entry, or ignored, each with
 * that binding or claim. No other request is sent under that key.
 */
export async function answeredElsewhere(run: Run): Promise<ReadonlyMap<ResourceKey, Binding | Claim>> {
  const { subjects } = run.world;
  const isUnbound = (key: ResourceKey) =>
    subjects.get(key)?.desired?.managed === true && !run.bindings.has(key);
  const holders = [
    ...[...run.bindings.values()].map((each) => [each, each.formerKeys] as const),
    ...[...run.claims.values()].flatMap((each) =>
      each.holder.is === 'ignored' ? [[each, each.holder.formerKeys] as const] : [],
    ),
  ];
  const former = holders.flatMap(([holder, keys = []]) =>
    keys.filter(isUnbound).map((key) => [key, holder] as const),
  );
  const answered = await Promise.all(former.map(([key]) => answeredCreation(run, key)));
  return new Map(former.filter((_each, at) => answered[at] !== undefined));
}

function isSame(each: Live, { key, kind, id, parentId }: Live): boolean {
  return (
    each.key !== key &&
    each.kind === kind &&
    each.id === id &&
    (factsOf(kind).independent || each.parentId === parentId)
  );
}

/** Both bindings have an identity, and the identities differ: the id of one of them was used again. @assumption A17 */
export function isAnother(one: Pick<Binding, 'identity'>, other: Pick<Binding, 'identity'>): boolean {
  return Object.entries(one.identity).some(
    ([field, value]) => other.identity[field] !== undefined && other.identity[field] !== value,
  );
}

/**
 * The id that the key is bound to belongs to another resource by now, as far as the kind can recognize that.
 * @assumption A17
 */
export function identityChanged({ deps, world }: Pick<Run, 'deps' | 'world'>, key: ResourceKey): boolean {
  const subject = world.subjects.get(key);
  const verdict = subject && draftOne(deps.kinds, world, subject).diff.verdict;
  return verdict?.verdict === 'blocked' && verdict.code === 'identity_changed';
}

/** A fresh answer to exactly this request named the resource. */
export function wasNamed(answer: Answer | undefined, id: string): boolean {
  return answer?.id === id && answer.to === 'this_send';
}
