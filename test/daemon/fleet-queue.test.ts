import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openBossQueue } from '../../src/daemon/fleet/boss-queue.ts';
import type { PassQueue } from '../../src/daemon/fleet/pass-queue.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import { postgresServer } from '../support/postgres.ts';
import { until } from './support.ts';

const server = postgresServer();
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

async function sql(text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(server.url());
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

async function queueNamed(name: string): Promise<PassQueue> {
  const connectionString = server.url();
  const queue = await openBossQueue({ connectionString, name, clock: systemClock, log: quiet });
  onTestFinished(() => queue.close(1_000));
  return queue;
}

/** Notes what is worked on; a pass lasts as long as `pass` says. */
async function worker(queue: PassQueue, pass: (project: number) => Promise<void> = async () => {}) {
  const begun: string[] = [];
  await queue.work({
    atOnce: 4,
    mayTake: () => true,
    onAsked: (project, trigger) => void begun.push(`${project} ${trigger} beside`),
    pass: async (project, trigger) => {
      begun.push(`${project} ${trigger}`);
      await pass(project);
      return undefined;
    },
  });
  return begun;
}

describe('daemon: the queue of passes', () => {
  beforeAll(async () => {
    // The tables are made once.
    const queue = await openBossQueue({
      ...{ connectionString: server.url(), name: 'first', clock: systemClock, log: quiet },
    });
    await queue.close(1_000);
  });

  test('a project waits once, for the soonest moment that was named', async () => {
    const queue = await queueNamed('soonest');
    await queue.ask([1], { trigger: 'timer', afterMs: 3_600_000 });
    await queue.ask([1], { trigger: 'webhook', afterMs: 0 });
    await queue.ask([1], { trigger: 'git', afterMs: 0 });
    await queue.ask([1], { trigger: 'timer', afterMs: 3_600_000 });
    const begun = await worker(queue);
    await until(
      async () => begun.length,
      (count) => count > 0,
      'it comes up',
    );
    await pause(2_000);
    expect(begun).toEqual(['1 webhook']);
  });

  test('two workers never have one project, and one that is busy holds no other up', async () => {
    const [a, b] = [await queueNamed('keys'), await queueNamed('keys')];
    let [now, most] = [0, 0];
    const busy = async (project: number) => {
      if (project !== 1) return;
      now += 1;
      most = Math.max(most, now);
      await pause(1_500);
      now -= 1;
    };
    const begun = [await worker(a, busy), await worker(b, busy)];
    await a.ask([1], { trigger: 'start', afterMs: 0 });
    await until(
      async () => now,
      (count) => count === 1,
      'it is worked on',
    );
    await b.ask([1], { trigger: 'git', afterMs: 0 });
    await b.ask([2], { trigger: 'git', afterMs: 0 });
    await until(
      async () => begun.flat(),
      (all) => all.includes('2 git') && all.includes('1 git'),
      'both come up',
    );
    expect(most).toBe(1);
    expect(begun.flat().indexOf('2 git')).toBeGreaterThan(-1);
  });

  test('who works on a project takes what waits for it along', async () => {
    const queue = await queueNamed('along');
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    await queue.ask([1], { trigger: 'start', afterMs: 0 });
    const begun = await worker(queue, (project) => (project === 1 ? ended : Promise.resolve()));
    const seen = (count: number, what: string) =>
      until(
        async () => begun,
        (all) => all.length === count,
        what,
      );
    await seen(1, 'it is worked on');
    await queue.ask([1], { trigger: 'timer', afterMs: 3_600_000 });
    await queue.ask([2], { trigger: 'git', afterMs: 0 });
    await seen(2, 'the other comes up');
    await queue.ask([1], { trigger: 'webhook', afterMs: 0 });
    await seen(3, 'it is asked beside');
    end();
    await pause(2_500);
    expect(begun).toEqual(['1 start', '2 git', '1 webhook beside']);
  });

  test('many are reminded and asked in one statement each, and edits go before timers', async () => {
    const queue = await queueNamed('many');
    const all = Array.from({ length: 2_000 }, (_, index) => index + 1);
    const startedAt = performance.now();
    await queue.remind(all.map((project) => ({ project, afterMs: 3_600_000 })));
    await queue.remind(all.map((project) => ({ project, afterMs: 0 })));
    await queue.ask(all.slice(0, 50), { trigger: 'timer', afterMs: 0 });
    await queue.ask([1_999], { trigger: 'git', afterMs: 0 });
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    const begun = await worker(queue);
    await until(
      async () => begun.length,
      (count) => count >= 51,
      'what is due is worked on',
    );
    // Of one look, in any order.
    expect(begun.slice(0, 4)).toContain('1999 git');
    // Places are taken as they come free, and not once a second.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    const left = await sql(
      "SELECT state, count(*)::int AS jobs FROM vdcsync_jobs.job WHERE name = 'passes.many' GROUP BY state",
    );
    expect(left).toEqual([{ state: 'created', jobs: 2_000 - 51 }]);
  });

  test('a pass names when the project wants the next one, and nothing is left of a job that is done', async () => {
    const queue = await queueNamed('next');
    let passes = 0;
    await queue.work({
      atOnce: 1,
      mayTake: () => true,
      onAsked: () => {},
      pass: async () => {
        passes += 1;
        return { trigger: 'timer', afterMs: passes === 1 ? 100 : 3_600_000 };
      },
    });
    await queue.ask([1], { trigger: 'start', afterMs: 0 });
    await until(
      async () => passes,
      (count) => count === 2,
      'the next one comes',
    );
    await queue.close(2_000);
    const left = await sql("SELECT state FROM vdcsync_jobs.job WHERE name = 'passes.next'");
    expect(left).toEqual([{ state: 'created' }]);
  });

  test('a pass that rejects comes up again', async () => {
    const queue = await queueNamed('again');
    let tries = 0;
    const begun = await worker(queue, async () => {
      tries += 1;
      if (tries === 1) throw new Error('the database was gone');
    });
    await queue.ask([1], { trigger: 'file', afterMs: 0 });
    await until(
      async () => begun.length,
      (count) => count === 2,
      'it is tried again',
    );
    expect(begun).toEqual(['1 file', '1 file']);
  });

  test('hints reach whoever takes them, from any replica, and fleets do not meet', async () => {
    const [here, there, other] = [
      await queueNamed('hints'),
      await queueNamed('hints'),
      await queueNamed('else'),
    ];
    const [taken, strange]: string[][] = [[], []];
    const end = await here.takeHints((trigger) => taken?.push(trigger));
    await other.takeHints((trigger) => strange?.push(trigger));
    await there.hint('webhook');
    await until(
      async () => taken,
      (all) => all?.length === 1,
      'the hint comes',
    );
    await end();
    expect([taken, strange]).toEqual([['webhook'], []]);
  });
});
