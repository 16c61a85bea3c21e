import { backupObject, type Claim } from '../../core/claims.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Intent, StateChange } from '../../core/state.ts';
import { boundIn, type Run } from '../run.ts';

/**
 * Backups that the state knew when their server was deleted. The backups stay billed, and no documented read shows
 * them any more. vdcsync reports them until the operator ignores their server.
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

export function leftBackups(claims: Iterable<Claim>): readonly LeftBackups[] {
  const left = [...claims].flatMap(({ id, parentId = '', at, holder }) =>
    holder.is === 'leftover' ? [{ id, server: parentId, key: holder.formerKey, at }] : [],
  );
  return [...Map.groupBy(left, ({ server }) => server)].flatMap(([server, each]) =>
    each.slice(0, 1).map(({ key, at }) => ({ server, key, at, backups: each.map(({ id }) => id) })),
  );
}

/**
 * The changes for the backups of a server that is gone: its bound backups, and the backups that were released while
 * the server existed. `now` is in wall ms. The state is the one just before the change.
 */
export function leftoverChanges(
  { bindings, claims }: Pick<Run, 'bindings' | 'claims'>,
  now: number,
  changes: readonly StateChange[],
  deletion?: Intent,
): StateChange[] {
  const servers = changes.flatMap((change) => {
    const binding = change.type === 'release' && change.gone ? bindings.get(change.key) : undefined;
    return binding && factsOf(binding.kind).container ? [binding] : [];
  });
  return servers.flatMap(({ key, id: server }): StateChange[] => {
    const bound = boundIn({ bindings }, key).flatMap(({ kind, id }) =>
      factsOf(kind).staysBilled ? [id] : [],
    );
    const of = ({ kind, parentId }: Claim) => factsOf(kind).staysBilled && parentId === server;
    const released = [...claims.values()].filter((claim) => of(claim) && claim.holder.is === 'released');
    // The deletion of the server has read the backups that still exist.
    const seen = deletion?.key === key ? backupsBefore(deletion) : [];
    const left = new Set([...(seen.length > 0 ? seen : released.map(({ id }) => id)), ...bound]);
    const holder = { is: 'leftover', formerKey: key } as const;
    return [
      ...[...left].map(
        (id) =>
          ({ type: 'claim', claim: { ...backupObject(id, server), identity: {}, holder, at: now } }) as const,
      ),
      ...released
        .filter(({ id }) => !left.has(id))
        .map((claim) => ({ type: 'unclaim', object: claim, reason: 'it went before its server' }) as const),
    ];
  });
}

/** The backups in the last read before the deletion. */
export function backupsBefore({ preimage }: Intent): readonly string[] {
  return preimage.backups ?? [];
}

/**
 * The addresses and backups that the settled deletion of an earlier run left. The earlier run may have ended before
 * its report.
 */
export function leftByDeletion(
  { intents, bindings, world }: Pick<Run, 'intents' | 'bindings' | 'world'>,
  deletion: Intent,
): readonly string[] {
  const { key, kind, verb, preimage } = deletion;
  if (!factsOf(kind).container || verb !== 'delete' || intents.has(key) || bindings.has(key)) return [];
  const { addresses = [] } = preimage;
  const held = world.ips.filter((each) => addresses.includes(each.address) && world.isUnbound(each));
  const backups = backupsBefore(deletion);
  return [
    ...(backups.length === 0 ? [] : [`backup ${backups.join(', ')} of the deleted ${key} stays billed`]),
    ...held.map(
      ({ address }) => `${address} stays billed: ${key} had it, and no key of the spec is bound to it`,
    ),
  ];
}
