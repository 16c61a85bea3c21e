import type { Desired, DesiredResource } from '../core/desired.ts';
import type { Json } from '../core/json.ts';
import type { KindName, ResourceKey } from '../core/keys.ts';
import type { Binding, StateStore } from '../core/state.ts';
import { vouchedBy } from './bookkeeping/vouched-note.ts';

/** The note of the state with the found ids, by key. */
const noteName = 'found_under_key';
/** How long a key replays its answer. @source API §8 */
const keyLifeMs = 24 * 3_600_000;

/** The id that a resource's idempotency key was answered with. */
interface Found {
  readonly id: string;
  /** The task of the creation, which may not have ended. */
  readonly taskId?: string;
  /** Wall ms. */
  readonly at: number;
}

type FoundNote = Readonly<Record<ResourceKey, Found>>;

/** Records the found id until it is bound or too old. */
export async function noteFound(store: StateStore, key: ResourceKey, found: Found): Promise<void> {
  const next = { ...(await foundIn(store)), [key]: found };
  await store.putNote(noteName, next as unknown as Json);
}

/** Adds to the entries the ids that were found under their keys, unless an id is bound, ignored or too old. */
export async function withFound(
  desired: Desired,
  store: StateStore,
  bindings: ReadonlyMap<ResourceKey, Binding>,
  now: number,
): Promise<Desired> {
  const found = await foundIn(store);
  if (Object.keys(found).length === 0) return desired;
  const ignored = await vouchedBy(store);
  const ignoresAll = desired.settings.unmanaged === 'ignore';
  const isIgnored = (kind: KindName, id: string) =>
    (kind === 'server' && (ignoresAll || ignored?.servers.includes(Number(id)) === true)) ||
    (kind === 'ip' && (ignoresAll || ignored?.addresses.some((name) => name.startsWith(`${id} `)) === true));
  const resources = desired.resources.map((each): DesiredResource => {
    const known = found[each.key];
    if (known === undefined || each.id !== undefined || bindings.has(each.key)) return each;
    const isBound = [...bindings.values()].some(({ kind, id }) => kind === each.kind && id === known.id);
    const isOld = Math.abs(now - known.at) > keyLifeMs;
    return isBound || isOld || isIgnored(each.kind, known.id) ? each : { ...each, id: known.id, found: true };
  });
  return { ...desired, resources };
}

/** The answer that the idempotency key of the resource was found to hold. */
export async function foundUnder(store: StateStore, key: ResourceKey): Promise<Found | undefined> {
  return (await foundIn(store))[key];
}

/** Removes a found id once its key is bound or resolved. */
export async function dropFound(store: StateStore, key: ResourceKey): Promise<void> {
  const { [key]: known, ...others } = await foundIn(store);
  if (known !== undefined) await store.putNote(noteName, others as unknown as Json);
}

async function foundIn(store: Pick<StateStore, 'note'>): Promise<FoundNote> {
  return ((await store.note(noteName)) ?? {}) as unknown as FoundNote;
}
