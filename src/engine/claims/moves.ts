import type { Desired, DesiredResource, ExpiredEntry } from '../../core/desired.ts';
import {
  childKey,
  entryKeyOf,
  namesakeOf,
  type ResourceKey,
  retiredFrom,
  retiringKey,
  takeApart,
} from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import { command, edit, settleFirst } from '../../core/remedy.ts';
import type { Binding, Intent, StateChange } from '../../core/state.ts';
import { waitingRename } from '../../plan/waits.ts';
import type { Move, Moves, WaitingMove } from '../run.ts';

/**
 * The bindings that the spec has renamed, with the resources inside them. An unsettled write ends under the key that
 * it was sent for, so a rename of either key waits for the write.
 */
export function movesOf(
  desired: Desired,
  bindings: ReadonlyMap<ResourceKey, Binding>,
  intents: ReadonlyMap<ResourceKey, Intent>,
): Moves {
  const keys = [...bindings.keys()];
  // Of a server that is deleted first, only its retiring address is left until the new server exists.
  const standing = new Set([...standingKeys(keys), ...keys.flatMap((key) => retiredFrom(key) ?? [])]);
  const renamed = desired.resources.flatMap(({ key, moved }) =>
    moved && standing.has(moved) ? [{ from: moved, to: key }] : [],
  );
  const inferred = new Set(desired.resources.flatMap((each) => (each.isInferred ? [each.key] : [])));
  const waiting = renamed.flatMap((move) => inFlight(move, intents));
  const becomes = new Map(renamed.flatMap(({ from, to }) => (isMovedBefore(to, from) ? [] : [[from, to]])));
  const followed = followedNames(desired, bindings, intents);
  const renames = [...bindings.keys()].flatMap((from): Move[] => {
    const renamed = renamedKey(from, becomes);
    const to = renamed === from ? (followed.get(from) ?? from) : renamed;
    return to === from ? [] : [{ from, to, ...(inferred.has(to) && { inferred: true }) }];
  });
  const arriving = new Map(renames.map(({ from, to }) => [to, bindings.get(from)?.id]));
  const aside = [...bindings.values()].flatMap(movedAside);
  const free = new Set(aside.map(({ from }) => from));
  const moves = [...aside, ...renames];
  const onto = renames.filter(({ to }) => bindings.has(to) && !free.has(to));
  // The question about the server, or about the network of an interface, is about its parts too.
  const follows = ({ from }: Move) => {
    const parsed = takeApart(from);
    return onto.some((each) => each.from === parsed.parent || each.from === namesakeOf(parsed));
  };
  const decides = (each: Move) =>
    !follows(each) && !waiting.some(({ keys }) => keys.has(entryKeyOf(each.to)));
  return holding(moves, [...waiting, ...onto.filter(decides).map(ontoBound)]);

  /**
   * The key of a resource that a deleted server left, if another server gets the key of that server. A resource that
   * retires keeps its key.
   */
  function movedAside({ key, id, parentId = id, orphaned }: Binding): Move[] {
    const { parent } = takeApart(key);
    const retired = retiredFrom(key);
    if (retired !== undefined) {
      const isLeft = arriving.has(retired) && renamedKey(key, becomes) === key && !orphaned;
      return isLeft ? [{ from: key, to: key, orphans: true }] : [];
    }
    if (parent === undefined || bindings.has(parent) || !arriving.has(parent)) return [];
    if (arriving.get(parent) === parentId) return [];
    const part = key.slice(parent.length + 1);
    const to = childKey(retiringKey(parent, parentId), part);
    // The API may have given the id of the server out again. @assumption A17
    const other = childKey(retiringKey(parent, `${parentId}-${id}`), part);
    return [{ from: key, to: bindings.has(to) ? other : to, orphans: true }];
  }

  /** Of the previous key, only resources inside it are left. These resources were renamed separately. */
  function isMovedBefore(to: ResourceKey, from: ResourceKey): boolean {
    return bindings.has(to) && !bindings.has(from);
  }
}

/**
 * Holds each move that has a key in common with one that waits, also through further moves. The entries of all these
 * keys wait with it.
 */
