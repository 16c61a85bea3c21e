import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { pruneHistory } from '../../src/daemon/project/reconciliation.ts';
import { memoryState } from '../../src/state/sqlite-driver.ts';
import { sampleIntent, web } from '../conformance/state-samples.ts';

const day = 24 * 3_600_000;

describe('src/daemon/project/reconciliation.ts', () => {
  test('deletes history older than its retention, once a day', async () => {
    const store = memoryState({ createdAt: 0, lineage: 'born' });
    let now = 100 * day;
    const session = { store, clock: { now: () => now } as Clock };
    let id = 0;
    const end = async (at: number) => {
      id += 1;
      await store.beginIntent(sampleIntent(String(id), web, { verb: 'update', attempt: id, createdAt: at }));
      await store.closeIntent(String(id), { outcome: 'done', text: '' }, [], at);
    };
    for (const at of [1, 2, 95, 96]) await end(at * day);
    const left = async () => (await store.intents({ limit: 9 })).map((each) => each.id);
    await pruneHistory(session, 90 * day);
    expect(await left()).toEqual(['4', '3']);
    now += 90 * day;
    await pruneHistory(session, 90 * day);
    expect(await left()).toEqual(['4']);
    await end(now - 95 * day);
    now += day - 1;
    const { serial } = await store.info();
    await pruneHistory(session, 90 * day);
    expect((await store.info()).serial).toBe(serial);
    now += 1;
    await pruneHistory(session, 90 * day);
    expect(await left()).toEqual(['5']);
  });
});
