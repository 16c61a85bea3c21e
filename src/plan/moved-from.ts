import type { Claim } from '../core/claims.ts';
import { bindingBy } from '../core/desired.ts';
import { nounOf, type ResourceKey, retiredFrom, takeApart } from '../core/keys.ts';
import type { Subject, World } from '../core/kind.ts';
import { factsOf, isAddress } from '../core/kind-facts.ts';
import type { Warning } from '../core/plan.ts';
import { command, edit, settleFirst } from '../core/remedy.ts';
import type { Binding } from '../core/state.ts';
import { nearMiss } from '../core/suggest.ts';
import { capitalised } from '../core/text.ts';
import { type Draft, draftOne, isToBeMade } from './draft.ts';
import type { GuardInput, Objection, PlanFacts } from './objections.ts';
import { prerequisites } from './order.ts';
import { isSecondHalf } from './replacements.ts';
import { unmanagedFor } from './unmanaged.ts';

/**
 * An entry that would be created, although its `moved` names a previous key: the state binds nothing to that
 * key. If the spec has left out a bound key, the entry probably means that key. Neither the creation
 * nor the deletion is carried out. In a new state, the resource may exist under a key that only an earlier state knew.
 */
export function movedFromUnknown(draft: Draft, input: GuardInput, facts: PlanFacts): Objection | undefined {
  const { subject, diff } = draft;
  const { key, parent } = subject;
  const { world } = input;
  // The typing error may also cause other objections to the creation.
  const isReplaced = diff.verdict.verdict === 'replace';
  // The binding to a resource that is gone ends, and then the earlier key is asked.
  const isLost = diff.verdict.verdict === 'create' && diff.verdict.lost !== undefined;
  const isBought = isReplaced || (isToBeMade(draft) && !isLost);
  const other = isBought ? movedOntoAnother(subject, input) : undefined;
  if (other !== undefined) return other;
  if (isToBeMade(draft)) {
    const from = unknownFrom(subject, input);
    const left = leftOut(world, subject.kind);
    if (from === undefined) return undefined;
    if (left.length === 0)
      return diff.verdict.verdict === 'create' ? madeEarlier(subject, from, input, facts) : undefined;
    const meant = nearest(from, left);
    return {
      reason: `\`moved\` names ${from}, which is not bound. ${left.join(', ')} ${left.length === 1 ? 'is bound, and has' : 'are bound, and have'} left the spec${meant === undefined ? '' : `: did you mean ${meant}?`}`,
      remedies: [
        ...(meant === undefined ? left : [meant]).map((each) =>
          edit(key, { set: { moved: { from: each } } }),
        ),
        ...perhapsMadeAs(subject, from, facts.matches().get(key)).remedies,
      ],
    };
  }
  const top = parent === undefined ? subject : world.subjects.get(parent);
  if (diff.verdict.verdict !== 'delete' || top === undefined || !hasLeft(top)) return undefined;
  const entry = facts.movedFromUnknown().find((each) => each.kind === top.kind);
  if (entry === undefined) return undefined;
  return {
    reason: `${entry.key} may be the new name of ${top.key}: its \`moved\` names ${entry.desired?.moved}, which is not bound`,
    remedies: [
      edit(entry.key, { set: { moved: { from: top.key } } }),
      edit(entry.key, { remove: ['moved'], when: `to delete ${key}` }),
    ],
  };
}

/** A retiring server has no entry, and its successor has its name. */
function hasLeft({ key, desired }: Subject): boolean {
  return desired === undefined && retiredFrom(key) === undefined;
}

/**
 * The bound resource never had the key that `moved` names, such as in an old copy of the state. The resource of that key
 * may exist, and the entry would buy another one. This state knows a resource that it has released.
 */
function movedOntoAnother(
  subject: Subject,
  { world, register }: Pick<GuardInput, 'world' | 'register'>,
): Objection | undefined {
  const { key, kind, desired, binding } = subject;
  const from = desired?.moved;
  if (from === undefined || binding === undefined || !neverWas(from, binding)) return undefined;
  if (world.subjects.get(from)?.binding !== undefined) return undefined;
  const isReleased = ({ holder }: Claim) => holder.is === 'released' && holder.formerKey === from;
  if (register.claims.some(isReleased)) return undefined;
  const { reason, remedies } = perhapsMadeAs(subject, from);
  const noun = nounOf(kind);
  return {
    reason: `${key} is bound to ${noun} ${binding.id}, which never had the key ${from}. ${capitalised(reason)}`,
    remedies: remedies.map((each) =>
      each.type === 'edit' && each.remove?.includes('moved')
        ? { ...each, when: `if ${noun} ${binding.id} is ${key}` }
        : each,
    ),
  };
}

