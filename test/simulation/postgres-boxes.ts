import type { StateStore } from '../../src/core/state.ts';
import { openPostgresState } from '../../src/state/postgres.ts';
import { createRecorder, type MachineBox, type MachineBoxes } from './machine-box.ts';

/** States of one story in a real PostgreSQL database. Each state that follows a lost one has another name. */
export class PostgresBoxes implements MachineBoxes {
  readonly #url: string;
  readonly #prefix: string;
  #underWay = 0;
  #states = 0;

  /** @param prefix of the names of the states in the database */
  constructor(url: string, prefix: string) {
    this.#url = url;
    this.#prefix = prefix;
  }

  isBusy(): boolean {
    return this.#underWay > 0;
  }

  box(name: string): MachineBox {
    const recorder = createRecorder();
    let place = this.#next(name);
    let createdAt: number | undefined;
    let store: StateStore | undefined;
    const open = (now: number) =>
      this.#counted(async () =>
        this.#watched(await openPostgresState(place, { mode: 'write', now, lineage: place })),
      );
    return {
      open: async (now) => {
        createdAt ??= now;
        store = recorder.record(await open(now));
        return store;
      },
      release: async () => {
        await store?.close();
        store = undefined;
      },
      lose: () => {
        place = this.#next(name);
        createdAt = undefined;
        recorder.reset();
      },
      // A database has no copy of each run.
      restore: () => false,
      get changes() {
        return recorder.changes.length;
      },
      cut: async (back) => {
        if (createdAt === undefined) return;
        place = this.#next(name);
        const earlier = await open(createdAt);
        await recorder.cut(back, earlier);
        await earlier.close();
      },
      remove: () => {},
    };
  }

  #next(name: string): string {
    this.#states += 1;
    return `${this.#url}?state=${this.#prefix}-${name}-${this.#states}`;
  }

  #watched(store: StateStore): StateStore {
    return new Proxy(store, {
      get: (target, name) => {
        const value = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...given: unknown[]) => {
          const result = Reflect.apply(value, target, given);
          return result instanceof Promise ? this.#counted(() => result) : result;
        };
      },
    });
  }

  async #counted<Value>(work: () => Promise<Value>): Promise<Value> {
    this.#underWay += 1;
    try {
      return await work();
    } finally {
      this.#underWay -= 1;
    }
  }
}
