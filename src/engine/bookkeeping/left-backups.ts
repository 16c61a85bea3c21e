import type { Json } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { World } from '../../core/kind.ts';
import type { Binding, Intent, StateChange, StateStore } from '../../core/state.ts';

/** `forgotten`: an operator let go of them while their server is there; they are told of once it has gone. */
const notes = { left: 'left_backups', forgotten: 'forgotten_backups' } as const;

/**
 * Backups that were known of a server when it went. They stay billed, and no documented read
 * shows them any more: they are told of until an operator says that they need not be.
 *
 * @source API §1.5
 * @assumption A42
 */
export interface LeftBackups {
  /** The live id of the server, as text. */
  readonly server: string;
  readonly key: ResourceKey;
  readonly backups: readonly string[];
  /** Wall ms. */
  readonly at: number;
}

export function leftBackups(store: Pick<StateStore, 'note'>): Promise<readonly LeftBackups[]> {
  return read(store, 'left');
}

/** What an operator lets go of stays billed, and is nobody's to tell of as long as its server shows it. */
export async function rememberForgotten(store: StateStore, left: LeftBackups): Promise<void> {
  await put(store, 'forgotten', [...(await read(store, 'forgotten')), left]);
}

async function read(
  store: Pick<StateStore, 'note'>,
  which: keyof typeof notes,
): Promise<readonly LeftBackups[]> {
  return ((await store.note(notes[which])) ?? []) as unknown as readonly LeftBackups[];
}

function put(store: StateStore, which: keyof typeof notes, all: readonly LeftBackups[]): Promise<void> {
  return store.putNote(notes[which], all as unknown as Json);
}

/** What the state holds just before servers are let go of; `now` in wall ms. */
interface Known {
  readonly store: StateStore;
  readonly bindings: ReadonlyMap<ResourceKey, Binding>;
  readonly boundIn: (server: ResourceKey) => readonly Binding[];
  readonly now: number;
}

/** Before the changes that let go of servers as gone are durable: told twice rather than never. */
export async function rememberBackups(
  { store, bindings, boundIn, now }: Known,
  changes: readonly StateChange[],
  deletion?: Intent,
): Promise<void> {
  const servers = changes.flatMap((change) => {
    const binding = change.type === 'release' && change.gone ? bindings.get(change.key) : undefined;
    return binding?.kind === 'server' ? [binding] : [];
  });
  if (servers.length === 0) return;
  const [before, released] = [await read(store, 'left'), await read(store, 'forgotten')];
  const left = servers.flatMap(({ key, id: server }): LeftBackups[] => {
    const ours = boundIn(key).flatMap(({ kind, id }) => (kind === 'backup' ? [id] : []));
    // Its deletion has seen which of them are still there.
    const isSeen = deletion?.key === key && backupsBefore(deletion).length > 0;
    const seen = isSeen ? backupsBefore(deletion) : of(server, released);
    if (seen.length + ours.length === 0) return [];
    return [{ server, key, backups: [...new Set([...of(server, before), ...seen, ...ours])], at: now }];
  });
  if (left.length === 0) return;
  await put(store, 'left', [...without(left, before), ...left]);
  if (released.length > 0) await put(store, 'forgotten', without(left, released));
}

function of(server: string, all: readonly LeftBackups[]): readonly string[] {
  return all.flatMap((each) => (each.server === server ? each.backups : []));
}

function without(some: readonly LeftBackups[], all: readonly LeftBackups[]): readonly LeftBackups[] {
  return all.filter(({ server }) => !some.some((each) => each.server === server));
}

/** As its deletion saw them last. */
export function backupsBefore({ preimage }: Intent): readonly string[] {
  return (preimage as { readonly backups?: readonly string[] } | null)?.backups ?? [];
}

/** An operator's word. Gives what was told of until now. */
export async function forgetBackups(
  store: StateStore,
  servers: readonly string[],
): Promise<readonly LeftBackups[]> {
  const all = await leftBackups(store);
  const forgotten = all.filter(({ server }) => servers.includes(server));
  const left = all.filter((each) => !forgotten.includes(each));
  if (forgotten.length > 0) await put(store, 'left', left);
  return forgotten;
}

/** What a run knows of state and project. */
interface Now {
  readonly intents: ReadonlyMap<ResourceKey, Intent>;
  readonly bindings: ReadonlyMap<ResourceKey, Binding>;
  readonly world: World;
}

/** What a deletion that an earlier run sent has left, once it is settled: that run may not have told. */
export function leftByDeletion({ intents, bindings, world }: Now, deletion: Intent): readonly string[] {
  const { key, kind, verb, preimage } = deletion;
  if (kind !== 'server' || verb !== 'delete' || intents.has(key) || bindings.has(key)) return [];
  const { addresses = [] } = (preimage ?? {}) as { readonly addresses?: readonly string[] };
  const held = world.ips.filter((each) => addresses.includes(each.address) && world.isNobodys(each));
  const backups = backupsBefore(deletion);
  return [
    ...(backups.length === 0
      ? []
      : [`backup ${backups.join(', ')} of ${key}, which is deleted, stays billed`]),
    ...held.map(
      ({ address }) => `${address} stays billed: ${key} held it, and nothing in the file stands for it`,
    ),
  ];
}
