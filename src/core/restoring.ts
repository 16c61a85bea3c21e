import type { ResourceKey } from './keys.ts';
import type { Subject } from './kind.ts';
import type { Change } from './plan.ts';
import { type Edit, edit, type Remedy } from './remedy.ts';

/**
 * Restores the fields of the entry.
 *
 * @param subjects all of the project: an address that has left the spec and that a restored field names is put back too
 */
export function restoring(
  changes: readonly Change[],
  key: ResourceKey,
  subjects?: ReadonlyMap<ResourceKey, Subject>,
): Remedy & Edit {
  const back = changes.filter(({ from }) => from !== null);
  const gone = changes.filter(({ from }) => from === null).map(({ path }) => path);
  const value = ({ path, from }: Change) => (path === 'public_ipv4' ? addressEntry(from) : from);
  const left = back.flatMap(({ path, from }) => {
    const subject = path === 'public_ipv4' ? subjects?.get(String(from) as ResourceKey) : undefined;
    return subject === undefined || subject.desired !== undefined ? [] : [subject.key];
  });
  return edit(key, {
    ...(back.length === 0 ? {} : { set: Object.fromEntries(back.map((each) => [each.path, value(each)])) }),
    ...(gone.length === 0 ? {} : { remove: gone }),
    ...(left.length === 0 ? {} : { next: left.map((each) => edit(each, { entry: 'restore' })) }),
  });
}

/** The value in the spec: a plan has an address in a word, `ips.NAME`, `new` or `reuse`. */
export function addressEntry(word: unknown): unknown {
  const text = String(word);
  return text.startsWith('ips.') ? { ip: text.slice('ips.'.length) } : { [text]: true };
}
