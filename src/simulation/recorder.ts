import type { StateStore } from '../core/state.ts';
import { changing } from './durable.ts';

type Change = (store: StateStore) => Promise<void>;

/** The changes of a state that identify resources. Notes of requests are kept separately. */
const identifying = new Set<PropertyKey>([...changing, 'putNote']);

/** All durable changes of a state, in order: any number of them, made again, are the state as it was then. */
export interface Recorder {
  readonly length: number;
  /** The same store, with each change noted once it is durable. */
  record(store: StateStore): StateStore;
  /** Forgets the last `back` changes, and makes the others again in a new store. */
  cut(back: number, store: StateStore): Promise<void>;
  /** Keeps the first `length` changes. */
  clear(length?: number): void;
}

export function createRecorder(): Recorder {
  let changes: Change[] = [];
  return {
    get length() {
      return changes.length;
    },
    record: (store) =>
      new Proxy(store, {
        get(target, name) {
          const method = Reflect.get(target, name);
          if (!identifying.has(name)) return method?.bind(target);
          return async (...given: unknown[]) => {
            await method.apply(target, given);
            changes.push((other) => Reflect.get(other, name).apply(other, given));
          };
        },
      }),
    async cut(back, store) {
      changes = changes.slice(0, Math.max(0, changes.length - back));
      for (const change of changes) await change(store);
    },
    clear(length = 0) {
      changes = changes.slice(0, length);
    },
  };
}
