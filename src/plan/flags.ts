import { type ExpiredEntry, expiryOf } from '../core/desired.ts';
import { comesWithServer, type ResourceKey, retiredFrom } from '../core/keys.ts';
import type { Subject, World } from '../core/kind.ts';
import type { Warning } from '../core/plan.ts';
import { edit, type Remedy } from '../core/remedy.ts';
import type { Binding } from '../core/state.ts';
import { moment } from '../core/time.ts';
import { expiredEntry } from '../core/world.ts';
import type { Draft } from './draft.ts';
import type { Unsure } from './waits.ts';

type Flags = Pick<Binding, 'protect' | 'keep'>;

/**
 * New values of `protect` and `keep_ip` in the spec. The state keeps both, because they apply after the entry has
 * left.
 */
export function newFlags(subject: Subject, world: World, unsure: Unsure): Flags | undefined {
  const { key, kind, parent, desired, binding } = subject;
  const doubt = unsure.get(key) ?? unsure.get(parent ?? key);
  if (binding === undefined || doubt === 'other') return undefined;
  if (desired === undefined)
    return binding.protect && !isProtected(subject, world)
      ? { protect: false, keep: binding.keep }
      : undefined;
  const owner = parent === undefined ? undefined : world.subjects.get(parent)?.desired;
  const { keep_ip = false } = owner?.value ?? {};
  const flags = {
    protect: desired.protect,
    keep: comesWithServer({ kind, parent }) && owner !== undefined ? keep_ip : binding.keep,
  };
  // The entry may mean another resource, so it ends no protection of this one.
  if (doubt !== undefined || binding.recovered === 'taken') {
    flags.protect ||= binding.protect;
    flags.keep ||= binding.keep;
  }
  return flags.protect === binding.protect && flags.keep === binding.keep ? undefined : flags;
}

/**
 * Whether `protect` forbids the deletion. The value in the spec counts. The last value counts only for an entry that has
 * left the spec, and for a retiring server, as long as the entry of its key is protected too. A resource inside a server
 * uses the value of the server's entry.
 */
export function isProtected(subject: Subject, world: World): boolean {
  const { key, parent, desired, binding } = subject;
  const { subjects } = world;
  const entryOf = (each: ResourceKey | undefined) =>
    each === undefined ? undefined : subjects.get(each)?.desired;
  const entry = entryOf(parent) ?? desired ?? expiredEntry(subject, world);
  if (entry !== undefined) return entry.protect;
  return binding?.protect === true && (binding.orphaned || entryOf(retiredFrom(key))?.protect !== false);
}

export function flagsChange({ subject }: Draft, world: World, unsure: Unsure): Warning[] {
  const flags = newFlags(subject, world, unsure);
  if (flags === undefined || subject.binding === undefined) return [];
  const { protect, keep } = subject.binding;
  const { parent } = subject;
  const owner = parent === undefined ? undefined : world.subjects.get(parent);
  // The server's warning says it for all that is inside the server.
  const isShared = owner !== undefined && newFlags(owner, world, unsure)?.protect === flags.protect;
  if (isShared && flags.keep === keep) return [];
  const said = [
    ...(flags.protect === protect
      ? []
      : [flags.protect ? 'the spec adds `protect`' : 'the spec removes `protect`']),
    ...(flags.keep === keep ? [] : [flags.keep ? 'the spec adds `keep_ip`' : 'the spec removes `keep_ip`']),
  ];
  const message = `${said.join(', and ')}. The next apply records this in the state, and sends nothing for it`;
  return [{ code: 'flags_change', key: subject.key, message }];
}

const dayMs = 24 * 3_600_000;
const weekMs = 7 * dayMs;

type Whose = Pick<Subject, 'key' | 'parent'>;

/** Why the spec no longer asks for the resource. */
export function whyLeft(subject: Whose, world: World): string {
  const { at } = expiredEntry(subject, world) ?? {};
  return at === undefined ? 'has left the spec' : `expired at ${at}`;
}

/** The edit after which the entry does not expire. */
export function lasting({ key, of }: Pick<ExpiredEntry, 'key' | 'of'>, when: string): Remedy {
  return edit(of === 'project' ? 'project' : key, { remove: ['expires'], when });
}

/** Entries that have expired, or that expire within a week. The text changes a week before, a day before and at the end. */
export function expiryWarnings(world: World, now: number): Warning[] {
  const { subjects, expiry = {} } = world;
  const { expired = [] } = expiry;
  const isBound = (key: ResourceKey) => subjects.get(key)?.binding !== undefined;
  const over = expired.map(({ key, moved, at, of }): Warning => {
    const isThere = isBound(key) || (moved !== undefined && isBound(moved));
    const message = isThere
      ? `expired at ${at}: vdcsync handles the resource as if its entry had left the spec`
      : `expired at ${at}, and no resource is bound to it: remove the entry from the spec`;
    const ways = isThere ? [lasting({ key, of }, 'to keep the resource')] : [];
    return { code: 'expired', key, message, remedies: ways };
  });
  const soon = [...subjects.values()].flatMap(({ key, parent, desired }): Warning[] => {
    const end = desired === undefined || parent !== undefined ? undefined : expiryOf(desired, expiry);
    const leftMs = end === undefined ? Infinity : Date.parse(end.at) - now;
    if (end === undefined || leftMs > weekMs) return [];
    const message = `expires in less than ${leftMs > dayMs ? 'a week' : 'a day'}, at ${moment(end.at)}. vdcsync then handles the resource as if its entry had left the spec`;
    return [
      { code: 'expires_soon', key, message, remedies: [lasting({ key, ...end }, 'to keep the resource')] },
    ];
  });
  return [...over, ...soon];
}
