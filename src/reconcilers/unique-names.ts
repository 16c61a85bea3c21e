import { bindingBy, type DesiredResource } from '../core/desired.ts';
import { nounOf, type ResourceKey, takeApart } from '../core/keys.ts';
import type { Diff, Subject, World } from '../core/kind.ts';
import type { Change } from '../core/plan.ts';
import { edit, type Remedy, run } from '../core/remedy.ts';
import { restoring } from '../core/restoring.ts';
import { blocking } from './existence.ts';

type Named<Live> = Live & { readonly id: number | string; readonly name: string };

/**
 * The changes by the name in the spec. A name that comes only from the key is no reason to change
 * anything; `along` shows the new name in case another change replaces the resource.
 */
export function renaming(
  { desired }: Subject<{ readonly name: string }>,
  was: string,
): { readonly asked: readonly Change[]; readonly along: readonly Change[] } {
  const to = desired?.value.name.trim() ?? was;
  const changes = to === was.trim() ? [] : [{ path: 'name', from: was, to }];
  return desired?.named === false ? { asked: [], along: changes } : { asked: changes, along: [] };
}

/**
 * The live resources that have the name of the entry, or another name under which its line may have created one: the name
 * of the key in its `moved`, or of its own key. Those with its own name come first.
 */
export function withNameOf<Live extends { readonly id: number | string }>(
  desired:
    | (Pick<DesiredResource, 'key' | 'moved' | 'named'> & { readonly value: { readonly name: string } })
    | undefined,
  byName: ReadonlyMap<string, readonly Live[]>,
): readonly Live[] {
  if (desired === undefined) return [];
  const { key, moved, named, value } = desired;
  const own = byName.get(value.name.trim()) ?? [];
  if (moved === undefined) return own;
  const names = new Set([moved, ...(named === false ? [key] : [])].map((each) => takeApart(each).name));
  const others = [...names].flatMap((name) => byName.get(name) ?? []);
  return [...own, ...others.filter((each) => !own.includes(each))];
}

/** Of these, the one because of which the entry is not created: it has the name of the entry, or no key is bound to it. */
export function takenName<Live extends Named<unknown>>(
  { kind, desired }: Subject<{ readonly name: string }>,
  sameName: readonly Live[],
  world: World,
): Live | undefined {
  const name = desired?.value.name.trim();
  return sameName.find(
    (each) => each.name.trim() === name || world.keyOf({ kind, id: String(each.id) }) === undefined,
  );
}

/** The edit that says that a resource with the name of the entry is another one. */
export function asAnother(
  {
    key,
    desired,
  }: Pick<Subject, 'key'> & {
    readonly desired?: Subject['desired'] | { readonly value: { readonly name: string } };
  },
  taken: { readonly name: string },
  when: string,
): Remedy {
  const isOwnName = desired?.value.name?.trim() === taken.name.trim();
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
  { key, kind, desired }: Subject,
  taken: { readonly id: number | string; readonly name: string },
  called: string,
  { world, ways }: { readonly world: World; readonly ways: readonly Remedy[] },
): Diff {
  const [holder, noun] = [world.keyOf({ kind, id: String(taken.id) }), nounOf(kind)];
  const whose =
    holder === undefined ? `the project already has an unmanaged ${noun}` : `${holder} is bound to ${noun}`;
  const reason = `${whose} "${taken.name}" (${called})`;
  if (holder === undefined) return blocking('create', 'name_exists', reason, ways);
  const isLeft = world.subjects.get(holder)?.desired === undefined;
  return blocking('create', 'name_exists', reason, [
    ...(isLeft ? [asRenamed(key, holder)] : []),
    asAnother({ key, desired }, taken, 'to keep both'),
  ]);
}

/**
 * A resource is replaced under a name that another live resource has: the API may refuse the second one, or create one
 * that no list distinguishes from the first. `undefined`: the name is free, or the plan frees the name first, as
 * {@link freeingName} orders it. @assumption A16
 */
export function nameTaken(
  subject: Subject<{ readonly name: string }>,
  sameName: readonly Named<unknown>[],
  {
    own,
    changes,
    world,
  }: { readonly own: string; readonly changes: readonly Change[]; readonly world: World },
): Diff | undefined {
  const { key, kind, desired } = subject;
  const [name, noun] = [desired?.value.name.trim(), nounOf(kind)];
  const exchanges = exchangesWith(subject, sameName, own, world);
  for (const { id, holder } of othersNamed({ kind, name, own, sameName }, world)) {
    const entry = holder === undefined ? undefined : world.subjects.get(holder)?.desired;
    const frees = entry === undefined || (entry.named !== false && entry.value.name?.trim() !== name);
    if (holder !== undefined && frees) continue;
    const whose = holder === undefined ? 'this spec does not manage' : `is bound to ${holder}`;
    return blocking(
      'update',
      'name_exists',
      `${key} would be deleted and created again as "${name}", but ${noun} ${id}, which ${whose}, has that name`,
      [
        ...(holder === undefined ? exchanges : []),
        edit(key, { choose: { name: [] }, when: 'to use another name' }),
        ...(changes.length === 0 ? [] : [restoring(changes, key)]),
      ],
    );
  }
  return undefined;
}

/**
 * The binding may be wrong, such as after an operator or an `id` exchanged two resources: an unmanaged resource has the
 * name of the entry.
 */
function exchangesWith(
  { key, kind, desired }: Subject<{ readonly name: string }>,
  sameName: readonly Named<unknown>[],
  own: string,
  world: World,
): readonly Remedy[] {
  const name = desired?.value.name.trim();
  return othersNamed({ kind, name, own, sameName }, world).flatMap(({ id, holder }) =>
    holder === undefined
      ? [bindingBy(desired, run('adopt', [key, id], { when: `if ${nounOf(kind)} ${id} is ${key}` }))]
      : [],
  );
}

/** The keys whose resources have the name that the entry asks for: they are gone before a resource gets the name. */
export function freeingName({ key, kind, desired }: Subject, world: World): readonly ResourceKey[] {
  const { id: own, sameName = [] } = world.observed.get(key) ?? {};
  const name = desired?.value.name?.trim();
  return othersNamed({ kind, name, own, sameName }, world).flatMap(({ holder }) =>
    holder === undefined || holder === key ? [] : [holder],
  );
}

/** The other live resources with the name, each with the key that is bound to it. */
function othersNamed(
  {
    kind,
    name,
    own,
    sameName,
  }: {
    readonly kind: Subject['kind'];
    readonly name: string | undefined;
    readonly own: string | undefined;
    readonly sameName: readonly { readonly id: number | string; readonly name: string }[];
  },
  world: World,
): readonly { readonly id: number | string; readonly holder: ResourceKey | undefined }[] {
  return sameName
    .filter((each) => String(each.id) !== own && each.name.trim() === name)
    .map(({ id }) => ({ id, holder: world.keyOf({ kind, id: String(id) }) }));
}
