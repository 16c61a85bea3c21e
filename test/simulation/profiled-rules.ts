import { childKey, topLevelKey } from '../../src/core/keys.ts';
import type { Intent } from '../../src/core/state.ts';
import type { Running } from '../../src/simulation/controller.ts';
import { projectOf, type Truth } from '../../src/simulation/rules/truth.ts';
import { isReplay } from './rules/deletions.ts';

/** The rules of the operations that only a profile enables. */
export function checkProfiled(truth: Truth, running: Running, intent: Intent): void {
  if (intent.verb === 'delete' && intent.kind === 'backup' && !isReplay(truth, intent))
    checkRotation(truth, running, intent);
  checkDisk(truth, running, intent);
}

/** A rotation deletes only backups of this spec, and never one of the newest backups that the spec keeps. */
function checkRotation(
  { history, fail }: Truth,
  { desired, controller }: Running,
  { key, request }: Intent,
): void {
  const [, name = ''] = key.split('.');
  const wish = childKey(topLevelKey('servers', name), 'backup');
  const server = `${request.path.server_id}/`;
  const own = history
    .executionsOf(controller.file.lines.nameOf(wish))
    .filter((each) => each.id?.startsWith(server));
  const id = `${server}${request.path.id}`;
  const taken = own.find((each) => each.id === id);
  if (taken === undefined) fail('I8', `backup ${id} is deleted, and was not taken by this spec`);
  if (taken === undefined || !history.isLive(taken)) return;
  const { value } = desired.resources.find((each) => each.key === wish) ?? {};
  const { keep = Number.POSITIVE_INFINITY } = (value ?? {}) as { readonly keep?: number };
  if (own.filter((each) => history.isLive(each) && (each.id ?? '') > id).length < keep)
    fail('I8', `backup ${id} is deleted, and is one of the newest ${keep}`);
}

/** I8: data goes with a disk that a resize makes smaller. */
function checkDisk(truth: Truth, { desired }: Running, { key, request }: Intent): void {
  if (request.name !== 'resize_server') return;
  const server = projectOf(truth).servers.find(({ id }) => id === request.path.server_id);
  const { disk_gb: size = Number.POSITIVE_INFINITY } = request.body as { readonly disk_gb?: number };
  if (server === undefined || size >= (server.diskGb ?? 0)) return;
  const { value, protect } = desired.resources.find((each) => each.key === key) ?? {};
  const entry = value as { readonly disk_gb?: number; readonly replace?: string } | undefined;
  if (entry?.disk_gb !== size)
    truth.fail('I8', `the disk of ${key} is cut down to ${size} GB, and the spec does not say so`);
  if (entry?.replace === undefined || entry.replace === 'never' || protect)
    truth.fail('I8', `the disk of ${key} is cut down, and the spec does not allow it`);
}
