import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openQueue } from '../../src/cli/daemon/fleet.ts';
import { continued, urgencies } from '../../src/daemon/fleet/queue.ts';
import { JobQueue, type WantedJob } from '../../src/state/job-queue.ts';
import { postgresServer } from '../support/postgres.ts';
import { database } from './rig.ts';

const server = postgresServer();
const all = { leastPriority: 0, fullGroups: [] };

interface Data {
  readonly why: string;
}

const wanted = (key: string, more: Partial<WantedJob<Data>> = {}): WantedJob<Data> => ({
  ...{ key, data: { why: 'first' }, priority: 0, group: undefined, afterMs: 0 },
  ...more,
});

async function queueOf(name: string, state?: string) {
  const url = state ?? (await database(server, name));
  const onError = () => {};
  const queue = await JobQueue.open<Data, { of: string }>(url, { instance: name, as: 'replica', onError });
  onTestFinished(() => queue.close());
  return { queue, url };
}

describe('src/state/job-queue.ts', () => {
  test('a key has one job in hand and one that waits, which takes the newest data', async () => {
    const { queue } = await queueOf('keyed');
    expect(await queue.add([wanted('1'), wanted('2', { afterMs: 3_600_000 })])).toEqual([]);
    expect(await queue.add([wanted('1')])).toHaveLength(1);
    const [first] = await queue.take(10, all);
    expect(first).toMatchObject({ key: '1', data: { why: 'first' }, attempt: 0 });
    await queue.put([wanted('1', { data: { why: 'edit' }, priority: 20 })]);
    expect(await queue.take(10, all)).toEqual([]);
    if (first === undefined) throw new Error('nothing was taken');
    await queue.end(first, wanted('1', { afterMs: 3_600_000 }));
    expect(await queue.take(10, all)).toMatchObject([{ key: '1', data: { why: 'edit' }, priority: 20 }]);
    await queue.put([wanted('2', { data: { why: 'edit' } })]);
    expect(await queue.take(10, all)).toMatchObject([{ key: '2', data: { why: 'edit' } }]);
  });

  test('many keys are put at once, those that wait and those that do not', async () => {
    const { queue } = await queueOf('many_keys');
    const keys = Array.from({ length: 50 }, (_, index) => String(index));
    await queue.add(keys.slice(0, 10).map((key) => wanted(key, { afterMs: 3_600_000 })));
    await queue.put(keys.map((key) => wanted(key, { priority: 20 })));
    const taken = await queue.take(100, { leastPriority: 20, fullGroups: [] });
    expect(taken.map(({ key }) => key).sort()).toEqual(keys.toSorted());
  });

  test('a job that waits for an edit keeps its priority when all jobs are asked for', async () => {
    const { queue } = await queueOf('kept_priority');
    await queue.add(['1', '2'].map((key) => wanted(key, { afterMs: 3_600_000 })));
    await queue.put([wanted('2', { priority: 20 })]);
    await queue.put(
      ['1', '2', '3'].map((key) => wanted(key, { priority: 10 })),
      { keepPriority: true },
    );
    const taken = await queue.take(3, all);
    expect(new Map(taken.map(({ key, priority }) => [key, priority]))).toEqual(
      new Map(Object.entries({ 1: 0, 2: 20, 3: 10 })),
    );
  });

  test('a full group waits, and the more urgent jobs come first', async () => {
    const { queue } = await queueOf('groups');
    await queue.add([wanted('1', { group: 'big' }), wanted('2'), wanted('3', { priority: 20 })]);
    const taken = await queue.take(1, { leastPriority: 0, fullGroups: ['big'] });
    expect(taken.map(({ key }) => key)).toEqual(['3']);
    expect((await queue.take(5, { leastPriority: 0, fullGroups: ['big'] })).map(({ key }) => key)).toEqual([
      '2',
    ]);
    expect((await queue.take(5, all)).map(({ key, group }) => [key, group])).toEqual([['1', 'big']]);
  });

  test('a failed job comes again after a back-off, and a job that is not confirmed goes to another process', async () => {
    const { queue, url } = await queueOf('lost');
    const { queue: other } = await queueOf('lost_other', url);
    await queue.add([wanted('1'), wanted('2')]);
    const [one, two] = (await queue.take(2, all)).toSorted((a, b) => Number(a.key) - Number(b.key));
    if (one === undefined || two === undefined) throw new Error('nothing was taken');
    await queue.fail(one, 'it failed');
    const again = await taken(other);
    expect(again).toMatchObject({ key: '1', attempt: 1 });
    const lost = await taken(other, async () => void (await other.confirm([again])));
    expect(lost).toMatchObject({ key: '2', attempt: 1 });
    expect(await queue.confirm([two])).toEqual(new Set());
    expect(await other.confirm([lost])).toEqual(new Set([two.id]));
    await queue.end(two);
    expect(await other.confirm([lost])).toEqual(new Set([two.id]));
  });

  test('a new leader gives a job only to a key that has none, so that a turn in hand can be continued at once', async () => {
    const url = await database(server, 'lost_keys');
    const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
    const queue = await openQueue(url, { name: 'one', log, as: 'replica' });
    onTestFinished(() => queue.close());
    const due = { leastUrgency: 0, fullTenants: [] };
    await queue.ask(['1'], 'fleet', urgencies.time);
    const claim = (await queue.take(9, due)).find(({ key }) => key === '1');
    if (claim === undefined) throw new Error('nothing was taken');
    await queue.add(['1'], 24 * 3_600_000);
    await queue.add(['2'], 0);
    await queue.end(claim, continued(claim));
    const taken = await queue.take(9, due);
    expect(Object.fromEntries(taken.map(({ key, urgency }) => [key, urgency]))).toEqual({
      1: urgencies.begun,
      2: urgencies.time,
    });
  });

  test('a hint is heard until it is done', async () => {
    const { queue } = await queueOf('hints');
    await queue.send({ of: 'source' });
    const [heard] = await queue.hints();
    expect(heard?.hint).toEqual({ of: 'source' });
    await heard?.done();
    expect(await queue.hints()).toEqual([]);
  });
});

async function taken(queue: JobQueue<Data, { of: string }>, meanwhile = async () => {}) {
  for (;;) {
    const [job] = await queue.take(1, all);
    if (job !== undefined) return job;
    await meanwhile();
    await pause(500);
  }
}
