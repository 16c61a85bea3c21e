import { member } from '../../core/json.ts';
import type { Diff, Subject, World } from '../../core/kind.ts';
import type { Change } from '../../core/plan.ts';
import { edit, type Remedy } from '../../core/remedy.ts';
import type { Server, ServerType } from '../../core/resources.ts';
import { restoring } from '../../core/restoring.ts';
import { blocked } from '../existence.ts';
import { type Certainty, certaintyOf, confirming, type SizeChanges, wordsLacking } from './believed-size.ts';
import { plansOf } from './body.ts';
import type { ServerEntry } from './entry.ts';

/** A resize that makes the disk smaller, or may do so. */
export interface DiskLoss {
  /** The size that decides, whether or not that size changes. */
  readonly change: Change;
  /** The data that the resize destroys. */
  readonly loses: string;
  readonly size: Certainty;
}

/**
 * A resize sends every size that the spec declares, so it also sends a disk size that is only believed.
 * Only the catalogue can show whether a plan has a smaller disk. @assumption A54
 */
export function diskLoss(
  subject: Subject<ServerEntry>,
  { asked, moved }: SizeChanges,
  type: ServerType | undefined,
  shown: Server | undefined,
  world: World,
): DiskLoss | undefined {
  const { binding, desired } = subject;
  const planned = (plan: unknown) => plansOf(type?.id, world).find(({ id }) => id === plan)?.disk_gb;
  for (const path of ['disk_gb', 'plan_id'] as const) {
    const to = desired?.value[path];
    if (to === undefined) continue;
    const change = [...asked, ...moved].find((each) => each.path === path) ?? { path, from: to, to };
    const size = certaintyOf(subject, path, shown);
    if (size === 'believed' && shown?.disk_gb === undefined) {
      const unknown = `the API does not show the size of the disk of server ${binding?.id}`;
      return { change, size, loses: `the data that does not fit on the new disk (${unknown})` };
    }
    if (change.from === to) continue;
    const had = [change.from, ...(size === 'shown' ? [] : doubted(subject, path))];
    const diskOf = (value: unknown) => (path === 'disk_gb' ? (value as number | null) : planned(value));
    const before = shown?.disk_gb === undefined ? had.map(diskOf) : [shown.disk_gb];
    const after = diskOf(to);
    if (after == null || before.some((each) => each == null)) {
      const unknown = 'it is not known whether the disk gets smaller';
      return { change, size, loses: `the data that does not fit on the new disk (${unknown})` };
    }
    const largest = Math.max(...before.map(Number));
    if (after < largest)
      return { change, size, loses: `the data beyond ${after} GB on its disk of ${largest} GB` };
  }
  return undefined;
}

/** The size that the server may have after a resize that was given up. */
function doubted({ binding }: Subject, path: string): readonly unknown[] {
  return [member(member(binding?.applied, 'doubted'), path)].filter((each) => each !== undefined);
}

/**
 * A smaller disk destroys data, as a replacement of the server does, so the same setting permits both.
 * The setting covers only edits of the spec: a disk that another user enlarged may be in use.
 */
export function heldLoss(
  subject: Subject<ServerEntry>,
  { change, loses, size }: DiskLoss,
  { asked, moved }: SizeChanges,
  { settings }: World,
): Diff | undefined {
  const { key } = subject;
  const { path, from, to } = change;
  const hold = (reason: string, ways: readonly Remedy[]) =>
    blocked('update', 'disk_would_shrink', reason, ways);
  if (asked.length === 0 && settings.drift === 'report') return undefined;
  if (moved.includes(change)) {
    const when = `to keep ${path} ${from}`;
    return hold(
      `${path} was changed outside vdcsync from ${to} to ${from}. A change back would destroy ${loses}`,
      [edit(key, { set: { [path]: from }, when })],
    );
  }
  const allow = wordsLacking(subject);
  if (allow === undefined) return undefined;
  if (size !== 'believed') {
    return hold(`${path}: ${from} → ${to} destroys ${loses}`, [allow, restoring([change], key)]);
  }
  const ways = [confirming(subject, [...asked, ...moved]), allow];
  return hold(`a resize to ${path}: ${to} would destroy ${loses}`, ways);
}
