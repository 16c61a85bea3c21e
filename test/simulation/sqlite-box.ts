import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StateStore } from '../../src/core/state.ts';
import { openSqliteState } from '../../src/state/sqlite-driver.ts';
import { type Change, createRecorder, type MachineBox } from './machine-box.ts';

/** Memory that has the manners of a disk, where the machine has it. */
const fastFolders = ['/dev/shm', tmpdir()];
const mostCopies = 4;

/** In a real SQLite file, of which a copy is kept before each run. */
export function sqliteBox(name: string): MachineBox {
  const folder = mkdtempSync(join(fastFolders.find(existsSync) ?? tmpdir(), 'vdcsync-simulation-'));
  const file = join(folder, `${name}.db`);
  const files = (path: string) => ['', '-wal', '-shm', '.lock', '.owner'].map((suffix) => `${path}${suffix}`);
  const recorder = createRecorder();
  const kept: (readonly Change[])[] = [];
  let generation = 0;
  let copies = 0;
  let store: StateStore | undefined;
  const openFile = (now: number) =>
    openSqliteState(file, { mode: 'write', now, lineage: `${name}-${generation}` });
  const erase = () => {
    for (const each of files(file)) rmSync(each, { force: true });
  };
  return {
    async open(now) {
      if (existsSync(file)) {
        kept[copies % mostCopies] = recorder.changes;
        copyFileSync(file, `${file}.${copies++ % mostCopies}`);
      }
      store = recorder.record(await openFile(now));
      return store;
    },
    async release() {
      await store?.close();
      store = undefined;
    },
    lose() {
      erase();
      generation += 1;
      recorder.reset();
    },
    restore(back) {
      if (copies === 0) return false;
      const place = (copies - 1 - Math.min(back, copies - 1, mostCopies - 1)) % mostCopies;
      erase();
      copyFileSync(`${file}.${place}`, file);
      recorder.reset(kept[place]);
      return true;
    },
    get changes() {
      return recorder.changes.length;
    },
    async cut(back) {
      if (!existsSync(file)) return;
      const whole = await openFile(0);
      const { createdAt } = await whole.info();
      await whole.close();
      erase();
      const earlier = await openFile(createdAt);
      await recorder.cut(back, earlier);
      await earlier.close();
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
