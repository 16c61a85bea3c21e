import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StateStore } from '../core/state.ts';
import { memoryState } from '../state/memory.ts';
import { openState } from '../state/open.ts';

/** Where one machine keeps its state: opened anew by every process, and all that can befall a disk. */
export interface StateBox {
  open(now: number): Promise<StateStore>;
  /** When its process has ended, however it ended. */
  release(): Promise<void>;
  lose(): void;
  /** Puts back the copy of that many runs ago; `false` where there is none. */
  restore(back: number): boolean;
  remove(): void;
}

/** In memory: the same store for every process of the machine. */
export function memoryBox(name: string): StateBox {
  let generation = 0;
  let store: StateStore | undefined;
  return {
    async open(now) {
      store ??= memoryState({ createdAt: now, lineage: `${name}-${generation}` });
      return store;
    },
    release: async () => {},
    lose() {
      store = undefined;
      generation += 1;
    },
    restore: () => false,
    remove: () => {},
  };
}

/** Memory that has the manners of a disk, where the machine has it. */
const fastFolders = ['/dev/shm', tmpdir()];
const mostCopies = 4;

/** In a real SQLite file, of which a copy is kept before each run. */
export function sqliteBox(name: string): StateBox {
  const folder = mkdtempSync(join(fastFolders.find(existsSync) ?? tmpdir(), 'vdcsync-simulation-'));
  const file = join(folder, `${name}.db`);
  const files = (path: string) => ['', '-wal', '-shm', '.lock', '.owner'].map((suffix) => `${path}${suffix}`);
  let generation = 0;
  let copies = 0;
  let store: StateStore | undefined;
  return {
    async open(now) {
      if (existsSync(file)) copyFileSync(file, `${file}.${copies++ % mostCopies}`);
      store = await openState(file, { mode: 'write', now, lineage: `${name}-${generation}` });
      return store;
    },
    async release() {
      await store?.close();
      store = undefined;
    },
    lose() {
      for (const each of files(file)) rmSync(each, { force: true });
      generation += 1;
    },
    restore(back) {
      if (copies === 0) return false;
      const place = (copies - 1 - Math.min(back, copies - 1, mostCopies - 1)) % mostCopies;
      for (const each of files(file)) rmSync(each, { force: true });
      copyFileSync(`${file}.${place}`, file);
      return true;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
