import type { ResourceKey } from '../core/keys.ts';
import type { Binding } from '../core/state.ts';
import type { Run } from './run.ts';

/**
 * The binding of another key to the same live resource. The id of what is inside a server
 * means something there alone; an address has its own, wherever it came with.
 *
 * @param but keys that are bound to something else at the same time
 */
export function ownerOf(
  { bindings }: Run,
  { key, kind, id, parentId }: Pick<Binding, 'key' | 'kind' | 'id' | 'parentId'>,
  but: ReadonlySet<ResourceKey> = new Set(),
): Binding | undefined {
  return [...bindings.values()].find(
    (each) =>
      each.key !== key &&
      !but.has(each.key) &&
      each.kind === kind &&
      each.id === id &&
      (kind === 'ip' || each.parentId === parentId),
  );
}
