import { existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
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

function damagePages(path: string): void {
  const bytes = readFileSync(path);
  bytes.fill(0x5a, 8_192, bytes.length - 4_096);
  writeFileSync(path, bytes);
}

describe('src/state/sqlite-driver.ts: refuses without changing', () => {
  test.each<[string, (path: string) => void, RegExp]>([
    [
      'a file that is not a database',
      (path) => writeFileSync(path, 'version: 1\nproject: { id: 4711 }\n'.repeat(200)),
      /not a SQLite database/,
    ],
    ['an empty file', (path) => writeFileSync(path, ''), /is empty, so it cannot be the state/],
    ...['delete', 'wal'].map((mode): [string, (path: string) => void, RegExp] => [
      `another program's database in journal mode ${mode}`,
      (path) =>
        sql(path, `PRAGMA journal_mode = ${mode}; CREATE TABLE states (a); INSERT INTO states VALUES (1)`),
      /is the database of another program/,
    ]),
    [
      'a journal whose state is missing',
      (path) => writeFileSync(`${path}-wal`, 'left over'),
      /is missing, but .*-wal holds changes/,
    ],
  ])('%s', async (_what, make, message) => {
    const path = newStatePath();
    make(path);
    await expectRefused(path, message);
    expect(existsSync(`${path}.lock`)).toBe(false);
  });

  test.each(['read', 'write'] as const)('a folder as the state, in mode %s', async (mode) => {
    const path = newStatePath();
    mkdirSync(path);
    await expect(openSqliteState(path, { ...options, mode })).rejects.toThrow(/is not a file/);
  });

  test.each<[string, (path: string) => void, RegExp]>([
    [
      'of a later version',
      (path) => sql(path, 'PRAGMA user_version = 99'),
      /has version 99; this vdcsync knows versions up to 1\. It was not touched/,
    ],
    ['with damaged pages', damagePages, /damaged/],
    ['that is truncated', (path) => truncateSync(path, 20_480), /damaged/],
    [
      'without its first row',
      (path) => sql(path, 'PRAGMA foreign_keys = OFF; DELETE FROM states'),
      /its header is missing/,
    ],
  ])('a state %s', async (_what, damage, message) => {
    const path = await filledState();
    damage(path);
    await expectRefused(path, message);
  });

  test('a path where no folder can be created, without endless retries', async () => {
    const opened = openSqliteState('/proc/nope/state.db', { ...options, mode: 'write' });
    await expect(opened).rejects.toThrow(
      'The state /proc/nope/state.db could not be created, nor its folder /proc/nope',
    );
  });

  test('a URL of another database, without printing its password', () => {
    const parse = () => parsePostgresUrl('mysql://me:secret@db/state');
    expect(parse).toThrow(/a path or a postgres:\/\/ URL/);
    expect(parse).not.toThrow(/secret/);
  });
});
