import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { StateInUseError } from '../../src/core/errors.ts';
import type { StateStore } from '../../src/core/state.ts';
import type { LockHolder } from '../../src/state/owner-lock.ts';
import type { openSqliteState } from '../../src/state/sqlite-driver.ts';
import { ownedElsewhere } from '../state/processes.ts';
import { expectReplayed } from './state-checks.ts';

type OwnerOptions = Parameters<typeof openSqliteState>[1];

export interface OwnerHarness {
  /** The location of a state that does not exist yet. */
  newLocation(): string;
  open(location: string, options: OwnerOptions): Promise<StateStore>;
}

const write = { mode: 'write', now: 1_700_000_000_000, lineage: 'test' } as const;

/** A state has one owner, which keeps what it has acknowledged. */
export function ownerConformance({ newLocation, open }: OwnerHarness): void {
  async function opened(location: string, options: OwnerOptions = write): Promise<StateStore> {
    const store = await open(location, options);
    onTestFinished(() => store.close());
    return store;
  }

  /** Opens what another process has just lost: a server notices the end of the connection a moment later. */
  const openedAfter = (location: string) =>
    opened(location, { ...write, waitMs: 10_000, clock: quickClock(() => pause(50)) });

  test('refuses a state that another process owns, and names the process, the time and the next step', async () => {
    const location = newLocation();
    const owner = await ownedElsewhere(location);
    const refused = open(location, write);
    await expect(refused).rejects.toThrow(StateInUseError);
    await expect(refused).rejects.toThrow(
      new RegExp(`in use by process ${owner.pid} on .+ since 2023-11-14 22:13:20 UTC\\. Wait until`),
    );
    await expect(refused).rejects.not.toThrow(/canary/);
  });

  test('`kill -9` of the owner releases the state', async () => {
    const location = newLocation();
    const owner = await ownedElsewhere(location);
    await owner.kill();
    expect((await (await openedAfter(location)).info()).lineage).toBe('child');
  });

  test('a waiting process gets the name of the owner once, and continues when the owner has ended', async () => {
    const location = newLocation();
    const owner = await ownedElsewhere(location);
    const told: (LockHolder | undefined)[] = [];
    const clock = quickClock(async (slept) => slept > 1_000 && owner.end());
    await opened(location, { ...write, waitMs: 60_000, clock, onWait: (holder) => void told.push(holder) });
    expect(told).toEqual([{ pid: owner.pid, host: expect.any(String), since: write.now }]);
  });

  test('refuses a process that has waited for the maximum time', async () => {
    const location = newLocation();
    await ownedElsewhere(location);
    let waited = 0;
    const clock = quickClock(async (slept) => {
      waited = slept;
    });
    await expect(open(location, { ...write, waitMs: 1_100, clock })).rejects.toThrow(/in use by/);
    expect(waited).toBe(1_100);
  });

  test('the lock also works within one process, until the close, and for that state alone', async () => {
    const location = newLocation();
    const first = await opened(location);
    await expect(open(location, write)).rejects.toThrow(/in use by process/);
    await opened(newLocation());
    await first.putNote('n', 1);
    await first.close();
    expect(await (await opened(location)).note('n')).toBe(1);
  });

  test('`kill -9` during writing keeps every acknowledged change complete', async () => {
    for (const lifeMs of [0, 20, 50, 90]) {
      const location = newLocation();
      const owner = await ownedElsewhere(location, 'write');
      await owner.said('1');
      await pause(lifeMs);
      await owner.kill();
      const acknowledged = owner.lines().length - 1;

      const store = await openedAfter(location);
      // One more change may have become durable before the process said so.
      expect([acknowledged, acknowledged + 1]).toContain((await store.bindings()).length);
      expect((await store.openIntents()).length).toBeLessThanOrEqual(1);
      await expectReplayed(store);
    }
  });
}

/** A clock for which a wait takes no time; `passed` gets the time so far. */
export function quickClock(passed: (ms: number) => Promise<unknown>): Clock {
  let slept = 0;
  return {
    now: () => 0,
    monotonic: () => slept,
    async sleep(ms) {
      slept += ms;
      await passed(slept);
    },
  };
}
