import { type Claim, heldKeysOf, isHeldClaim, objectName } from '../../core/claims.ts';
import type { Desired } from '../../core/desired.ts';
import { patched } from '../../core/intent.ts';
import { type ResourceKey, retiredFrom, takeApart } from '../../core/keys.ts';
import { factsOf, isAddress } from '../../core/kind-facts.ts';
import type { Plan } from '../../core/plan.ts';
import type { Binding, Intent, StateChange } from '../../core/state.ts';
import type { EngineDeps } from '../deps.ts';
import type { ReadCache } from '../observe.ts';
import type { Move, Run, RunMemory, RunMoves, RunState, WaitingMove } from '../run.ts';
import { Lines } from './line.ts';
import { composed, moveChanges, movedBindings, movesOf } from './moves.ts';
import { leftoverChanges } from './release.ts';

interface StateOptions {
  readonly deps: Pick<EngineDeps, 'store' | 'clock' | 'kinds'>;
  /** The spec with its renames. */
  readonly asked: Desired;
  /** The part of it that the run carries out. */
  readonly desired: Desired;
  readonly cache: ReadCache;
  /** The loaded bindings, under the keys that the spec has renamed them to. */
  readonly bindings: Map<ResourceKey, Binding>;
  readonly claims: Map<string, Claim>;
  /** Claims that decide nothing in this run. They end once their object is bound. */
  readonly uncounted: Map<string, Claim>;
  readonly intents: Map<ResourceKey, Intent>;
  readonly moves: readonly Move[];
  readonly waitingMoves: readonly WaitingMove[];
  /** The binding with the flags of the spec. */
  readonly flaggedBy: (binding: Binding) => Binding;
  /** Called with each key whose binding has changed. */
  readonly onChange: (key: ResourceKey) => void;
}

/**
 * The bindings, claims, open intents and renames of a run. They follow each durable change without another read of the
 * state.
 */
export function createRunState(options: StateOptions): Omit<RunMemory, 'view' | 'world'> {
  const { asked, desired, cache, bindings, claims, intents, flaggedBy, onChange } = options;
  const { store, clock, kinds } = options.deps;
  const moves = [...options.moves];
  const waiting = [...options.waitingMoves];

  let lines: Lines | undefined;
  const linesNow = () => {
    lines ??= new Lines({ desired, bindings, claims: claims.values(), intents: intents.values() });
    return lines;
  };
  const whole = (changes: readonly StateChange[], deletion?: Intent) => {
    const known = { bindings, claims };
    const all = { bindings, claims: new Map([...options.uncounted, ...claims]) };
    return transferred([...changes, ...leftoverChanges(known, clock.now(), changes, deletion)], all);
  };

  /** Updates the loaded state from the changes. Reading the stored state back would cost a read of the whole state. */
  function follow(changes: readonly StateChange[]): void {
    lines = undefined;
    for (const change of changes) {
      if (change.type === 'claim') claims.set(objectName(change.claim), change.claim);
      if (change.type === 'unclaim')
        for (const each of [claims, options.uncounted]) each.delete(objectName(change.object));
      if (change.type !== 'bind' && change.type !== 'release') continue;
      const key = change.type === 'bind' ? change.binding.key : change.key;
      if (change.type === 'bind') bindings.set(key, flaggedBy(change.binding));
      else bindings.delete(key);
      onChange(key);
    }
  }

  /** The store still has a renamed binding under its earlier key, until the moves are kept. */
  function stored(changes: readonly StateChange[]): StateChange[] {
    return changes.flatMap((each): StateChange[] => {
      if (each.type !== 'bind' && each.type !== 'release') return [each];
      const key = each.type === 'bind' ? each.binding.key : each.key;
      const at = moves.findIndex(({ to }) => to === key);
      const [move] = at < 0 ? [] : moves.splice(at, 1);
      if (move === undefined) return [each];
      if (each.type === 'release') return [{ ...each, key: move.from }];
      return [...withNext({ type: 'release', key: move.from, gone: false, reason: `moved to ${key}` }), each];
    });
  }

  let changed: Promise<void> = Promise.resolve();
  function change(asked: readonly StateChange[] | (() => readonly StateChange[])): Promise<void> {
    const made = changed.then(async () => {
      const changes = whole(typeof asked === 'function' ? asked() : asked);
      await store.change(stored(changes), clock.now());
      follow(changes);
    });
    changed = made.catch(() => undefined);
    return made;
  }

  const state: RunState = {
    change,
    async begin(intent) {
      await store.beginIntent(intent);
      lines = undefined;
      intents.set(intent.key, intent);
    },
    async update(intent, patch) {
      await store.updateIntent(intent.id, patch, clock.now());
      const next = patched(intents.get(intent.key) ?? intent, patch);
      intents.set(intent.key, next);
      return next;
    },
    async close(intent, ended, asked) {
      const changes = whole(asked, intent);
      await store.closeIntent(intent.id, ended, stored(changes), clock.now());
      // The resources that used the deleted resource were read during its task, so they are read again.
      if (intent.verb === 'delete') cache.forget(kinds.get(intent.kind)?.writes.stale(intent.request) ?? {});
      intents.delete(intent.key);
      follow(changes);
    },
  };

  const moving: RunMoves = {
    all: moves,
    waiting,
    renew(next = movesOf(asked, bindings, intents)) {
      const moved = movedBindings(bindings, next.moves);
      lines = undefined;
      bindings.clear();
      for (const [key, binding] of moved) bindings.set(key, binding);
      moves.splice(0, moves.length, ...composed(moves, next.moves));
      waiting.splice(0, waiting.length, ...next.waiting);
    },
    free(ended) {
      for (const each of ended) if (each.type === 'release') bindings.delete(each.key);
      moving.renew();
    },
    async keep() {
      const changes = moveChanges(moves.splice(0), bindings);
      if (changes.length > 0) await change(changes);
    },
  };

  return { bindings, claims, intents, state, moves: moving, lines: linesNow };
}

