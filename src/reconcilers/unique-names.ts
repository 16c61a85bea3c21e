import { bindingBy, type DesiredResource } from '../core/desired.ts';
import { nounOf, type ResourceKey, takeApart } from '../core/keys.ts';
import type { Diff, Seen, Subject, World } from '../core/kind.ts';
import type { Change } from '../core/plan.ts';
import { command, edit, type Remedy } from '../core/remedy.ts';
import { restoring } from '../core/restoring.ts';
import { blocking } from './verdicts.ts';

/** A live resource. */
interface Named {
  readonly id: number | string;
  readonly name: string;
}

type NamedSubject = Subject<{ readonly name?: string | undefined }>;

/**
 * The changes by the name in the spec. A name that comes only from the key is no reason to change
 * anything; `along` shows the new name in case another change replaces the resource.
 */
export function renaming(
  { desired }: NamedSubject,
  was: string,
): { readonly asked: readonly Change[]; readonly along: readonly Change[] } {
  const to = nameIn(desired) ?? was;
  const changes = to === was.trim() ? [] : [{ path: 'name', from: was, to }];
  return desired?.named === false ? { asked: [], along: changes } : { asked: changes, along: [] };
}

/**
 * The live resources that have the name of the entry, or another name under which its line may have created one: the name
 * of the key in its `moved`, or of its own key. Those with its own name come first.
 */
export function withNameOf<Live extends Named>(
  desired: NamedSubject['desired'],
  byName: ReadonlyMap<string, readonly Live[]>,
): readonly Live[] {
  if (desired === undefined) return [];
  const { key, moved, named } = desired;
  const own = byName.get(nameIn(desired) ?? '') ?? [];
  if (moved === undefined) return own;
  const names = new Set([moved, ...(named === false ? [key] : [])].map((each) => takeApart(each).name));
  const others = [...names].flatMap((name) => byName.get(name) ?? []);
  return [...own, ...others.filter((each) => !own.includes(each))];
}

/** Of these, the one because of which the entry is not created: it has the name of the entry, or no key is bound to it. */
export function takenName<Live extends Named>(
  { kind, desired }: NamedSubject,
  sameName: readonly Live[],
  world: World,
): Live | undefined {
  return sameName.find(
    ({ id, name }) => name.trim() === nameIn(desired) || world.keyOf({ kind, id: String(id) }) === undefined,
  );
}

function nameIn(desired: NamedSubject['desired']): string | undefined {
  return desired?.value.name?.trim();
}

/** The edit that says that a resource with the name of the entry is another one. */
export function asAnother({ key, desired }: NamedSubject, taken: Named, when: string): Remedy {
  const isOwnName = nameIn(desired) === taken.name.trim();
  return edit(key, { ...(isOwnName ? { choose: { name: [] } } : { remove: ['moved'] }), when });
}

/** The edit that says that the entry is the new one of a resource whose entry has left the spec. */
function asRenamed(key: ResourceKey, from: ResourceKey): Remedy {
  return edit(key, { set: { moved: { from } }, when: `if ${key} is the new name of ${from}` });
}

/** The same for each new entry that may be that of the resource. */
export function asNewNames(
  { key, kind }: Pick<Subject, 'key' | 'kind'>,
  world: World,
  isAlike: (entry: DesiredResource['value']) => boolean,
): readonly Remedy[] {
  return world
    .subjectsOf(kind)
    .flatMap(({ key: other, binding, desired }) =>
      binding === undefined && desired !== undefined && isAlike(desired.value) ? [asRenamed(other, key)] : [],
    );
}

/** A creation whose name another live resource has. @param ways if no key is bound to that resource */
export function nameExists(
  subject: NamedSubject,
  taken: Named,
  called: string,
  { world, ways }: { readonly world: World; readonly ways: readonly Remedy[] },
): Diff {
  const { key, kind } = subject;
  const [holder, noun] = [world.keyOf({ kind, id: String(taken.id) }), nounOf(kind)];
  const whose =
    holder === undefined ? `the project already has an unmanaged ${noun}` : `${holder} is bound to ${noun}`;
  const reason = `${whose} "${taken.name}" (${called})`;
  if (holder === undefined) return blocking('create', 'name_exists', reason, ways);
  const isLeft = world.subjects.get(holder)?.desired === undefined;
  return blocking('create', 'name_exists', reason, [
    ...(isLeft ? [asRenamed(key, holder)] : []),
    asAnother(subject, taken, 'to keep both'),
  ]);
}

/**
 * A resource is replaced under a name that another live resource has: the API may refuse the second one, or create one
 * that no list distinguishes from the first. `undefined`: the name is free, or the plan frees the name first, as
 * {@link freeingName} orders it. @assumption A16
 */
export function nameTaken(
  subject: NamedSubject,
  observed: Pick<Seen, 'id' | 'sameName'> | undefined,
  changes: readonly Change[],
  world: World,
): Diff | undefined {
  const { key, kind, desired } = subject;
  const [name, noun] = [nameIn(desired), nounOf(kind)];
  const others = othersNamed(subject, observed, world);
  for (const { id, holder } of others) {
    const entry = holder === undefined ? undefined : world.subjects.get(holder)?.desired;
    const frees = entry === undefined || (entry.named !== false && nameIn(entry) !== name);
    if (holder !== undefined && frees) continue;
    const whose = holder === undefined ? 'this spec does not manage' : `is bound to ${holder}`;
    const reason = `${key} would be deleted and created again as "${name}", but ${noun} ${id}, which ${whose}, has that name`;
    // The binding may be wrong, such as after an operator or an `id` exchanged two resources.
    const unbound = holder === undefined ? others.filter((each) => each.holder === undefined) : [];
    return blocking('update', 'name_exists', reason, [
      ...unbound.map((each) =>
        bindingBy(desired, command('adopt', [key, each.id], { when: `if ${noun} ${each.id} is ${key}` })),
      ),
      edit(key, { choose: { name: [] }, when: 'to use another name' }),
      ...(changes.length === 0 ? [] : [restoring(changes, key)]),
    ]);
  }
  return undefined;
}

/** The keys whose resources have the name that the entry asks for: they are gone before a resource gets the name. */
export function freeingName(subject: NamedSubject, world: World): readonly ResourceKey[] {
  return othersNamed(subject, world.observed.get(subject.key), world).flatMap(({ holder }) =>
    holder === undefined || holder === subject.key ? [] : [holder],
  );
}

/** The other live resources with the name of the entry, each with the key that is bound to it. */
function othersNamed(
  { kind, desired }: NamedSubject,
  { id: own, sameName = [] }: Partial<Pick<Seen, 'id' | 'sameName'>> = {},
  world: World,
): readonly { readonly id: number | string; readonly holder: ResourceKey | undefined }[] {
  return sameName
    .filter(({ id, name }) => String(id) !== own && name.trim() === nameIn(desired))
    .map(({ id }) => ({ id, holder: world.keyOf({ kind, id: String(id) }) }));
}
