import { z } from 'zod';
import { childKey, type ResourceKey } from '../../core/keys.ts';
import type { Diff, Subject, World } from '../../core/kind.ts';
import type { Change, Warning } from '../../core/plan.ts';
import { command } from '../../core/remedy.ts';
import type { Backup } from '../../core/resources.ts';
import type { Binding } from '../../core/state.ts';
import { durationPattern } from '../../core/time.ts';
import { flatPrice, priceBySize } from '../prices.ts';
import { toNothing, unchanged } from '../verdicts.ts';

/**
 * The backups that vdcsync took before the newest one, each under a key of its own:
 * `servers.web-1.backup.2027-01-31T03:00:00Z`. If the entry has `keep`, surplus ones are deleted, the
 * oldest first. A backup by a schedule or by another user is never bound, and so never deleted.
 */
export function isCopy({ key, parent }: Pick<Subject, 'key' | 'parent'>): boolean {
  return parent !== undefined && key !== childKey(parent, 'backup');
}

/** An id that a key can contain unchanged. */
const plain = /^[\w:.+-]{1,64}$/;

/** The new binding of the previous newest backup, once a newer one has replaced it: it stays billed. */
export function copyOf({ key, binding }: Subject<BackupEntry>, newest: string): Binding | undefined {
  if (binding === undefined || binding.id === newest) return undefined;
  if (binding.tainted !== undefined || !plain.test(binding.id)) return undefined;
  return { ...binding, key: childKey(key, binding.id), protect: false };
}

/** A copy is deleted only if the spec, the profile and the list all permit it. */
export function diffCopy(subject: Subject, observed: BackupObserved | undefined, world: World): Diff {
  const { binding, parent } = subject;
  // Without its server, no read shows whether the backup still exists.
  if (binding === undefined || parent === undefined || observed === undefined) return unchanged;
  if (observed.id === undefined) return diffMissing(subject, binding, observed.backups, world);
  const goes = surplus(parent, observed, world).find(({ id }) => id === binding.id);
  if (goes === undefined || whyKept(parent, world) !== undefined) return unchanged;
  const changes = toNothing({ taken: goes.created_at });
  const freed = flatPrice(parent, world) === undefined ? priceBySize : { known: '0' };
  return { verdict: { verdict: 'delete', changes, byFile: true }, freed };
}

/**
 * If a list ends early, a backup that it lacks may still exist and be billed. The list counts as complete
 * if it lacks only one backup, and contains backups before and after that one. @assumption A8
 */
function diffMissing(
  { key, parent }: Subject,
  { id }: Binding,
  backups: readonly Backup[],
  world: World,
): Diff {
  const listed = new Set(backups.map((each) => each.id));
  const missing = ownIn(parent as ResourceKey, world).filter((each) => !listed.has(each));
  const at = takenAt({ id, created_at: id });
  const enclosed = backups.some((each) => takenAt(each) < at) && backups.some((each) => takenAt(each) > at);
  if (missing.length === 1 && enclosed) {
    const reason = `backup ${id} no longer exists`;
    return { verdict: { verdict: 'release', gone: true, reason } };
  }
  const message = `the list of backups lacks ${id}, but the list may be incomplete: vdcsync assumes that the backup exists`;
  const remedies = [command('forget', [key], { when: 'if the backup no longer exists' })];
  return { ...unchanged, warnings: [{ code: 'backup_not_listed', key, message, remedies }] };
}

/** Ids of the backups that are bound to keys of this spec. */
function ownIn(server: ResourceKey, world: World): readonly string[] {
  return world
    .childrenOf(server)
    .filter(({ kind, binding }) => kind === 'backup' && binding?.tainted === undefined)
    .flatMap(({ binding }) => binding?.id ?? []);
}

/** Warns about backups that remain billed although the spec asks for their deletion. */
export function keptWarnings({ key, parent }: Subject, observed: BackupObserved, world: World): Warning[] {
  const why = parent === undefined ? undefined : whyKept(parent, world);
  if (parent === undefined || why === undefined) return [];
  const count = surplus(parent, observed, world).length;
  if (count === 0) return [];
  const message = `${count} ${count === 1 ? 'backup' : 'backups'} more than \`keep\` permits, all billed: ${why}`;
  return [{ code: 'backups_kept', key, message }];
}

function whyKept(server: ResourceKey, world: World): string | undefined {
  if (wishOf(server, world)?.protect) return 'the server is protected, and so are its backups';
  return world.profile.operations.delete_backup === undefined
    ? 'the API does not document how to delete a backup: delete it in the client area, or enable `delete_backup` in the API profile'
    : undefined;
}

/** The backups to delete after the next one is taken, as a change of the newest: the operator sees them before. */
export function makesRoom(server: ResourceKey, observed: BackupObserved, world: World): Change[] {
  if (whyKept(server, world) !== undefined) return [];
  const goes = new Set(surplus(server, observed, world).map(({ id }) => id));
  return surplus(server, observed, world, 1)
    .filter(({ id }) => !goes.has(id))
    .map(({ id }) => ({ path: 'oldest', from: id, to: null }));
}

/**
 * The spec's own backups of this server that are available, except for the newest `keep`, of which `toCome` are still
 * to be taken.
 */
function surplus(
  server: ResourceKey,
  { backups }: BackupObserved,
  world: World,
  toCome = 0,
): readonly Backup[] {
  const keep = wishOf(server, world)?.value.keep;
  if (keep === undefined) return [];
  const own = new Set(ownIn(server, world));
  return backups
    .filter(({ id, status }) => own.has(id) && status === 'available')
    .filter((each) => String(each.server_id) === world.idOf(server) && !Number.isNaN(takenAt(each)))
    .sort((a, b) => takenAt(b) - takenAt(a))
    .slice(Math.max(0, keep - toCome));
}

function wishOf(server: ResourceKey, world: World) {
  const { desired } = world.subjects.get(childKey(server, 'backup')) ?? {};
  return desired as Subject<BackupEntry>['desired'];
}

/** When it was taken, ms. The id is the moment itself, where the stamp cannot be read; NaN where neither can. @source API §2 */
export function takenAt({ created_at, id }: Pick<Backup, 'created_at' | 'id'>): number {
  const stamp = moment(created_at);
  return Number.isNaN(stamp) ? moment(id) : stamp;
}

/** Stricter than `Date.parse` alone, which finds a date in almost anything. */
function moment(text: string): number {
  return /^\d{4}-\d\d-\d\d[T ]/.test(text) ? Date.parse(text) : Number.NaN;
}

/**
 * Taken when the newest available backup is older than `max_age`. Each is billed and a
 * resource of its own; there is no task, so the list is polled until it is available.
 */
export type BackupEntry = Readonly<z.infer<typeof backupSchema>>;

export interface BackupObserved {
  readonly id: string | undefined;
  readonly backups: readonly Backup[];
}

export const backupSchema = z
  .strictObject({
    max_age: z
      .string('a duration is written like 90m, 24h or 7d')
      .regex(durationPattern, 'a duration is written like 90m, 24h or 7d')
      .describe(
        'vdcsync takes a backup if the newest available backup is older than this time, such as 90m, 24h or 7d.',
      ),
    keep: z
      .int()
      .min(1)
      .optional()
      .describe('Number of its own backups that vdcsync keeps, if the API profile has delete_backup.'),
  })
  .describe('Backups that vdcsync takes.');
