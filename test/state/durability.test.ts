import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { SqlStore } from '../../src/state/sql-store.ts';
import { openSqliteState, SqliteWriter } from '../../src/state/sqlite-driver.ts';
import { sampleIntent, web } from '../conformance/state-samples.ts';
import { newStatePath } from './folders.ts';

const options = { mode: 'write', now: 1, lineage: 'test' } as const;

describe('src/state/sqlite-driver.ts: durability', () => {
  test('a full disk rejects the change and keeps the records; writing continues once there is space', async () => {
    const path = newStatePath();
    const state = await openSqliteState(path, options);
    await state.close();
    const db = new DatabaseSync(path);
    const store = new SqlStore(new SqliteWriter(db, { path }));
    const pages = (limit: number) => db.exec(`PRAGMA max_page_count = ${limit}`);
    pages(1);
    const large = sampleIntent('a', web, { preimage: { backups: ['x'.repeat(100_000)] } });
    await expect(store.beginIntent(large)).rejects.toThrow(/the disk is full/);
    expect(await store.openIntents()).toEqual([]);
    expect(await store.journal({ limit: 9 })).toEqual([]);
    expect((await store.info()).serial).toBe(0);
    pages(1_000_000);
    await store.beginIntent(large);
    expect(await store.openIntents()).toEqual([large]);
    await store.close();
  });

  test('a state that is deleted or replaced while in use rejects further changes', async () => {
    const path = newStatePath();
    const state = await openSqliteState(path, options);
    await state.putNote('n', 1);
    renameSync(path, `${path}.away`);
    await expect(state.putNote('n', 2)).rejects.toThrow(/was deleted while it was in use/);
    copyFileSync(`${path}.away`, path);
    await expect(state.putNote('n', 2)).rejects.toThrow(/was replaced while it was in use/);
    rmSync(path);
    renameSync(`${path}.away`, path);
    await state.putNote('n', 3);
    await state.close();
  });
});
