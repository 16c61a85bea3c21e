import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openSqliteState } from '../../src/state/sqlite-driver.ts';
import { folderWith } from '../cli/run.ts';

const options = { mode: 'write', now: 1, lineage: 'test' } as const;
const secret = 'a file of another program: it keeps its bytes\n'.repeat(200);
/** The names next to a state that vdcsync, SQLite or a crash makes. */
const names = [
  ...['state.db', 'state.db.lock', 'state.db-wal', 'state.db-shm', 'state.db-journal'],
  ...['state.db.new', 'state.db.new-journal', 'state.db.new-wal', 'state.db.owner', 'state.db.owner.next'],
  ...['state.db.lock-journal', 'state.db.lock-wal'],
];

/** Opens, writes and closes. A refusal is as good: the other file must stay unchanged. */
async function used(path: string): Promise<string> {
  try {
    const store = await openSqliteState(path, options);
    await store.putNote('n', 1);
    await store.close();
    return 'used';
  } catch (error) {
    expect(error).toMatchObject({ name: 'StateError' });
    return String(error);
  }
}

describe('src/state/sqlite-driver.ts: a folder into which another user writes', () => {
  for (const fresh of [true, false])
    test.each(
      names,
    )(`%s is a link: its target keeps its bytes, ${fresh ? 'without' : 'with'} a state`, async (name) => {
      for (const link of [symlinkSync, linkSync]) {
        const folder = folderWith({ 'victim.txt': secret });
        const state = join(folder, 'volume', 'state.db');
        mkdirSync(join(folder, 'volume'));
        if (!fresh) await used(state);
        rmSync(join(folder, 'volume', name), { force: true });
        link(join(folder, 'victim.txt'), join(folder, 'volume', name));
        const how = await used(state);
        expect([link.name, how, readFileSync(join(folder, 'victim.txt'), 'utf8') === secret]).toEqual([
          link.name,
          how,
          true,
        ]);
      }
    });

  test.each(names)('%s is a link to a missing file: does not create the file', async (name) => {
    const folder = folderWith();
    mkdirSync(join(folder, 'volume'));
    symlinkSync(join(folder, 'made'), join(folder, 'volume', name));
    await used(join(folder, 'volume', 'state.db'));
    expect(existsSync(join(folder, 'made'))).toBe(false);
  });
});
