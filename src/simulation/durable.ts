import { objectName } from '../core/claims.ts';
import { StateError } from '../core/errors.ts';
import { patched } from '../core/intent.ts';
import type { ResourceKey } from '../core/keys.ts';
import { type OperationId, operationId } from '../core/plan.ts';
import type { Binding, Intent, StateChange, StateStore } from '../core/state.ts';
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
export const writing = new Set<string>([...changing, 'putNote']);

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
  function call<Value>(
    name: string,
    effect: () => Promise<Value>,
    durable?: () => void,
    detail?: string,
  ): Promise<Value> {
    const names = [name, ...(writing.has(name) ? ['change'] : []), ...(detail === undefined ? [] : [detail])];
    return crashable.cross(names, async () => {
      if (crashable.isReplaced) throw new StateError('Another process owns the state now.');
      const fails = writing.has(name) && disk.failing > 0;
      if (fails) disk.failing -= 1;
      if (fails && !disk.durable) throw new StateError('The state cannot be written: the disk is full.');
      const value = await effect();
      durable?.();
      if (fails) throw new StateError('The state may not be durable: fsync failed.');
      return value;
    });
  }

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

  return {
    isOwned: () => !crashable.isFenced,
    info: () => call('info', () => store.info()),
    claimProject: (id) => call('claimProject', () => store.claimProject(id)),
    claimService: (service) => call('claimService', () => store.claimService(service)),
    bindings: () => call('bindings', () => store.bindings()),
    claims: () => call('claims', () => store.claims()),
    incarnation: (key) => call('incarnation', () => store.incarnation(key)),
    change: (changes, at) =>
      call(
        'change',
        () => store.change(changes, at),
        () => apply(changes),
      ),
    beginIntent: (intent) =>
      call(
        'beginIntent',
        () => store.beginIntent(intent),
        () => {
          mirror.open.set(intent.key, intent);
          watch.began(intent);
        },
        `beginIntent ${intent.request.name}`,
      ),
    updateIntent: (id, patch, at, note) =>
      call(
        'updateIntent',
        () => store.updateIntent(id, patch, at, note),
        () => {
          const before = find(id);
          const after = patched(before, patch);
          mirror.open.set(after.key, after);
          watch.updated(before, after);
        },
      ),
    closeIntent: (id, how, changes, at) =>
      call(
        'closeIntent',
        () => store.closeIntent(id, how, changes, at),
        () => {
          const intent = find(id);
          mirror.open.delete(intent.key);
          watch.closed(intent, ended(intent, how, at));
          apply(changes, intent);
        },
        `closeIntent ${find(id).request.name}`,
      ),
    openIntents: () => call('openIntents', () => store.openIntents()),
    lastAttempt: (key, verb, incarnation) =>
      call('lastAttempt', () => store.lastAttempt(key, verb, incarnation)),
    intents: (filter) => call('intents', () => store.intents(filter)),
    journal: (filter) => call('journal', () => store.journal(filter)),
    prune: (before) => call('prune', () => store.prune(before)),
    note: (name) => call('note', () => store.note(name)),
    putNote: (name, value) => call('putNote', () => store.putNote(name, value)),
    close: () => call('close', () => store.close()),
  };
}
