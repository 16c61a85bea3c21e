import { lstatSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { StateError } from '../../src/core/errors.ts';
import { openSqliteState } from '../../src/state/sqlite-driver.ts';
import { ownerConformance } from '../conformance/owner.ts';
import { newStatePath } from './folders.ts';

const options = { mode: 'write', now: 1_700_000_000_000, lineage: 'test' } as const;

describe('src/state/owner-lock.ts', () => {
  ownerConformance({ newLocation: newStatePath, open: openSqliteState });

  test('does not overwrite the target of a link with the name of the owner file', async () => {
    const path = newStatePath();
    const other = join(dirname(path), 'other');
    writeFileSync(other, 'kept');
    for (const name of [`${path}.owner`, `${path}.owner.next`]) symlinkSync(other, name);
    const state = await openSqliteState(path, options);
    expect(readFileSync(other, 'utf8')).toBe('kept');
    expect(lstatSync(`${path}.owner`).isFile()).toBe(true);
    expect(JSON.parse(readFileSync(`${path}.owner`, 'utf8'))).toMatchObject({ pid: process.pid });
    await state.close();
    expect(readdirSync(dirname(path)).sort()).toEqual(['other', 'state.db', 'state.db.lock']);
  });

  test('if two writers pass the lock, the first write succeeds and the other writer is refused', async () => {
    const path = newStatePath();
    const first = await openSqliteState(path, options);
    rmSync(`${path}.lock`);
    const second = await openSqliteState(path, options);
    await second.putNote('n', 'second');
    await expect(first.putNote('n', 'first')).rejects.toThrow(/Another process has changed/);
    await expect(first.claimProject(1)).rejects.toThrow(StateError);
    expect(await second.note('n')).toBe('second');
    await first.close();
    await second.close();
  });
});
