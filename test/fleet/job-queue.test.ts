import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { continued, sourceKey, urgencies } from '../../src/core/fleet.ts';
import { systemRandom } from '../../src/platform/system.ts';
import { JobQueue } from '../../src/state/job-queue.ts';
import { postgresServer } from '../support/postgres.ts';
import { database } from './rig.ts';

const server = postgresServer();
const all = { leastUrgency: 0, fullTenants: [] };
const hourMs = 3_600_000;

/** The lead is in hand, so that the other jobs are those of projects. */
async function queueOf(name: string, more: { url?: string; tenants?: Record<string, number[]> } = {}) {
  const { url = await database(server, name), tenants = {} } = more;
  const queue = await JobQueue.open(url, {
    ...{ instance: name, as: 'replica', tenants, random: systemRandom, onError: () => {} },
  });
  onTestFinished(() => queue.close());
  const lead = await queue.take(1, { ...all, leastUrgency: urgencies.lead });
  expect(lead.map(({ key }) => key)).toEqual(more.url === undefined ? [sourceKey] : []);
  return { queue, url };
}

/** The keys have jobs that are due in an hour. */
async function later(queue: JobQueue, keys: readonly string[]): Promise<void> {
  await queue.ask(keys, 'start', urgencies.time);
  for (const claim of await queue.take(keys.length, all))
    await queue.end(claim, { trigger: 'timer', urgency: urgencies.time, afterMs: hourMs });
}

describe('src/state/job-queue.ts', () => {
  test('a key has one running job and one waiting job, which takes the newest data', async () => {
    const { queue } = await queueOf('keyed');
    await later(queue, ['2']);
    await queue.ask(['1'], 'start', urgencies.time);
    await queue.ask(['1'], 'timer', urgencies.time);
    const [first, another] = await queue.take(10, all);
    expect(first).toMatchObject({ key: '1', trigger: 'timer', attempt: 0 });
    expect(another).toBeUndefined();
    await queue.ask(['1'], 'file', urgencies.edit);
    expect(await queue.take(10, all)).toEqual([]);
    if (first === undefined) throw new Error('nothing was taken');
    await queue.end(first, { trigger: 'timer', urgency: urgencies.time, afterMs: hourMs });
    expect(await queue.take(10, all)).toMatchObject([{ key: '1', trigger: 'file', urgency: urgencies.edit }]);
    await queue.ask(['2'], 'file', urgencies.edit);
    expect(await queue.take(10, all)).toMatchObject([{ key: '2', trigger: 'file' }]);
  });

  test('requests jobs for many keys at once, with and without a waiting job', async () => {
    const { queue } = await queueOf('many_keys');
    const keys = Array.from({ length: 50 }, (_, index) => String(index));
    await later(queue, keys.slice(0, 10));
    await queue.ask(keys, 'file', urgencies.edit);
    const taken = await queue.take(100, { leastUrgency: urgencies.edit, fullTenants: [] });
    expect(taken.map(({ key }) => key).sort()).toEqual(keys.toSorted());
  });

  test('a job that waits for an edit keeps its urgency when all jobs are requested', async () => {
    const { queue } = await queueOf('kept_priority');
    await later(queue, ['1', '2']);
    await queue.ask(['2'], 'file', urgencies.edit);
    await queue.ask(['1', '2', '3'], 'signal', urgencies.all);
    const taken = await queue.take(3, all);
    expect(new Map(taken.map(({ key, urgency }) => [key, urgency]))).toEqual(
      new Map(Object.entries({ 1: urgencies.time, 2: urgencies.edit, 3: urgencies.all })),
    );
  });

  test('jobs of a full tenant wait, and more urgent jobs come first', async () => {
    const { queue } = await queueOf('groups', { tenants: { big: [1] } });
    await queue.ask(['1', '2'], 'timer', urgencies.time);
    await queue.ask(['3'], 'file', urgencies.edit);
    const taken = await queue.take(1, { leastUrgency: 0, fullTenants: ['big'] });
    expect(taken.map(({ key }) => key)).toEqual(['3']);
    const others = await queue.take(5, { leastUrgency: 0, fullTenants: ['big'] });
    expect(others.map(({ key }) => key)).toEqual(['2']);
    expect((await queue.take(5, all)).map(({ key, tenant }) => [key, tenant])).toEqual([['1', 'big']]);
  });

  test('a failed job returns after a back-off, and an unconfirmed job goes to another process', async () => {
    const { queue, url } = await queueOf('lost');
    const { queue: other } = await queueOf('lost_other', { url });
    await queue.ask(['1', '2'], 'timer', urgencies.time);
    const [one, two] = (await queue.take(2, all)).toSorted((a, b) => Number(a.key) - Number(b.key));
    if (one === undefined || two === undefined) throw new Error('nothing was taken');
    await queue.fail(one, 'it failed');
    const again = await taken(other);
    expect(again).toMatchObject({ key: '1', attempt: 1 });
    const lost = await taken(other, async () => void (await other.confirm([again])));
    expect(lost).toMatchObject({ key: '2', attempt: 1 });
    expect(await queue.confirm([two])).toEqual(new Set());
    expect(await other.confirm([lost])).toEqual(new Set([two.id]));
    await queue.end(two, undefined);
    expect(await other.confirm([lost])).toEqual(new Set([two.id]));
  });

  test('a new leader adds a job only for a key without a job, so that a running turn can continue at once', async () => {
    const { queue } = await queueOf('lost_keys');
    await queue.ask(['1'], 'fleet', urgencies.time);
    const [claim] = await queue.take(9, all);
    if (claim === undefined) throw new Error('nothing was taken');
    await queue.add(['1'], 24 * hourMs);
    await queue.add(['2'], 0);
    await queue.end(claim, continued(claim));
    const taken = await queue.take(9, all);
    expect(Object.fromEntries(taken.map(({ key, urgency }) => [key, urgency]))).toEqual({
      1: urgencies.begun,
      2: urgencies.time,
    });
  });

  test('a hint stays in the queue until its completion', async () => {
    const { queue } = await queueOf('hints');
    await queue.send({ of: 'source', trigger: 'webhook' });
    const [heard] = await queue.hints();
    expect(heard?.hint).toEqual({ of: 'source', trigger: 'webhook' });
    await heard?.done();
    expect(await queue.hints()).toEqual([]);
  });
});

/** The next job of a project: the lead, which nobody confirms, is also given again. */
async function taken(queue: JobQueue, meanwhile = async () => {}) {
  for (;;) {
    const job = (await queue.take(2, all)).find(({ key }) => key !== sourceKey);
    if (job !== undefined) return job;
    await meanwhile();
    await pause(500);
  }
}
