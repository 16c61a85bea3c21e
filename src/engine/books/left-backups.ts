import type { Json } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { World } from '../../core/kind.ts';
import type { Binding, Intent, StateChange, StateStore } from '../../core/state.ts';

const noteName = 'left_backups';

/**
 * Backups that were known of a server when it went. They stay billed, and no documented read
 * shows them any more: they are told of until a person says that they need not be.
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

export async function leftBackups(store: Pick<StateStore, 'note'>): Promise<readonly LeftBackups[]> {
  return ((await store.note(noteName)) ?? []) as unknown as readonly LeftBackups[];
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
  const left = changes.flatMap((change): LeftBackups[] => {
    const binding = change.type === 'release' && change.gone ? bindings.get(change.key) : undefined;
    if (binding?.kind !== 'server') return [];
    const { key, id: server } = binding;
    const ours = boundIn(key).flatMap(({ kind, id }) => (kind === 'backup' ? [id] : []));
    const backups = [...new Set([...(deletion?.key === key ? backupsBefore(deletion) : []), ...ours])];
    return backups.length === 0 ? [] : [{ server, key, backups, at: now }];
  });
  if (left.length === 0) return;
  const before = await leftBackups(store);
  const others = before.filter(({ server }) => !left.some((each) => each.server === server));
  const merged = left.map((each) => {
    const known = before.find(({ server }) => server === each.server)?.backups ?? [];
    return { ...each, backups: [...new Set([...known, ...each.backups])] };
  });
  await put(store, [...others, ...merged]);
}

/** As its deletion saw them last. */
export function backupsBefore({ preimage }: Intent): readonly string[] {
  return (preimage as { readonly backups?: readonly string[] } | null)?.backups ?? [];
}

/** A person's word. Gives what was told of until now. */
export async function forgetBackups(
  store: StateStore,
  servers: readonly string[],
): Promise<readonly LeftBackups[]> {
  const all = await leftBackups(store);
  const forgotten = all.filter(({ server }) => servers.includes(server));
  if (forgotten.length > 0)
    await put(
      store,
      all.filter((each) => !forgotten.includes(each)),
    );
  return forgotten;
}

function put(store: StateStore, left: readonly LeftBackups[]): Promise<void> {
  return store.putNote(noteName, left as unknown as Json);
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
