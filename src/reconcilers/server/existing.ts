import { namedAddress } from '../../core/desired.ts';
import type { ReplacementOrder, Subject, World } from '../../core/kind.ts';
import { recordOf } from './applied-fields.ts';
import type { ServerEntry, ServerObserved } from './entry.ts';

/** An existing server, and its entry in the spec. */
export interface Existing {
  readonly subject: Subject<ServerEntry>;
  readonly entry: ServerEntry;
  readonly live: ServerObserved;
  readonly world: World;
}

/** Whether the server holds the address that its entry names. */
export function holdsNamed({ entry, live, world }: Existing): boolean {
  const named = namedAddress(entry);
  return named !== undefined && live.addresses.some(({ id }) => String(id) === world.idOf(named));
}

/** The form of `replace` in an entry that permits a replacement; `undefined` if the entry permits none. */
export function permitted({ replace }: ServerEntry): Permitted | undefined {
  if (replace === undefined || replace === 'never') return undefined;
  return replace === 'allowed' ? {} : replace;
}

/** The fields that the entry needs in addition, so that the server may be replaced. */
export function fieldsToReplace({ desired }: Subject): Readonly<Record<string, unknown>> {
  return {
    ...(desired?.protect === true ? { protect: false } : {}),
    ...(desired !== undefined && permitted(desired.value as ServerEntry) !== undefined
      ? {}
      : { replace: 'allowed' }),
  };
}

type Permitted = Exclude<ServerEntry['replace'], undefined | string>;

/** The order of a replacement. It is that of the entry, or the one that loses nothing if the API refuses the new server. */
export function orderOf(existing: Existing): ReplacementOrder {
  return permitted(existing.entry)?.order ?? (isNeeded(existing) ? 'delete_first' : 'create_first');
}

/**
 * Whether the new server needs an address or graphics cards that the old server holds. `{reuse: true}` takes the address
 * of the old server again if the spec would not release that address. @source API §4
 */
function isNeeded(existing: Existing): boolean {
  const { subject, entry, live, world } = existing;
  if (holdsNamed(existing)) return true;
  if (entry.public_ipv4?.reuse && live.addresses.some(world.isUnbound)) return true;
  const { gpu_package: wanted } = entry;
  if (wanted === undefined) return false;
  const record = recordOf(subject.binding);
  const recorded = record.body?.gpu_package ?? record.entry?.gpu_package;
  return [wanted].flat().some((each) => [recorded].flat().includes(each));
}
