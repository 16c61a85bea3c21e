import { describe, expect, test } from 'vitest';
import { UseRecord } from '../../src/api/token-record.ts';
import { virtualClock } from '../support/virtual-clock.ts';
import { memory } from './support.ts';

function record({ inBlocks = true, clock = virtualClock(), memo = memory() } = {}) {
  const options = { bucket: 't', clock, memory: memo, rememberMs: 60_000, inBlocks };
  return { record: new UseRecord(options), memo, clock };
}

describe('src/api/token-record.ts', () => {
  test('stores one note for a block of eight requests before sending the first request', async () => {
    const { record: uses, memo } = record();
    const counts: number[] = [];
    for (let at = 1_000; at < 1_009; at += 1) {
      await uses.add(at);
      counts.push(memo.uses.length);
    }
    expect(counts).toEqual([8, 8, 8, 8, 8, 8, 8, 8, 16]);
  });

  test('records no request earlier than it may be sent: a later request begins another block', async () => {
    const { record: uses, memo } = record();
    const sent = [1_000, 3_900, 4_100, 9_000, 2_000];
    for (const at of sent) await uses.add(at);
    const recorded = memo.uses.map(({ at }) => at);
    for (const at of sent)
      expect(recorded.filter((each) => each >= at).length).toBeGreaterThanOrEqual(
        sent.filter((each) => each >= at).length,
      );
    expect(recorded).toHaveLength(4 * 8);
  });

  test('without blocks, records each request, and drops a request that no longer counts', async () => {
    const { record: uses, memo, clock } = record({ inBlocks: false });
    await uses.add(clock.now());
    await uses.add(clock.now());
    expect(memo.uses).toHaveLength(2);
    await clock.advance(60_001);
    await uses.add(clock.now());
    expect(memo.uses).toHaveLength(1);
  });

  test('stores one record for requests that begin at the same moment', async () => {
    const { record: uses, memo } = record({ inBlocks: false });
    const { putNote } = memo;
    let records = 0;
    memo.putNote = (...args) => {
      records += 1;
      return putNote(...args);
    };
    await Promise.all([uses.add(1), uses.add(1), uses.add(1)]);
    expect(records).toBe(1);
    expect(memo.uses).toHaveLength(3);
  });

  test('keeps every request when the wall clock jumps', async () => {
    const { record: uses, memo, clock } = record({ inBlocks: false });
    await uses.add(clock.now());
    clock.jump(25 * 3_600_000);
    await uses.add(clock.now());
    clock.jump(-25 * 3_600_000);
    await uses.add(clock.now());
    expect(memo.uses).toHaveLength(3);
  });

  test('keeps the requests of the previous process in the note while they count', async () => {
    const { record: before, memo, clock } = record({ inBlocks: false });
    await before.add(clock.now());
    const { record: uses } = record({ inBlocks: false, clock, memo });
    expect(await uses.load(1_000)).toEqual({ uses: [clock.now()], closedMs: 0 });
    await uses.add(clock.now());
    expect(memo.uses).toHaveLength(2);
    await clock.advance(60_001);
    await uses.add(clock.now());
    expect(memo.uses).toHaveLength(1);
  });

  test('the next request retries a note that could not be stored', async () => {
    const memo = memory();
    const { putNote } = memo;
    let failures = 1;
    memo.putNote = async (...args) => {
      failures -= 1;
      if (failures >= 0) throw new Error('disk full');
      await putNote(...args);
    };
    const { record: uses } = record({ memo });
    await expect(uses.add(1)).rejects.toThrow('disk full');
    await uses.add(2);
    expect(memo.uses).toHaveLength(16);
  });
});