function holding(moves: readonly Move[], waiting: readonly WaitingMove[]): Moves {
  const groups = waiting.map((each) => {
    const keys = new Set(each.keys);
    for (let known = 0; known < keys.size; ) {
      known = keys.size;
      for (const nodes of moves.map(entriesOf))
        if (nodes.some((key) => keys.has(key))) for (const key of nodes) keys.add(key);
    }
    return { ...each, keys };
  });
  return { moves: moves.filter(({ from }) => waitingRename(from, groups) === undefined), waiting: groups };
}

/** The entries that a move depends on. A network interface has the name of its network. */
function entriesOf({ from, to }: Move): readonly ResourceKey[] {
  return [from, to].flatMap((key) => {
    const network = namesakeOf(takeApart(key));
    return network === undefined ? [entryKeyOf(key)] : [entryKeyOf(key), network];
  });
}

/**
 * A network interface follows the entry of its network, if that entry has adopted the network of another key, or is a
 * renamed one without a binding: the network interface then has an entry with another name in the same server.
 */
function followedNames(
  desired: Desired,
  bindings: ReadonlyMap<ResourceKey, Binding>,
  intents: ReadonlyMap<ResourceKey, Intent>,
): ReadonlyMap<ResourceKey, ResourceKey> {
  const entries = new Map(desired.resources.map((each) => [each.key, each]));
  const left = [...bindings.values()].filter(
    ({ key, identity }) => identity.network_id !== undefined && !entries.has(key) && !intents.has(key),
  );
  if (left.length === 0) return new Map();
  const pairs = desired.resources.flatMap(({ key, kind, parent }) => {
    const network = namesakeOf(takeApart(key));
    if (network === undefined || bindings.has(key) || intents.has(key)) return [];
    const id = bindings.get(network)?.id ?? entries.get(network)?.id;
    const moved = entries.get(network)?.moved;
    const isIn = (each: Binding) =>
      id === undefined
        ? moved !== undefined && namesakeOf(takeApart(each.key)) === moved
        : each.identity.network_id === id;
    const own = left.find(
      (each) => each.kind === kind && takeApart(each.key).parent === parent && isIn(each),
    );
    return own === undefined ? [] : [[own.key, key] as const];
  });
  return new Map(pairs);
}

/** The spec without previous names that have no binding: a new resource gets the name of its own key. */
export function ownNames(
  desired: Desired,
  bindings: ReadonlyMap<ResourceKey, Binding>,
  intents: ReadonlyMap<ResourceKey, Intent>,
): Desired {
  const standing = standingKeys([...bindings.keys(), ...intents.keys()]);
  const resources = desired.resources.map((resource) => {
    const { key, moved, named, value } = resource;
    if (moved === undefined || named !== false || standing.has(moved) || bindings.has(key)) return resource;
    return { ...resource, value: { ...value, name: takeApart(key).name } };
  });
  return { ...desired, resources };
}

/** An entry, or one that has expired. */
type Entry = Pick<DesiredResource, 'key' | 'kind' | 'id' | 'moved'> &
  Partial<Pick<DesiredResource, 'parent' | 'held' | 'managed'>> &
  Pick<ExpiredEntry, 'name'>;

/**
 * The spec with the renames that no `moved` states. An entry without a binding takes over the binding of a key that the
 * spec leaves out: the key that the entry became before a reverted rename, the key that its `moved` became since, or the
 * key of the object that its `id` names.
 */
