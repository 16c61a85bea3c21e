import { backupObject, type Claim } from '../../core/claims.ts';
import { digestOf } from '../../core/json.ts';
import { comesWithServer, type ResourceKey, retiringKey, takeApart } from '../../core/keys.ts';
import { factsOf, isAddress } from '../../core/kind-facts.ts';
import type { Binding, Intent, StateChange } from '../../core/state.ts';
import { waitingRename } from '../../plan/waits.ts';
import { boundIn, type Run } from '../run.ts';

/**
 * The bindings that end with a resource that is gone: the network interfaces and firewall of a server, but not its
 * address.
 */
export function released(run: Run, key: ResourceKey, reason: string): StateChange[] {
  const children = boundIn(run, key).filter((each) => !factsOf(each.kind).independent);
  return [
    { type: 'release', key, gone: true, reason },
    ...children.map(
      (child) =>
        ({ type: 'release', key: child.key, gone: false, reason: 'deleted with its server' }) as const,
    ),
  ];
}

/**
 * The bindings that end when a resource stays but is managed no longer: the resources inside it, and its address too.
 * A resource that is billed separately is claimed as released.
 */
export function releasing(
  run: Run,
  key: ResourceKey,
  by: 'operator' | 'file',
  reason: string,
): StateChange[] {
  const own = run.bindings.get(key);
  const inside = boundIn(run, key);
  return [
    ...[key, ...inside.map((child) => child.key)].map(
      (each) => ({ type: 'release', key: each, gone: false, reason }) as const,
    ),
    ...(own === undefined ? [] : releasedClaim(run, own, by, idOfServer(own))),
    ...inside.flatMap((child) => releasedClaim(run, child, by, child.parentId)),
  ];
}

/** The id of a backup is unique only within its server. */
function idOfServer({ kind, parentId }: Binding): string | undefined {
  return factsOf(kind).independent ? undefined : parentId;
}

/**
 * The key is bound to the object with this id. If it is bound to another object, that binding was wrong: the other object
 * goes back to the key that had it before, or that was answered with it. An address that the server has now stays under
 * its key.
 */
export function exchanging(run: Run, key: ResourceKey, by: 'operator' | 'file', id: string): StateChange[] {
  const before = run.bindings.get(key)?.id;
  if (before === id) return [];
  const isLive = ({ kind, id: address }: Binding) =>
    isAddress(kind) && String(run.world.ip(address)?.server_id) === id;
  const staying = boundIn(run, key).filter(isLive);
  const changes = before === undefined ? [] : releasing(run, key, by, `bound to ${id} instead`);
  return [
    ...changes.map(withEarlierOwner),
    ...staying.map((each) => ({ type: 'bind', binding: { ...each, parentId: id } }) as const),
  ];
}

function withEarlierOwner(change: StateChange): StateChange {
  if (change.type !== 'claim' || change.claim.holder.is !== 'released') return change;
  const { holder } = change.claim;
  const earlier = [...(holder.formerKeys ?? [])];
  const before = earlier.pop();
  if (before === undefined) return change;
  const formerKeys = [holder.formerKey, ...earlier];
  return { ...change, claim: { ...change.claim, holder: { ...holder, formerKey: before, formerKeys } } };
}

/** The resource gets the key of another entry, as by a rename: its recorded values stay, and so do its parts. */
export function passingOn(
  run: Run,
  owner: Binding,
  { key, protect, parentId }: Pick<Binding, 'key' | 'protect' | 'parentId'>,
): StateChange[] {
  const { recovered: _confirmed, parentId: _before, ...known } = owner;
  const now = { key, protect, ...(parentId === undefined ? {} : { parentId }) };
  const inside = boundIn(run, owner.key);
  const parts = inside.map((each) => ({
    ...each,
    key: `${key}${each.key.slice(owner.key.length)}` as ResourceKey,
  }));
  const formerKeys = [...(owner.formerKeys ?? []), owner.key];
  const reason = `its key is ${key} now`;
  return [
    ...[owner, ...inside].map((each) => ({ type: 'release', key: each.key, gone: false, reason }) as const),
    ...[{ ...known, ...now, formerKeys }, ...parts].map((each) => ({ type: 'bind', binding: each }) as const),
  ];
}

/**
 * The claim on a resource that stays, and that the key is not bound to.
 *
 * @param server the live id of the server that is released together with the resources inside it
 */
