import type { Desired } from '../core/desired.ts';
import { ConfigError } from '../core/errors.ts';
import { childKey, type ResourceKey, takeApart, topLevelKey } from '../core/keys.ts';
import type { Binding, Intent, StateChange } from '../core/state.ts';

/** A binding that goes by another key from now on. */
export interface Move {
  readonly from: ResourceKey;
  readonly to: ResourceKey;
}

/**
 * The bindings that the file has renamed, with what lives in them. A key that is bound
 * already was moved before, and stays as it is.
 *
 * @throws ConfigError where a write under the key before is not settled: it could not be
 *   found again under another one.
 */
export function movesOf(
  desired: Desired,
  bindings: ReadonlyMap<ResourceKey, Binding>,
  intents: ReadonlyMap<ResourceKey, Intent>,
): readonly Move[] {
  const renamed = desired.resources.flatMap(({ key, moved }) =>
    moved === undefined || bindings.has(key) || !bindings.has(moved) ? [] : [{ from: moved, to: key }],
  );
  const becomes = new Map(renamed.map(({ from, to }) => [from, to]));
  const moves = [...bindings.keys()].flatMap((from) => {
    const to = renamedKey(from, becomes);
    return to === from ? [] : [{ from, to }];
  });
  const open = moves.find(({ from }) => intents.has(from));
  if (open === undefined) return moves;
  throw new ConfigError(
    `${open.from} has an unsettled ${intents.get(open.from)?.verb}, so it cannot become ${open.to} yet: apply the file with ${open.from} first.`,
  );
}

/** What is inside a server goes by that; a card by its network as well. */
function renamedKey(key: ResourceKey, becomes: ReadonlyMap<ResourceKey, ResourceKey>): ResourceKey {
  const { kind, parent, name } = takeApart(key);
  if (parent === undefined) return becomes.get(key) ?? key;
  const server = becomes.get(parent) ?? parent;
  const network = kind === 'network_interface' ? becomes.get(topLevelKey('networks', name)) : undefined;
  if (network === undefined) return childKey(server, key.slice(parent.length + 1));
  return childKey(server, `network_interfaces.${takeApart(network).name}`);
}

/** The bindings as they are once everything has moved. */
export function movedBindings(
  bindings: ReadonlyMap<ResourceKey, Binding>,
  moves: readonly Move[],
): Map<ResourceKey, Binding> {
  const moved = new Map(bindings);
  for (const { from, to } of moves) {
    const binding = moved.get(from);
    moved.delete(from);
    if (binding !== undefined) moved.set(to, { ...binding, key: to });
  }
  return moved;
}

/** What makes the moves durable: in one transaction, so that no id ever has two keys, or none. */
export function moveChanges(
  moves: readonly Move[],
  bindings: ReadonlyMap<ResourceKey, Binding>,
): StateChange[] {
  return moves.flatMap(({ from, to }): StateChange[] => {
    const binding = bindings.get(to);
    if (binding === undefined) return [];
    return [
      { type: 'release', key: from, gone: false, reason: `moved to ${to}` },
      { type: 'bind', binding },
    ];
  });
}
