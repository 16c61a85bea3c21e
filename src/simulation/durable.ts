import { objectName } from '../core/claims.ts';
import { StateError } from '../core/errors.ts';
import { patched } from '../core/intent.ts';
import type { ResourceKey } from '../core/keys.ts';
import { type OperationId, operationId } from '../core/plan.ts';
import type { Binding, Ended, Intent, IntentPatch, StateChange, StateStore } from '../core/state.ts';
import { ended } from '../state/records.ts';
import type { Crashable } from './crashable.ts';

/** The durable part of a state. The simulation watches the writes and never asks the store. */
export interface Mirror {
  readonly bindings: Map<ResourceKey, Binding>;
  readonly open: Map<ResourceKey, Intent>;
}

/** Called once a change is durable. */
export interface StateWatch {
  began(intent: Intent): void;
  updated(before: Intent, after: Intent): void;
  closed(before: Intent, intent: Intent): void;
  changed(change: StateChange, intent: Intent | undefined): void;
}

/** A disk that can be full: the number of changes that will still fail, and how. */
export interface Disk {
  failing: number;
  durable: boolean;
}

/** The calls that change the resources and operations that a state has recorded. */
export const changing = [
  'claimProject',
  'claimService',
  'change',
  'beginIntent',
  'updateIntent',
  'closeIntent',
] as const;

/** The calls of a state that change it. */
const writing = new Set<string>([...changing, 'putNote']);

/** Notes each write, and each binding that comes without one, as the operation that it is. */
export function noted(
  watch: StateWatch,
  done: Set<OperationId>,
  bindings: ReadonlyMap<ResourceKey, Binding>,
): StateWatch {
  const ids = new Map([...bindings].map(([key, { id }]) => [key, id]));
  return {
    ...watch,
    began(intent) {
      done.add(operationId(intent.verb, intent.key));
      watch.began(intent);
    },
    changed(change, intent) {
      if (change.type === 'bind') {
        const { key, id, parentId } = change.binding;
        // A part without an id of its own, such as a firewall, is noted as compared, and comes with its server.
        if (intent === undefined && ids.get(key) !== id && id !== parentId)
          done.add(operationId('adopt', key));
        ids.set(key, id);
      }
      watch.changed(change, intent);
    },
  };
}

/** Reads the current content of the store. */
export async function mirrorOf(store: StateStore): Promise<Mirror> {
  const bindings = new Map((await store.bindings()).map((each) => [each.key, each]));
  const open = new Map((await store.openIntents()).map((each) => [each.key, each]));
  return { bindings, open };
}

/**
 * The store as one process sees it: each call is a boundary, the disk may fail, and the
 * mirror follows the changes that have become durable.
 */
export function watchedStore(
  store: StateStore,
  { crashable, mirror, watch, disk }: { crashable: Crashable; mirror: Mirror; watch: StateWatch; disk: Disk },
): StateStore {
  function find(id: string): Intent {
    const intent = [...mirror.open.values()].find((each) => each.id === id);
    if (intent === undefined) throw new Error(`no open intent ${id}`);
    return intent;
  }

  function apply(changes: readonly StateChange[], intent?: Intent): void {
    const passes = (before: Binding) =>
      changes.some(
        (each) =>
          each.type === 'bind' &&
          each.binding.key !== before.key &&
          objectName(each.binding) === objectName(before),
      );
    for (const change of changes) {
      if (change.type === 'bind') mirror.bindings.set(change.binding.key, change.binding);
      const before = change.type === 'release' && !change.gone ? mirror.bindings.get(change.key) : undefined;
      // An object that passes to another key is not released.
      if (before === undefined || !passes(before)) watch.changed(change, intent);
      if (change.type === 'release') mirror.bindings.delete(change.key);
    }
  }

  /** The effects of the calls on the mirror, once they are durable. */
  const effects: Readonly<Record<string, (...given: never[]) => void>> = {
    change: (changes: readonly StateChange[]) => apply(changes),
    beginIntent(intent: Intent) {
      mirror.open.set(intent.key, intent);
      watch.began(intent);
    },
    updateIntent(id: string, patch: IntentPatch) {
      const before = find(id);
      const after = patched(before, patch);
      mirror.open.set(after.key, after);
      watch.updated(before, after);
    },
    closeIntent(id: string, how: Ended, changes: readonly StateChange[], at: number) {
      const intent = find(id);
      mirror.open.delete(intent.key);
      watch.closed(intent, ended(intent, how, at));
      apply(changes, intent);
    },
  };

  /** The names of the boundary that a call is. */
  function namesOf(name: string, [given]: readonly unknown[]): readonly string[] {
    const names = [name, ...(writing.has(name) ? ['change'] : [])];
    if (name === 'beginIntent') return [...names, `${name} ${(given as Intent).request.name}`];
    return name === 'closeIntent' ? [...names, `${name} ${find(given as string).request.name}`] : names;
  }

  function call(name: string, given: readonly unknown[], effect: () => Promise<unknown>): Promise<unknown> {
    return crashable.cross(namesOf(name, given), async () => {
      if (crashable.isReplaced) throw new StateError('Another process owns the state now.');
      const fails = writing.has(name) && disk.failing > 0;
      if (fails) disk.failing -= 1;
      if (fails && !disk.durable) throw new StateError('The state cannot be written: the disk is full.');
      const value = await effect();
      effects[name]?.(...(given as never[]));
      if (fails) throw new StateError('The state may not be durable: fsync failed.');
      return value;
    });
  }

  return new Proxy(store, {
    get(target, name: keyof StateStore) {
      if (name === 'isOwned') return () => !crashable.isFenced;
      const member: unknown = target[name];
      if (typeof member !== 'function') return undefined;
      return (...given: readonly unknown[]) => call(name, given, () => member.apply(target, given));
    },
  });
}
