import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { StateError } from '../../src/core/errors.ts';
import { parsePostgresUrl } from '../../src/state/postgres-url.ts';
import { openSqliteState } from '../../src/state/sqlite-driver.ts';
import { sampleIntent, web } from '../conformance/state-samples.ts';
import { newStatePath, snapshot } from './folders.ts';

const options = { now: 1, lineage: 'test' } as const;

/** Both ways of opening refuse it, and nothing of the folder changes but for the lock file of a writer. */
async function expectRefused(path: string, message: RegExp): Promise<void> {
  const { 'state.db.lock': _, ...before } = snapshot(dirname(path));
  for (const mode of ['read', 'write'] as const) {
    const opened = openSqliteState(path, { ...options, mode });
    await expect(opened).rejects.toThrow(StateError);
    await expect(opened).rejects.toThrow(message);
    await expect(opened).rejects.toThrow(path);
    const { 'state.db.lock': __, ...after } = snapshot(dirname(path));
    expect(after).toEqual(before);
  }
}

function sql(path: string, text: string): void {
  const db = new DatabaseSync(path);
  db.exec(text);
  db.close();
}

async function filledState(): Promise<string> {
  const path = newStatePath();
  const state = await openSqliteState(path, { ...options, mode: 'write' });
  for (let count = 0; count < 40; count += 1) {
    const id = `i${count}`;
    await state.beginIntent(sampleIntent(id, web, { preimage: { backups: ['x'.repeat(2_000)] } }));
    await state.closeIntent(id, { outcome: 'done', text: '' }, [], 5);
  }
  await state.close();
  return path;
}

describe('src/state/sqlite-driver.ts: refuses and leaves as it is', () => {
  test('a file that is no database', async () => {
    const path = newStatePath();
    writeFileSync(path, 'version: 1\nproject: { id: 4711 }\n'.repeat(200));
    await expectRefused(path, /not a SQLite database/);
    expect(readdirSync(dirname(path))).toEqual(['state.db']);
  });

  test('an empty file', async () => {
    const path = newStatePath();
    writeFileSync(path, '');
    await expectRefused(path, /is empty, so it cannot be the state/);
  });

  test('a place where no folder can be made, without trying for ever', async () => {
    await expect(
      openSqliteState('/proc/nope/state.db', { mode: 'write', now: 0, lineage: 'a' }),
    ).rejects.toThrow('The state /proc/nope/state.db could not be created, nor its folder /proc/nope');
  });

  test('a folder', async () => {
    const path = newStatePath();
    mkdirSync(path);
    await expect(openSqliteState(path, { ...options, mode: 'write' })).rejects.toThrow(/is not a file/);
    await expect(openSqliteState(path, { ...options, mode: 'read' })).rejects.toThrow(/is not a file/);
  });

  test("another program's database, in either journal mode", async () => {
    for (const mode of ['delete', 'wal']) {
      const path = newStatePath();
      sql(path, `PRAGMA journal_mode = ${mode}; CREATE TABLE states (a); INSERT INTO states VALUES (1)`);
      await expectRefused(path, /is the database of another program/);
    }
  });

  test('a state of a later release', async () => {
    const path = await filledState();
    sql(path, 'PRAGMA user_version = 99');
    await expectRefused(path, /has version 99; this vdcsync knows versions up to 1\. It was not touched/);
  });

  test('a state with damaged pages', async () => {
    const path = await filledState();
    const bytes = readFileSync(path);
    bytes.fill(0x5a, 8_192, bytes.length - 4_096);
    writeFileSync(path, bytes);
    await expectRefused(path, /damaged/);
  });

  test('a state that was cut off', async () => {
    const path = await filledState();
    truncateSync(path, 20_480);
    await expectRefused(path, /damaged/);
  });

  test('a state that has lost its first row', async () => {
    const path = await filledState();
    sql(path, 'PRAGMA foreign_keys = OFF; DELETE FROM states');
    await expectRefused(path, /its header is missing/);
  });

  test('a journal whose state is missing', async () => {
    const path = newStatePath();
    writeFileSync(`${path}-wal`, 'left over');
    await expectRefused(path, /is missing, but .*-wal holds changes/);
  });

  test('a URL of another database, without repeating its password', () => {
    const parse = () => parsePostgresUrl('mysql://me:secret@db/state');
    expect(parse).toThrow(/a path or a postgres:\/\/ URL/);
    expect(parse).not.toThrow(/secret/);
  });
});
