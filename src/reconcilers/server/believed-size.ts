import { member } from '../../core/json.ts';
import type { Diff, Subject, World } from '../../core/kind.ts';
import type { Change } from '../../core/plan.ts';
import { edit, type Remedy, remedyText, run } from '../../core/remedy.ts';
import type { Server } from '../../core/resources.ts';
import { restoring } from '../../core/restoring.ts';
import { blocked } from '../existence.ts';
import { knownOf, sizes } from './body.ts';
import type { ServerEntry } from './entry.ts';
import { permitted } from './existing.ts';

/**
 * Whether a read shows the size of a server, or vdcsync sent it or an operator confirmed it, or it is only believed.
 */
export type Certainty = 'shown' | 'known' | 'believed';

/** The differences by an edit of the spec, and those without an edit. */
export interface SizeChanges {
  readonly asked: readonly Change[];
  readonly moved: readonly Change[];
}

export function certaintyOf({ binding }: Subject, path: string, shown: Server | undefined): Certainty {
  if (member(shown, path) !== undefined) return 'shown';
  const applied = binding?.applied ?? null;
  return member(applied, 'body') != null || knownOf(applied).includes(path) ? 'known' : 'believed';
}

/**
 * A resize sends every size that the spec declares, so it also sends sizes that the edit does not change. @assumption
 * A48
 */
export function heldUnconfirmed(
  subject: Subject<ServerEntry>,
  { asked, moved }: SizeChanges,
  shown: Server | undefined,
  { settings }: World,
): Diff | undefined {
  const { key, desired, binding } = subject;
  const changes = [...asked, ...moved];
  const along = sizes.filter(
    (size) =>
      desired?.value[size] !== undefined &&
      !changes.some(({ path }) => path === size) &&
      certaintyOf(subject, size, shown) === 'believed',
  );
  const allow = wordsLacking(subject);
  if (along.length === 0 || allow === undefined) return undefined;
  if (asked.length === 0 && settings.drift === 'report') return undefined;
  const sent = along.map((size) => `${size}: ${desired?.value[size]}`).join(', ');
  const reason = `a resize also sends ${sent}, and the API does not show whether server ${binding?.id} has that already: the resize could change more than your edit`;
  const less = desired?.id === undefined ? [] : [edit(key, { remove: along })];
  return blocked('update', 'size_unconfirmed', reason, [confirming(subject, changes), ...less, allow]);
}

/** The edit that permits a replacement of the server; `undefined` if the spec permits it already. */
export function wordsLacking({ key, desired }: Subject<ServerEntry>): Remedy | undefined {
  const set = {
    ...(desired?.protect === true ? { protect: false } : {}),
    ...(desired !== undefined && permitted(desired.value) !== undefined ? {} : { replace: 'allowed' }),
  };
  return Object.keys(set).length === 0 ? undefined : edit(key, { set });
}

/** The command by which an operator confirms values that are only believed. */
export function confirming({ key, binding }: Subject, changes: readonly Change[]): Remedy {
  const when = `if the server has all values of the spec. If not: first ${remedyText(restoring(changes, key))}, adopt, and then edit the spec again`;
  return run('adopt', [key, binding?.id ?? 'ID'], { when });
}
