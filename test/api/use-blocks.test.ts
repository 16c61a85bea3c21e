import { describe, expect, test } from 'vitest';
import { inBlocks } from '../../src/api/use-blocks.ts';
import { memoryState } from '../../src/state/memory.ts';

const since = 0;

describe('src/api/use-blocks.ts', () => {
  test('eight reads are one record, made before the first of them is sent', async () => {
    const store = memoryState({ createdAt: 0, lineage: 'a' });
    const memory = inBlocks(store);
    const counts: number[] = [];
    for (let at = 1_000; at < 1_009; at += 1) {
      await memory.recordUse('t:reads', at, since);
      counts.push((await store.recentUse('t:reads', since)).length);
    }
    expect(counts).toEqual([8, 8, 8, 8, 8, 8, 8, 8, 16]);
    expect((await store.info()).serial).toBe(2);
  });

  test('no read is recorded earlier than it may be sent: a later one begins another block', async () => {
    const store = memoryState({ createdAt: 0, lineage: 'a' });
    const memory = inBlocks(store);
    const sent = [1_000, 3_900, 4_100, 9_000, 2_000];
    for (const at of sent) await memory.recordUse('t:reads', at, since);
    const recorded = await store.recentUse('t:reads', since);
    for (const at of sent)
      expect(recorded.filter((each) => each >= at).length).toBeGreaterThanOrEqual(
        sent.filter((each) => each >= at).length,
      );
    expect(recorded).toHaveLength(4 * 8);
  });

  test('each write is a record, and so is each budget', async () => {
    const store = memoryState({ createdAt: 0, lineage: 'a' });
    const memory = inBlocks(store);
    for (const bucket of ['t:writes', 't:writes', 'u:reads', 't:reads'])
      await memory.recordUse(bucket, 5, since);
    expect(await store.recentUse('t:writes', since)).toEqual([5, 5]);
    expect((await store.info()).serial).toBe(4);
  });

  test('a record that fails is made again by the next read', async () => {
    const store = memoryState({ createdAt: 0, lineage: 'a' });
    let failures = 1;
    const memory = inBlocks({
      recentUse: (...args) => store.recentUse(...args),
      note: (...args) => store.note(...args),
      putNote: (...args) => store.putNote(...args),
      recordUse: async (...args) => {
        failures -= 1;
        if (failures >= 0) throw new Error('disk full');
        await store.recordUse(...args);
      },
    });
    await expect(memory.recordUse('t:reads', 1, since)).rejects.toThrow('disk full');
    await memory.recordUse('t:reads', 2, since);
    expect(await store.recentUse('t:reads', since)).toHaveLength(8);
  });
});
