import type { Json } from '../core/json.ts';
import type { Subject, World } from '../core/kind.ts';
import type { Change, Operation } from '../core/plan.ts';
import type { WriteRequest } from '../core/ports.ts';
import type { Server } from '../core/resources.ts';
import type { Binding } from '../core/state.ts';
import { member } from './existence.ts';
import type { ServerEntry } from './server-entry.ts';

/** What the profile's `resize_server` can change in place. */
export const sizes = ['cores', 'memory_mb', 'disk_gb', 'plan_id'] as const;

/** Whether these changes need no replacement. A packaged server is never resized. @source API §4 */
export function isResize(changes: readonly Change[], entry: ServerEntry, world: World): boolean {
  if (world.profile.operations.resize_server === undefined || entry.gpu_package !== undefined) return false;
  return changes.every(({ path }) => sizes.some((size) => size === path));
}

/** Declared sizes that the API shows otherwise. */
export function diffShown(entry: ServerEntry, shown: Server | undefined): Change[] {
  return sizes.flatMap((path) => {
    const [from, to] = [shown?.[path], entry[path]];
    return from === undefined || to === undefined || from === to ? [] : [{ path, from, to }];
  });
}

/** All sizes that the file declares, so that the same request always means the same server. */
export function resizeRequest({ desired }: Subject<ServerEntry>, { target }: Operation): WriteRequest {
  const entry = desired?.value;
  const body = Object.fromEntries(
    sizes.flatMap((size) => (entry?.[size] === undefined ? [] : [[size, entry[size]] as const])),
  );
  return { name: 'resize_server', path: { server_id: Number(target) }, body };
}

/** The binding after a resize: the server it was, with other sizes. */
export function rebound(
  { binding }: Subject<ServerEntry>,
  { body }: WriteRequest,
  asked: ServerEntry | undefined,
): Pick<Binding, 'identity' | 'applied' | 'keep'> {
  const before = member(binding?.applied, 'body');
  const entry = { ...asked } as Json;
  const made = before == null ? null : ({ ...(before as object), ...(body as object) } as Json);
  return { identity: binding?.identity ?? {}, applied: { entry, body: made }, keep: binding?.keep ?? false };
}