/** Whether the resource of the binding never had the key that `moved` names. */
export function neverWas(
  from: ResourceKey | undefined,
  { formerKeys }: Pick<Binding, 'formerKeys'>,
): boolean {
  return from !== undefined && formerKeys?.includes(from) !== true;
}

/** An open write of the line, or a write that the operator declared absent, has a remedy of its own. */
function madeEarlier(
  subject: Subject,
  from: ResourceKey,
  input: GuardInput,
  facts: PlanFacts,
): Objection | undefined {
  const { key, desired } = subject;
  const { register, openIntents } = input;
  const line = register.line({ key, ...(desired?.moved && { moved: desired.moved }) });
  const isOfLine = (each: { readonly key: ResourceKey }) => line.has(each.key);
  if (openIntents.some(isOfLine) || register.declaredAbsent.some(isOfLine)) return undefined;
  // A state that is not new may be an old copy. The resource of the previous key is then one that its list shows.
  if (!register.isNew && input.kinds.get(subject.kind)?.creation?.unmanaged === undefined) return undefined;
  if (isAccountedFor(subject, input)) return undefined;
  // The body has the id of a resource that this run adopts first. The keys are asked then, or the objection returns.
  const needed = prerequisites({ key, verb: 'create' }, input.kinds, input.world);
  const isAdopted = (each: ResourceKey) =>
    !input.world.isThere(each) && input.world.subjects.get(each)?.desired?.id !== undefined;
  if (needed.some(isAdopted)) return undefined;
  const { reason, remedies } = perhapsMadeAs(subject, from, facts.matches().get(key));
  return { reason: `${register.isNew ? 'the state is new, and ' : ''}${reason}`, remedies };
}

/** An earlier state may have created the resource under another key of its line. */
export function perhapsMadeAs(
  { key, kind, desired }: Pick<Subject, 'key' | 'kind' | 'desired'>,
  from: ResourceKey,
  id?: string,
): Pick<Objection, 'reason' | 'remedies'> {
  const noun = nounOf(kind);
  const when =
    id === undefined
      ? `if the ${noun} exists: ID is its id in the client area`
      : `if ${key} is ${noun} ${id}`;
  return {
    reason: `\`moved\` names ${from}, which an earlier state may have bound. If that ${noun} exists, a creation is a duplicate`,
    remedies: [
      bindingBy(desired, command('adopt', [key, id ?? 'ID'], { when })),
      edit(key, { remove: ['moved'], when: `if ${key} is a new resource` }),
    ],
  };
}

/**
 * Whether lists show all resources of the kind (for an entry with an address: all with an address), and this spec manages
 * each of them.
 */
export function isAccountedFor(
  subject: Subject,
  { register, kinds, world }: Pick<GuardInput, 'register' | 'kinds' | 'world'>,
): boolean {
  const { kind, desired } = subject;
  // `unmanaged: ignore` says nothing about the resource of this entry.
  const isIgnored = ({ kind: of, holder }: Claim) =>
    of === kind && holder.is === 'ignored' && holder.by === 'file';
  if (register.claims.some(isIgnored)) return false;
  const { servers, addresses } = unmanagedFor(kind, register, world);
  if (isAddress(kind)) return addresses.length === 0;
  if (factsOf(kind).container) {
    const isShown = world.listsServers() || desired?.value.public_ipv4 !== undefined;
    return isShown && servers.length + addresses.length === 0 && register.unlisted === undefined;
  }
  return kinds.get(kind)?.creation?.unmanaged?.(subject, world).length === 0;
}

export function entriesFromUnknown(input: GuardInput): readonly Subject[] {
  return [...input.world.subjects.values()].filter((each) => unknownFrom(each, input) !== undefined);
}

/** The state knows the project, and no key can be meant: the resource of the previous key is gone. */
export function movedFromNothing({ subject, diff }: Draft, input: GuardInput): Warning[] {
  const { world, register } = input;
  const from = unknownFrom(subject, input);
  if (register.isNew || from === undefined || diff.verdict.verdict !== 'create') return [];
  if (leftOut(world, subject.kind).length > 0) return [];
  const message = `\`moved\` names ${from}, which is not bound: vdcsync creates a new resource for ${subject.key}`;
  return [{ code: 'moved_from_unknown', key: subject.key, message }];
}

function nearest(from: ResourceKey, keys: readonly ResourceKey[]): ResourceKey | undefined {
  const names = keys.map((key) => takeApart(key).name);
  const name = nearMiss(takeApart(from).name, names);
  return name === undefined ? undefined : keys[names.indexOf(name)];
}

function unknownFrom({ key, desired, binding }: Subject, input: GuardInput): ResourceKey | undefined {
  const { world } = input;
  if (desired?.moved === undefined || isSecondHalf(input, key)) return undefined;
  const isNew = desired.managed && desired.id === undefined && binding === undefined;
  const hasParts = () => world.childrenOf(key).some((each) => each.binding !== undefined);
  return isNew && !hasParts() ? desired.moved : undefined;
}

