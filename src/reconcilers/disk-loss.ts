import type { Diff, Subject, World } from '../core/kind.ts';
import type { Change } from '../core/plan.ts';
import type { Server, ServerType } from '../core/resources.ts';
import { blocked, member } from './existence.ts';
import { plansOf } from './server-body.ts';
import type { ServerEntry } from './server-entry.ts';

/** A resize after which the disk is smaller, or may be. */
export interface DiskLoss {
  readonly change: Change;
  /** What goes with it. */
  readonly loses: string;
  /** The size that it has is read, and not believed. */
  readonly isShown: boolean;
}

/** Whether a plan has a smaller disk tells the catalogue alone, where it shows that. @assumption A54 */
export function diskLoss(
  changes: readonly Change[],
  type: ServerType | undefined,
  shown: Server | undefined,
  world: World,
): DiskLoss | undefined {
  const planned = (plan: unknown) => plansOf(type?.id, world).find(({ id }) => id === plan)?.disk_gb;
  for (const change of changes) {
    const { path, from, to } = change;
    if (path !== 'disk_gb' && path !== 'plan_id') continue;
    const isShown = member(shown, path) !== undefined;
    const [before, after] =
      path === 'disk_gb'
        ? [from as number | null, to as number]
        : [shown?.disk_gb ?? planned(from), planned(to)];
    if (before == null || after === undefined)
      return {
        change,
        isShown,
        loses: 'what does not fit on its disk afterwards: nothing shows whether that gets smaller',
      };
    if (after < before)
      return { change, isShown, loses: `what its disk of ${before} GB holds beyond ${after} GB` };
  }
  return undefined;
}

/**
 * Data goes with a disk that shrinks, as it does with a server that is made anew, so the same word allows it,
 * and only for what the file itself asks for: what somebody made larger may be in use.
 */
export function heldLoss(
  { key, desired, binding }: Subject<ServerEntry>,
  { change: { path, from, to }, loses, isShown }: DiskLoss,
  isDrift: boolean,
  { settings }: World,
): Diff | undefined {
  const keep = `write \`${path}: ${from}\` in ${key}`;
  if (isDrift) {
    if (settings.drift === 'report') return undefined;
    return blocked(
      'update',
      'disk_would_shrink',
      `${path} is ${from}, not ${to}, without this file's doing, and would lose ${loses}`,
      `${keep} (which keeps it; less than that is then an edit, and takes \`replace: allowed\`)`,
    );
  }
  const words = [
    ...(desired?.protect === true ? ['protect: false'] : []),
    ...(desired?.value.replace === 'allowed' ? [] : ['replace: allowed']),
  ].map((word) => `\`${word}\``);
  if (words.length === 0) return undefined;
  const known = isShown || member(binding?.applied, 'body') != null;
  const ways = [
    `write ${words.join(' and ')} in ${key}, or restore \`${path}: ${from}\``,
    ...(known ? [] : [`vdcsync adopt ${key} ${binding?.id} (if it has that already)`]),
  ];
  return blocked('update', 'disk_would_shrink', `${path}: ${from} → ${to} loses ${loses}`, ways.join(' | '));
}
