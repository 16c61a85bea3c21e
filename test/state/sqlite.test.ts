import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { openSqliteState } from '../../src/state/sqlite-driver.ts';
import { migrate, migrations } from '../../src/state/sqlite-file.ts';
import { sampleIntent, web } from '../conformance/state-samples.ts';
import { newStatePath, snapshot } from './folders.ts';
import { ownedElsewhere } from './processes.ts';

const write = { mode: 'write', now: 1, lineage: 'test' } as const;
const read = { mode: 'read', now: 2, lineage: 'nobody' } as const;

describe('src/state/sqlite-driver.ts', () => {
  test('writing creates the folder and files with access for this user only', async () => {
    const path = join(dirname(newStatePath()), 'a', 'b', 'state.db');
    const state = await openSqliteState(path, write);
    await state.putNote('n', 1);
    const modeOf = (file: string) => statSync(file).mode & 0o777;
    expect(modeOf(dirname(path))).toBe(0o700);
    expect(modeOf(dirname(dirname(path)))).toBe(0o700);
    for (const name of readdirSync(dirname(path))) expect(modeOf(join(dirname(path), name))).toBe(0o600);
    await state.close();
    expect(readdirSync(dirname(path)).sort()).toEqual(['state.db', 'state.db.lock']);
  });

  test('an existing folder keeps its permissions', async () => {
    const path = newStatePath();
    chmodSync(dirname(path), 0o755);
    await (await openSqliteState(path, write)).close();
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o755);
  });

  test('an interrupted creation starts again', async () => {
    const path = newStatePath();
    writeFileSync(`${path}.new`, 'half');
    const state = await openSqliteState(path, write);
    expect((await state.info()).lineage).toBe('test');
    await state.close();
    expect(readdirSync(dirname(path))).not.toContain('state.db.new');
  });

  test('two names of one file share one lock', async () => {
    const path = newStatePath();
    await (await openSqliteState(path, write)).close();
    const other = join(dirname(path), 'other.db');
    symlinkSync(path, other);
    const state = await openSqliteState(path, write);
    await expect(openSqliteState(other, write)).rejects.toThrow(/in use by process/);
    await state.close();
  });

  test('a missing state is read as empty, and nothing is created', async () => {
    const path = join(dirname(newStatePath()), 'none', 'state.db');
    const state = await openSqliteState(path, read);
    expect(await state.info()).toEqual({
      lineage: 'nobody',
      serial: 0,
      createdAt: 2,
      projectId: null,
      service: null,
    });
    await expect(state.putNote('n', 1)).rejects.toThrow(/reading only/);
    await state.close();
    expect(readdirSync(dirname(dirname(path)))).toEqual([]);
  });

  test('reading a closed state changes neither the folder nor a byte, while open and after', async () => {
    const path = newStatePath();
    const state = await openSqliteState(path, write);
    await state.beginIntent(sampleIntent('a', web));
    await state.close();
    const before = snapshot(dirname(path));
    const reader = await openSqliteState(path, read);
    expect(await reader.openIntents()).toEqual([sampleIntent('a', web)]);
    expect(snapshot(dirname(path))).toEqual(before);
    await reader.close();
    expect(snapshot(dirname(path))).toEqual(before);
  });

  test('reading next to a writer in another process shows its writes and leaves no extra file', async () => {
    const path = newStatePath();
    const owner = await ownedElsewhere(path, 'write');
    await owner.said('3');
    const reader = await openSqliteState(path, read);
    expect((await reader.bindings()).length).toBeGreaterThanOrEqual(3);
    const { serial } = await reader.info();
    await owner.said(String(serial + 5));
    expect((await reader.info()).serial).toBeGreaterThan(serial);
    await owner.end();
    expect(owner.lines()).toContain('closed');
    expect((await reader.info()).serial).toBeGreaterThan(serial);
    expect(readdirSync(dirname(path)).sort()).toEqual(['state.db', 'state.db.lock']);
    await reader.close();
  });

  test('reading continues when a writer starts, writes and ends in between', async () => {
    const path = newStatePath();
    await (await openSqliteState(path, write)).close();
    const reader = await openSqliteState(path, read);
    expect(await reader.note('n')).toBeUndefined();
    const state = await openSqliteState(path, write);
    await state.putNote('n', 1);
    expect(await reader.note('n')).toBe(1);
    await state.putNote('n', 2);
    await state.close();
    expect(await reader.note('n')).toBe(2);
    expect(readdirSync(dirname(path)).sort()).toEqual(['state.db', 'state.db.lock']);
    await reader.close();
  });

  test('reading after a killed writer shows every acknowledged write', async () => {
    const path = newStatePath();
    const owner = await ownedElsewhere(path, 'write');
    await owner.said('5');
    await owner.kill();
    const { 'state.db-shm': _, ...before } = snapshot(dirname(path));
    const reader = await openSqliteState(path, read);
    expect((await reader.bindings()).length).toBeGreaterThanOrEqual(5);
    await reader.close();
    const { 'state.db-shm': __, ...after } = snapshot(dirname(path));
    expect(after).toEqual(before);
  });
});

describe('src/state/sqlite-file.ts', () => {
  const further = "ALTER TABLE states ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'";

  test('migrations update an older state and keep its records', async () => {
    const path = newStatePath();
    const state = await openSqliteState(path, write);
    await state.putNote('n', 1);
    await state.close();
    const db = new DatabaseSync(path);
    migrate(db, path, [...migrations, further]);
    expect(db.prepare('PRAGMA user_version').get()).toMatchObject({ user_version: 2 });
    expect(db.prepare('SELECT lineage, colour FROM states').get()).toMatchObject({
      lineage: 'test',
      colour: 'red',
    });
    db.close();
  });

  test('a failed migration leaves the previous version and schema', () => {
    const path = newStatePath();
    mkdirSync(dirname(path), { recursive: true });
    const db = new DatabaseSync(path);
    migrate(db, path);
    const failing = `${further}; SELECT * FROM no_such_table`;
    expect(() => migrate(db, path, [...migrations, failing])).toThrow(/could not be brought to version 2/);
    expect(db.prepare('PRAGMA user_version').get()).toMatchObject({ user_version: 1 });
    expect(() => db.prepare('SELECT colour FROM states')).toThrow();
    db.close();
  });
});
