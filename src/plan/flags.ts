import { comesWithServer, type ResourceKey, retiredFrom } from '../core/keys.ts';
import type { Subject, World } from '../core/kind.ts';
import type { Warning } from '../core/plan.ts';
import type { Binding } from '../core/state.ts';
import type { Draft } from './draft.ts';
import { expiredEntry } from './expiry.ts';

type Flags = Pick<Binding, 'protect' | 'keep'>;

/**
 * New values of `protect` and `keep_ip` in the spec. The state keeps both, because they apply after the entry has
 * left.
 */
export function newFlags(subject: Subject, world: World): Flags | undefined {
  const { kind, parent, desired, binding } = subject;
  if (binding === undefined) return undefined;
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
  return binding?.protect === true && entryOf(retiredFrom(key))?.protect !== false;
}

export function flagsChange({ subject }: Draft, world: World): Warning[] {
  const flags = newFlags(subject, world);
  if (flags === undefined || subject.binding === undefined) return [];
  const { protect, keep } = subject.binding;
  const { parent } = subject;
  const owner = parent === undefined ? undefined : world.subjects.get(parent);
  // The server's warning says it for all that is inside the server.
  const isShared = owner !== undefined && newFlags(owner, world)?.protect === flags.protect;
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
