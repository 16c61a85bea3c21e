import { lstatSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { StateError, StateHeldError } from '../../src/core/errors.ts';
import type { LockHolder } from '../../src/state/owner-lock.ts';
import { openSqliteState } from '../../src/state/sqlite-driver.ts';
import { newStatePath } from './folders.ts';
import { type OwnerProcess, spawnOwner } from './processes.ts';

const options = { mode: 'write', now: 1_700_000_000_000, lineage: 'test' } as const;

describe('src/state/owner-lock.ts', () => {
  const owners: OwnerProcess[] = [];
  afterEach(async () => {
    for (const owner of owners.splice(0)) await owner.kill();
  });

  async function ownedElsewhere(path: string): Promise<OwnerProcess> {
    const owner = spawnOwner(path, 'hold');
    owners.push(owner);
    await owner.said('ready');
    return owner;
  }

  test("another process's state is refused, naming the process, since when, and what to do", async () => {
    const path = newStatePath();
    const owner = await ownedElsewhere(path);
    const opened = openSqliteState(path, options);
    await expect(opened).rejects.toThrow(StateHeldError);
    await expect(opened).rejects.toThrow(
      new RegExp(`in use by process ${owner.pid} on .+ since 2023-11-14 22:13:20 UTC\\. Wait until`),
    );
  });

  test('kill -9 frees it', async () => {
    const path = newStatePath();
    const owner = await ownedElsewhere(path);
    await owner.kill();
    const state = await openSqliteState(path, options);
    expect((await state.info()).lineage).toBe('child');
    await state.close();
    expect(readdirSync(dirname(path)).sort()).toEqual(['state.db', 'state.db.lock']);
  });

  test('what the name of the owner leads to is not written over', async () => {
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

  test('who waits is told once for whom, and goes on when the other has ended', async () => {
    const path = newStatePath();
    const owner = await ownedElsewhere(path);
    const told: (LockHolder | undefined)[] = [];
    let slept = 0;
    const clock: Clock = {
      now: () => 0,
      monotonic: () => slept,
      async sleep(ms) {
        slept += ms;
        if (slept > 1_000) await owner.end();
      },
    };
    const onWait = (holder: LockHolder | undefined) => void told.push(holder);
    const state = await openSqliteState(path, { ...options, waitMs: 60_000, clock, onWait });
    expect(told).toEqual([{ pid: owner.pid, host: expect.any(String), since: options.now }]);
    await state.close();
  });

  test('who has waited long enough is refused', async () => {
    const path = newStatePath();
    await ownedElsewhere(path);
    let slept = 0;
    const clock: Clock = {
      now: () => 0,
      monotonic: () => slept,
      async sleep(ms) {
        slept += ms;
      },
    };
    await expect(openSqliteState(path, { ...options, waitMs: 1_100, clock })).rejects.toThrow(/in use by/);
    expect(slept).toBe(1_100);
  });

  test('it holds within one process too, and until the close', async () => {
    const path = newStatePath();
    const first = await openSqliteState(path, options);
    await expect(openSqliteState(path, options)).rejects.toThrow(/in use by process/);
    await first.putNote('n', 1);
    await first.close();
    const second = await openSqliteState(path, options);
    expect(await second.note('n')).toBe(1);
    await second.close();
  });

  test('a second writer that got past the lock writes once; the one that is behind is refused', async () => {
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
