import type { Json } from '../core/json.ts';
import type { Diff, Price, Subject, World } from '../core/kind.ts';
import type { Change, Operation } from '../core/plan.ts';
import type { WriteRequest } from '../core/ports.ts';
import type { Server } from '../core/resources.ts';
import type { Binding } from '../core/state.ts';
import { member } from './existence.ts';
import { findType } from './gpu-package.ts';
import { priceOfSize } from './prices.ts';
import type { ServerEntry } from './server-entry.ts';

/** What the profile's `resize_server` can change in place. */
export const sizes = ['cores', 'memory_mb', 'disk_gb', 'plan_id'] as const;

/** Whether these changes need no replacement. A packaged server is never resized. @source API §4 */
export function isResize(changes: readonly Change[], entry: ServerEntry, world: World): boolean {
  if (world.profile.operations.resize_server === undefined || entry.gpu_package !== undefined) return false;
  return changes.every(({ path }) => sizes.some((size) => size === path));
}

/** A larger size is new spending, as a purchase is; by the sizes where no price tells. @source API §1.6 */
export function billOfResize(
  entry: ServerEntry,
  changes: readonly Change[],
  price: Price,
  world: World,
): Required<Pick<Diff, 'price' | 'freed' | 'spend'>> {
  const before = Object.fromEntries(changes.map(({ path, from }) => [path, from ?? undefined]));
  const type = findType(entry.server_type, world.catalogue.types);
  const freed = priceOfSize(type, { ...entry, ...before }, world);
  if ('known' in price && 'known' in freed) {
    const more = Number(price.known) - Number(freed.known);
    return { price, freed, spend: more > 0 ? 'adds' : more < 0 ? 'reduces' : 'none' };
  }
  const shrinks = changes.every(
    ({ path, from, to }) => path !== 'plan_id' && typeof from === 'number' && Number(to) < from,
  );
  return { price, freed, spend: shrinks ? 'reduces' : 'adds' };
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
