import { partsOf } from '../../core/intent.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Answer, Binding, Intent } from '../../core/state.ts';
import { draftOne } from '../../plan/draft.ts';
import type { Run } from '../run.ts';

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