/**
 * The changes in the form that a store takes. A bound object has no claim any more, and neither has an address that
 * was claimed with a bound server. If the object of a claim is bound after the changes, only the binding counts.
 */
function transferred(
  changes: readonly StateChange[],
  { bindings, claims }: Pick<RunMemory, 'bindings' | 'claims'>,
): StateChange[] {
  const names = new Map<ResourceKey, string>();
  for (const each of changes) {
    if (each.type === 'bind') names.set(each.binding.key, objectName(each.binding));
    if (each.type === 'release') names.delete(each.key);
  }
  const bound = new Set(names.values());
  return changes.flatMap((change): StateChange[] => {
    if (change.type === 'claim') return bound.has(objectName(change.claim)) ? [] : [change];
    if (change.type === 'unclaim') {
      const { holder } = claims.get(objectName(change.object)) ?? {};
      return holder?.is === 'found' ? [change, { type: 'next_incarnation', key: holder.key }] : [change];
    }
    if (change.type === 'release' && change.gone) {
      // The object is gone under each of its keys: the next one has another idempotency key.
      const earlier = bindings.get(change.key)?.formerKeys ?? [];
      const free = earlier.filter((key) => !bindings.has(key));
      return [change, ...free.map((key) => ({ type: 'next_incarnation', key }) as const)];
    }
    if (change.type === 'release') return withNext(change);
    if (change.type !== 'bind') return [change];
    const { key, kind, id } = change.binding;
    const ended = [...claims.values()].filter(
      (claim) =>
        objectName(claim) === objectName(change.binding) ||
        (factsOf(kind).container && isAddress(claim.kind) && claim.parentId === id),
    );
    // The key that was answered with the object may be the right one, and a key that it had before may return.
    const others = ended
      .filter(isHeldClaim)
      .filter((each) => each.kind === kind)
      .flatMap((each) => [...heldKeysOf(each), ...(each.holder.formerKeys ?? [])])
      .filter((each) => each !== key);
    const before = bindings.get(key)?.formerKeys ?? [];
    const formerKeys = [...new Set([...before, ...(change.binding.formerKeys ?? []), ...others])];
    const binding = formerKeys.length === 0 ? change.binding : { ...change.binding, formerKeys };
    const reason = `bound to ${key}`;
    return [...ended.map((object) => ({ type: 'unclaim', object, reason }) as const), { ...change, binding }];
  });
}

/** A resource that stays has used the idempotency key, so that the next resource of the key has another one. */
function withNext(change: Extract<StateChange, { readonly type: 'release' }>): StateChange[] {
  const { key } = change;
  const isTop = takeApart(key).parent === undefined && retiredFrom(key) === undefined;
  return isTop ? [change, { type: 'next_incarnation', key }] : [change];
}

/** The operator has approved a plan that shows the recovered resources. */
export async function confirmRecovered(run: Run, { warnings }: Plan): Promise<void> {
  const shown = new Set(warnings.flatMap(({ code, key }) => (code === 'recovered_unconfirmed' ? [key] : [])));
  const found = [...run.bindings.values()].filter((each) => each.recovered && shown.has(each.key));
  if (!run.mode.attended || found.length === 0) return;
  await run.state.change(confirmed(found));
}

/** The changes that confirm the recovered resources among the bound ones. */
export function confirmed(bindings: readonly Binding[]): StateChange[] {
  return bindings.flatMap(({ recovered, ...binding }): StateChange[] =>
    recovered === undefined ? [] : [{ type: 'bind', binding }],
  );
}
