import type { StateStore } from '../core/state.ts';
import { memoryState } from '../state/memory.ts';
import { createRecorder } from './recorder.ts';

/** Where one machine keeps its state. Every process opens the state again; all faults of a disk can occur. */
export interface StateBox {
  open(now: number): Promise<StateStore>;
  /** When its process has ended, however it ended. */
  release(): Promise<void>;
  lose(): void;
  /** Puts back the copy of that many runs ago; `false` where there is none. */
  restore(back: number): boolean;
  /** Number of durable changes so far, without the notes of requests. */
  readonly changes: number;
  /** Puts it back as it was that many durable changes ago, or when it was new. */
  cut(back: number): Promise<void>;
  remove(): void;
}

/** States outside the process: no simulated time passes while a request to one of them is under way. */
export interface Boxes {
  box(name: string): StateBox;
  isBusy(): boolean;
}

/** In memory: the same store for every process of the machine. */
export function memoryBox(name: string): StateBox {
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
      recorder.clear();
    },
    restore: () => false,
    get changes() {
      return recorder.length;
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
