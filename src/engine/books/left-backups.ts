import type { Json } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { Intent, StateChange, StateStore } from '../../core/state.ts';
import type { Run } from '../run.ts';

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

/** Before the changes that let go of servers as gone are durable: told twice rather than never. */
export async function rememberBackups(
  run: Run,
  changes: readonly StateChange[],
  deletion?: Intent,
): Promise<void> {
  const { store, clock } = run.deps;
  const left = changes.flatMap((change): LeftBackups[] => {
    const binding = change.type === 'release' && change.gone ? run.bindings.get(change.key) : undefined;
    if (binding?.kind !== 'server') return [];
    const { key, id: server } = binding;
    const ours = run.boundIn(key).flatMap(({ kind, id }) => (kind === 'backup' ? [id] : []));
    const backups = [...new Set([...(deletion?.key === key ? backupsBefore(deletion) : []), ...ours])];
    return backups.length === 0 ? [] : [{ server, key, backups, at: clock.now() }];
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

/** What a deletion that an earlier run sent has left, once it is settled: that run may not have told. */
export function leftByDeletion(run: Run, deletion: Intent): readonly string[] {
  const { key, kind, verb, preimage } = deletion;
  if (kind !== 'server' || verb !== 'delete' || run.intents.has(key) || run.bindings.has(key)) return [];
  const { addresses = [] } = (preimage ?? {}) as { readonly addresses?: readonly string[] };
  const { ips, isNobodys } = run.world;
  const held = ips.filter((each) => addresses.includes(each.address) && isNobodys(each));
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