/** Keys that are bound to an existing resource, and that the spec no longer has. */
function leftOut(world: World, kind: Subject['kind']): ResourceKey[] {
  return world
    .subjectsOf(kind)
    .filter((each) => each.parent === undefined && hasLeft(each) && world.isThere(each.key))
    .map(({ key }) => key);
}

/**
 * A new entry that equals an entry that leaves the spec in all but the key: probably renamed by hand, which
 * would create it again and delete the existing resource.
 */
export function perhapsRenamed(drafts: readonly Draft[]): Warning[] {
  const declared = new Set(drafts.flatMap(({ subject }) => (subject.desired ? [subject.key] : [])));
  const isGoing = (draft: Draft) =>
    isLeaving(draft) && !declared.has(retiredFrom(draft.subject.key) ?? draft.subject.key);
  const leaving = byLikeness(drafts.filter(isGoing));
  if (leaving.size === 0) return [];
  const fresh = byLikeness(drafts.filter(isFresh));
  return [...fresh].flatMap(([likeness, keys]) => {
    // A retiring server has no entry: the new name is that of the entry which it had.
    const from = [...new Set((leaving.get(likeness) ?? []).map((key) => retiredFrom(key) ?? key))];
    // Addresses have no fields that distinguish them, so their content is empty.
    const isGuess = likeness.endsWith(' ') && (keys.length > 1 || from.length > 1);
    return from.length === 0 || isGuess ? [] : keys.map((key) => renamed(key, from));
  });
}

function renamed(key: ResourceKey, from: readonly ResourceKey[]): Warning {
  const message = `the new entry equals ${from.join(' or ')}, which has left the spec. Without \`moved\`, vdcsync creates a second resource, and the old one stays or is deleted`;
  const remedies = from.map((each) =>
    edit(key, {
      set: { moved: { from: each } },
      when: 'if you renamed the entry: then nothing is created or deleted',
    }),
  );
  return { code: 'perhaps_renamed', key, message, remedies };
}

/**
 * A new entry has the name, or the subnet, of a resource whose entry has left the spec, and may be its new name. The
 * resource is not deleted while the operator is asked about the name, and no second one is created while the resource stays.
 */
export function besideRenamed(draft: Draft, { kinds, world }: GuardInput): Objection | undefined {
  const { subject, kind, diff } = draft;
  const { sameName, subnet } = kind.entry.section ?? {};
  const isAsked = (each: Subject, code: string) => {
    const { verdict } = draftOne(kinds, world, each).diff;
    return verdict.verdict === 'blocked' && verdict.code === code;
  };
  const isNamesake = ({ key }: Subject) =>
    world.observed.get(key)?.sameName?.some(({ id }) => String(id) === subject.binding?.id) === true;
  const isAlike = (each: Subject) =>
    each.desired === undefined && kind.entry.likeness?.(each) === kind.entry.likeness?.(subject);
  const others = () => world.subjectsOf(subject.kind).filter(({ key }) => key !== subject.key);
  const waitFor = (other: Subject | undefined, reason: (key: ResourceKey) => string) =>
    other && { reason: reason(other.key), remedies: settleFirst(other.key) };
  switch (diff.verdict.verdict) {
    case 'delete':
      return waitFor(
        sameName === undefined
          ? undefined
          : others().find((each) => isNamesake(each) && isAsked(each, 'name_exists')),
        (key) => `it may be the ${nounOf(subject.kind)} of ${key}, which has its name`,
      );
    case 'create':
      return waitFor(
        subnet === undefined
          ? undefined
          : others().find((each) => isAlike(each) && isAsked(each, 'network_in_use')),
        (key) => `${key} has its subnet, and stays`,
      );
    default:
      return undefined;
  }
}

function isLeaving({ subject: { parent }, diff: { verdict } }: Draft): boolean {
  if (parent !== undefined) return false;
  return verdict.verdict === 'delete' || (verdict.verdict === 'blocked' && verdict.verb === 'delete');
}

function isFresh(draft: Draft): boolean {
  const { parent, binding, desired } = draft.subject;
  if (parent !== undefined || binding !== undefined) return false;
  return desired?.moved === undefined && desired?.id === undefined && isToBeMade(draft);
}

function byLikeness(drafts: readonly Draft[]): ReadonlyMap<string, readonly ResourceKey[]> {
  const groups = new Map<string, ResourceKey[]>();
  for (const draft of drafts) {
    const { key } = draft.subject;
    const content = draft.kind.entry.likeness?.(draft.subject);
    const likeness = `${draft.kind.name} ${content}`;
    if (content !== undefined) groups.set(likeness, [...(groups.get(likeness) ?? []), key]);
  }
  return groups;
}