export function releasedClaim(
  { deps, world }: Run,
  binding: Pick<Binding, 'key' | 'kind' | 'id' | 'identity' | 'formerKeys' | 'recovered'> &
    Partial<Pick<Binding, 'applied'>>,
  by: 'operator' | 'file',
  server?: string,
): StateChange[] {
  const { key: formerKey, kind, id, formerKeys, recovered, applied } = binding;
  const { collection, staysBilled, container } = factsOf(kind);
  if (collection === undefined && staysBilled === undefined) return [];
  const own = isAddress(kind) ? (world.ip(id)?.address ?? binding.identity.address) : undefined;
  const address = container ? world.ipsOf(id)[0]?.address : own;
  const claim: Claim = {
    ...{ kind, id, ...(server === undefined ? {} : { parentId: server }) },
    identity: address === undefined ? {} : { address },
    holder: {
      is: 'released',
      by,
      formerKey,
      ...(formerKeys && { formerKeys }),
      ...(recovered && { recovered }),
      ...(applied && { applied }),
    },
    at: deps.clock.now(),
  };
  return [{ type: 'claim', claim }];
}

/**
 * Backups that the state knew when their server was deleted. The backups stay billed, and no documented read shows
 * them any more. vdcsync reports them until the operator ignores their server.
 *
 * @source API §1.5
 * @assumption A42
 */
interface LeftBackups {
  /** The live id of the server, as text. */
  readonly server: string;
  readonly key: ResourceKey;
  readonly backups: readonly string[];
  /** Wall ms. */
  readonly at: number;
}

/** Groups the leftover backups by their server. `key` and `at` are those of the first claim of the server. */
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
  const billed = world.ips.filter((each) => addresses.includes(each.address) && world.isUnbound(each));
  const backups = backupsBefore(deletion);
  return [
    ...(backups.length === 0 ? [] : [`backup ${backups.join(', ')} of the deleted ${key} stays billed`]),
    ...billed.map(
      ({ address }) => `${address} stays billed: ${key} had it, and no key of the spec is bound to it`,
    ),
  ];
}

/**
 * The changes by which a server retires: its binding, and the bindings of everything inside it, pass to a key of their
 * own, because another server takes over the key. The next plan deletes the resources of these keys. One transaction
 * contains these changes and the binding of the other server, so that a crash leaves both servers bound.
 *
 * @param taken the bindings of the other server: it has a free address of the retiring one if that is gone already
 */
export function retiring(run: Run, server: Binding, taken: readonly Binding[] = []): StateChange[] {
  const to = retiringKey(server.key, server.id);
  const isTaken = ({ key, id }: Binding) => taken.some((each) => each.key === key && each.id === id);
  return [server, ...boundIn(run, server.key)]
    .filter((each) => !isTaken(each))
    .flatMap((each) => passing(run, each, server.key, to));
}

/**
 * The changes after the deletion of a resource. If it was replaced, a new one takes over its key: the address of a deleted
 * server then retires, and stays until the new server exists.
 *
 * @param basis of the deletion: that of a resource that has left the spec is no replacement, even if its entry returns,
 *   nor if another entry is renamed to its key
 */
export function deleted(
  run: Run,
  { key, basis }: Pick<Intent, 'key'> & Partial<Pick<Intent, 'basis'>>,
  reason: string,
): StateChange[] {
  const id = run.bindings.get(key)?.id;
  const isDeclared =
    run.world.subjects.get(key)?.desired?.managed === true &&
    waitingRename(key, run.moves.waiting) === undefined;
  const isReplaced = id !== undefined && isDeclared && basis !== digestOf(null);
  const addresses = boundIn(run, key).filter(({ kind }) => comesWithServer({ kind, parent: key }));
  return [
    ...(isReplaced ? addresses.flatMap((each) => passing(run, each, key, retiringKey(key, id))) : []),
    ...released(run, key, reason),
  ];
}

function passing(run: Run, binding: Binding, from: ResourceKey, to: ResourceKey): StateChange[] {
  const part = binding.key.slice(from.length);
  const taken = run.bindings.has(`${to}${part}` as ResourceKey);
  // The API may give out the id of a server again while the address of the earlier server retires. @assumption A17
  const key = `${to}${taken ? `-${binding.id}` : ''}${part}` as ResourceKey;
  const { formerKeys: _, ...rest } = binding;
  // From now on, no entry of the spec says that the address stays, or that the server is protected.
  const entry = run.world.subjects.get(from)?.desired;
  const keep = rest.keep || (entry?.value.keep_ip === true && comesWithServer(takeApart(key)));
  const protect = entry?.protect ?? rest.protect;
  return [
    { type: 'release', key: binding.key, gone: false, reason: `retires as ${key}` },
    { type: 'bind', binding: { ...rest, key, keep, protect } },
  ];
}
