import type { StateStore } from '../../src/core/state.ts';
import type { Controller } from '../../src/simulation/controller.ts';
import { changing } from '../../src/simulation/durable.ts';
import type { Boxes, StateBox } from '../../src/simulation/state-box.ts';
import { memoryState } from '../../src/state/sqlite-driver.ts';

/** A state to which all faults of a disk can occur. */
export interface MachineBox extends StateBox {
  lose(): void;
  /** Puts back the copy of that many runs ago; `false` where there is none. */
  restore(back: number): boolean;
  /** Number of durable changes so far, without the notes of requests. */
  readonly changes: number;
  /** Puts it back as it was that many durable changes ago, or when it was new. */
  cut(back: number): Promise<void>;
}

export interface MachineBoxes extends Boxes {
  box(name: string): MachineBox;
}

/** The state of a machine in a story that `play` has begun. */
export function boxOf({ box }: Pick<Controller, 'box'>): MachineBox {
  return box as MachineBox;
}

/** In memory: the same store for every process of the machine. */
export function memoryBox(name: string): MachineBox {
  const recorder = createRecorder();
  let generation = 0;
  let store: StateStore | undefined;
  const born = (createdAt: number) => memoryState({ createdAt, lineage: `${name}-${generation}` });
  return {
    async open(now) {
      store ??= recorder.record(born(now));
      return store;
    },
    release: async () => {},
    lose() {
      store = undefined;
      generation += 1;
      recorder.reset();
    },
    restore: () => false,
    get changes() {
      return recorder.changes.length;
    },
    async cut(back) {
      if (store === undefined) return;
      const earlier = born((await store.info()).createdAt);
      await recorder.cut(back, earlier);
      store = recorder.record(earlier);
    },
    remove: () => {},
  };
}

export type Change = (store: StateStore) => Promise<void>;

/** The changes of a state that identify resources. Notes of requests are kept separately. */
const identifying = new Set<PropertyKey>([...changing, 'putNote']);

/** All durable changes of a state, in order: any number of them, made again, are the state as it was then. */
interface Recorder {
  readonly changes: readonly Change[];
  /** The same store, with each change noted once it is durable. */
  record(store: StateStore): StateStore;
  /** Forgets the last `back` changes, and makes the others again in a new store. */
  cut(back: number, store: StateStore): Promise<void>;
  /** The state is a new one, or an earlier one with these changes. */
  reset(changes?: readonly Change[]): void;
}

export function createRecorder(): Recorder {
  let changes: readonly Change[] = [];
  return {
    get changes() {
      return changes;
    },
    record: (store) =>
      new Proxy(store, {
        get(target, name) {
          const method = Reflect.get(target, name);
          if (!identifying.has(name)) return typeof method === 'function' ? method.bind(target) : method;
          return async (...given: unknown[]) => {
            await method.apply(target, given);
            if (String(given[0]).startsWith('used:')) return;
            changes = [...changes, (other) => Reflect.get(other, name).apply(other, given)];
          };
        },
      }),
    async cut(back, store) {
      changes = changes.slice(0, Math.max(0, changes.length - back));
      for (const change of changes) await change(store);
    },
    reset(earlier = []) {
      changes = earlier;
    },
  };
}