export function withRenames(
  desired: Desired,
  bindings: ReadonlyMap<ResourceKey, Binding>,
  intents: ReadonlyMap<ResourceKey, Intent> = new Map(),
): Desired {
  const entries: readonly Entry[] = [...desired.resources, ...(desired.expired ?? [])];
  const named = new Set(entries.flatMap(({ key, moved }) => [key, moved]));
  const left = [...bindings.values()].filter(({ key }) => !named.has(key) && retiredFrom(key) === undefined);
  const fresh = entries.filter(({ key, moved }) => moved === undefined && !bindings.has(key));
  const unnamed = new Set(fresh.flatMap(({ key, id }) => (id === undefined ? [key] : [])));
  const became = new Map(
    left.flatMap(({ key, formerKeys = [] }) => {
      const former = formerKeys.findLast((each) => unnamed.has(each));
      return former === undefined ? [] : [[former, key] as const];
    }),
  );
  const given = new Set(became.values());
  const becameSince = (from: ResourceKey) => {
    const [one, another] = left.filter(
      ({ key, formerKeys = [] }) => formerKeys.includes(from) && !given.has(key),
    );
    return another === undefined ? one : undefined;
  };
  const isStanding = (key: ResourceKey) => bindings.has(key) || intents.has(key);
  const isById = ({ id, parent, held, managed = true }: Entry) =>
    managed && id !== undefined && parent === undefined && held === undefined;
  const movedNow = (entry: Entry) => {
    const { key, kind, id, name, moved } = entry;
    if (moved !== undefined) {
      if (isStanding(key) || isStanding(moved)) return undefined;
      const since = becameSince(moved);
      return since !== undefined && (id ?? since.id) === since.id ? since.key : undefined;
    }
    if (bindings.has(key)) return undefined;
    const isIts = (its: Binding) =>
      isById(entry) ? its.id === id : name !== undefined && its.identity.name === name;
    const its = left.find((each) => each.kind === kind && isIts(each));
    return its?.key ?? (isById(entry) ? undefined : became.get(key));
  };
  const isInferred = (each: Entry) => each.moved === undefined && !isById(each);
  const renamed = <Each extends Entry>(each: Each): Each => {
    const moved = movedNow(each);
    return moved === undefined ? each : { ...each, moved };
  };
  const resources = desired.resources.map((each) => {
    const now = renamed(each);
    return now.moved !== undefined && isInferred(each) ? { ...now, isInferred: true as const } : now;
  });
  // An entry that has expired asks for a deletion, so it has to state the resource. One with a name protects the resource.
  const expired = desired.expired?.map((each) =>
    isInferred(each) && each.name === undefined ? each : renamed(each),
  );
  return { ...desired, resources, ...(expired && { expired }) };
}

/** The renames of the spec that the state has not recorded: the new key of each bound one. */
export function renamesOf(
  desired: Desired,
  bindings: ReadonlyMap<ResourceKey, Binding>,
): ReadonlyMap<ResourceKey, ResourceKey> {
  return new Map(
    withRenames(desired, bindings).resources.flatMap(({ key, moved }) =>
      moved !== undefined && bindings.has(moved) && !bindings.has(key) ? [[moved, key] as const] : [],
    ),
  );
}

/** The keys, and those of the servers that they are inside. */
function standingKeys(keys: readonly ResourceKey[]): ReadonlySet<ResourceKey> {
  return new Set(keys.flatMap((key) => [key, takeApart(key).parent ?? key]));
}

function inFlight({ from, to }: Move, intents: ReadonlyMap<ResourceKey, Intent>): WaitingMove[] {
  const [there, back] = [new Map([[from, to]]), new Map([[to, from]])];
  const open = [...intents.values()].filter(
    ({ key }) => renamedKey(key, there) !== key || renamedKey(key, back) !== key,
  );
  return waitingFor(open, { from, to });
}

/** A move that waits for the open writes of its keys. */
export function waitingFor(open: readonly Intent[], { from, to }: Move): WaitingMove[] {
  const [first] = open;
  if (first === undefined) return [];
  const reason = `${first.key} has an open write (${first.verb}), so ${from} cannot become ${to} yet`;
  const remedies = first.phase === 'blocked' ? settleFirst(first.key) : [command('apply')];
  const blocked = { key: to, verb: 'update', code: 'moved_in_flight', reason, remedies } as const;
  return [{ blocked, keys: new Set(entriesOf({ from, to })), waitsFor: open.map(({ key }) => key) }];
}

function ontoBound({ from, to }: Move): WaitingMove {
  const before = takeApart(from).parent ?? from;
  const after = takeApart(to).parent ?? to;
  const reason = `${from} cannot become ${to}: each of the two keys is bound to a resource`;
  const remedies = [
    command('forget', [from], {
      when: `to keep its resource, no longer managed${factsOf(takeApart(from).kind).bought ? ' and still billed' : ''}`,
    }),
    edit(after, { remove: ['moved'], when: `to give ${before} up` }),
    // In this order, the resource of no entry is without an entry in between.
    edit(before, {
      entry: 'restore',
      when: `to delete the resource of ${to} first, with \`prune: true\` under \`settings\`; then rename again`,
      next: [edit(after, { entry: 'remove' }), command('apply')],
    }),
  ];
  const blocked = { key: to, verb: 'update', code: 'moved_onto_bound', reason, remedies } as const;
  return { blocked, keys: new Set(entriesOf({ from, to })), waitsFor: [] };
}

