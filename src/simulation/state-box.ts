import type { StateStore } from '../core/state.ts';
import { memoryState } from '../state/sqlite-driver.ts';

/** Where one machine keeps its state. Every process opens the state again. */
export interface StateBox {
  open(now: number): Promise<StateStore>;
  /** When its process has ended, however it ended. */
  release(): Promise<void>;
  remove(): void;
}

/** States outside the process: no simulated time passes while a request to one of them is under way. */
export interface Boxes {
  box(name: string): StateBox;
  isBusy(): boolean;
}

/** In memory: the same store for every process of the machine. */
export function memoryBox(name: string): StateBox {
  let store: StateStore | undefined;
  return {
    async open(createdAt) {
      store ??= memoryState({ createdAt, lineage: name });
      return store;
    },
    release: async () => {},
    remove: () => {},
  };
}
