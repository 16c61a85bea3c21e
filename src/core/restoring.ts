import { namedAddress } from './desired.ts';
import type { ResourceKey } from './keys.ts';
import type { Subject } from './kind.ts';
import type { Change } from './plan.ts';
import { type Edit, edit, type Remedy } from './remedy.ts';

/**
 * Restores the fields of the entry.
 *
 * @param subjects all of the project: an address that has left the spec and that a restored field names is put back too, a
 * renamed one has its new name, and another server that names it by now gets another address
 */
export function restoring(
  changes: readonly Change[],
  key: ResourceKey,
  subjects?: ReadonlyMap<ResourceKey, Subject>,
): Remedy & Edit {
  const back = changes.filter(({ from }) => from !== null);
  const gone = changes.filter(({ from }) => from === null).map(({ path }) => path);
  const subjectOf = ({ path, from }: Change) =>
    path === 'public_ipv4' ? namedNow(String(from) as ResourceKey, subjects) : undefined;
  const value = (change: Change) =>
    change.path === 'public_ipv4' ? addressEntry(subjectOf(change)?.key ?? change.from) : change.from;
  const next = back.flatMap((change) => {
    const subject = subjectOf(change);
    if (subject === undefined) return [];
    if (subject.desired === undefined) return [edit(subject.key, { entry: 'restore' })];
    const others = [...(subjects?.values() ?? [])].filter((each) => each.key !== key);
    const taker = others.find(({ desired }) => namedAddress(desired?.value) === subject.key);
    return taker === undefined ? [] : [edit(taker.key, { choose: { public_ipv4: [] } })];
  });
  return edit(key, {
    ...(back.length === 0 ? {} : { set: Object.fromEntries(back.map((each) => [each.path, value(each)])) }),
    ...(gone.length === 0 ? {} : { remove: gone }),
    ...(next.length === 0 ? {} : { next }),
  });
}

/** The resource of the key, or the one that had the key before a rename. */
export function namedNow(
  key: ResourceKey,
  subjects?: ReadonlyMap<ResourceKey, Subject>,
): Subject | undefined {
  const isIts = ({ binding }: Subject) => binding?.formerKeys?.includes(key) === true;
  return subjects?.get(key) ?? [...(subjects?.values() ?? [])].find(isIts);
}

/** The value in the spec: a plan has an address in a word, `ips.NAME`, `new` or `reuse`. */
export function addressEntry(word: unknown): unknown {
  const text = String(word);
  return text.startsWith('ips.') ? { ip: text.slice('ips.'.length) } : { [text]: true };
}