/**
 * A server that retires follows the key that it had. A resource inside a server gets the new key of the server. A network
 * interface gets the new key of its network too.
 */
function renamedKey(key: ResourceKey, becomes: ReadonlyMap<ResourceKey, ResourceKey>): ResourceKey {
  const parsed = takeApart(key);
  const { kind, parent } = parsed;
  const renamed = (server: ResourceKey) => {
    const before = becomes.has(server) ? server : (retiredFrom(server) ?? server);
    const after = becomes.get(before) ?? before;
    return `${after}${server.slice(before.length)}` as ResourceKey;
  };
  if (parent === undefined) return renamed(key);
  const server = renamed(parent);
  const namesake = namesakeOf(parsed);
  const network = namesake && becomes.get(namesake);
  if (network === undefined) return childKey(server, key.slice(parent.length + 1));
  return childKey(server, `${factsOf(kind).field}.${takeApart(network).name}`);
}

/** The bindings after all moves. */
export function movedBindings(
  bindings: ReadonlyMap<ResourceKey, Binding>,
  moves: readonly Move[],
): Map<ResourceKey, Binding> {
  const moved = new Map(bindings);
  for (const { from, to, orphans, inferred } of moves) {
    const binding = moved.get(from);
    moved.delete(from);
    if (binding === undefined) continue;
    const { formerKeys: before = [], parentId = parentIdOf(to, moved), ...rest } = binding;
    const earlier = earlierKeys(bindings, { from, to }, before);
    const formerKeys = earlier.filter((key) => key !== to);
    moved.set(to, {
      ...rest,
      key: to,
      ...(parentId === undefined ? {} : { parentId }),
      ...(formerKeys.length === 0 ? {} : { formerKeys }),
      ...(orphans && { orphaned: true }),
      ...(inferred && rest.recovered === undefined && { recovered: 'taken' }),
    });
  }
  return moved;
}

/** An address of its own entry becomes that of the server. */
function parentIdOf(key: ResourceKey, bindings: ReadonlyMap<ResourceKey, Binding>): string | undefined {
  const { parent } = takeApart(key);
  return parent && bindings.get(parent)?.id;
}

/** The line of a key stays with the key: a server that retires, or that takes its key back, brings no earlier keys. */
function earlierKeys(
  bindings: ReadonlyMap<ResourceKey, Binding>,
  { from, to }: Move,
  before: readonly ResourceKey[],
): readonly ResourceKey[] {
  if (takeApart(from).parent !== undefined || retiredFrom(to) !== undefined) return [];
  return retiredFrom(from) === undefined ? [...before, from] : (bindings.get(to)?.formerKeys ?? []);
}

/** All moves as one step each: a key that is moved twice has one move. */
export function composed(first: readonly Move[], then: readonly Move[]): Move[] {
  const later = new Map(then.map(({ from, to }) => [from, to]));
  const reached = new Set(first.map(({ to }) => to));
  return [
    ...first.map((move) => ({ ...move, to: later.get(move.to) ?? move.to })),
    ...then.filter(({ from }) => !reached.has(from)),
  ].filter(({ from, to, orphans }) => from !== to || orphans);
}

/** The changes that make the moves durable. They are one transaction, so that an id always has exactly one key. */
export function moveChanges(
  moves: readonly Move[],
  bindings: ReadonlyMap<ResourceKey, Binding>,
): StateChange[] {
  const bound = moves.flatMap(({ from, to }) => {
    const binding = bindings.get(to);
    return binding === undefined ? [] : [{ from, to, binding }];
  });
  return [
    ...bound.map(
      ({ from, to }) => ({ type: 'release', key: from, gone: false, reason: `moved to ${to}` }) as const,
    ),
    ...bound.map(({ binding }) => ({ type: 'bind', binding }) as const),
  ];
}
