import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openBossQueue } from '../../src/daemon/fleet/boss-queue.ts';
import type { PassQueue } from '../../src/daemon/fleet/pass-queue.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import { postgresServer } from '../support/postgres.ts';
import { until } from './support.ts';

const server = postgresServer();
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

async function queueNamed(name: string): Promise<PassQueue> {
  const connectionString = server.url();
  const queue = await openBossQueue({ connectionString, name, clock: systemClock, log: quiet });
  onTestFinished(() => queue.close(1_000));
  return queue;
}

/** Notes what is worked on; a pass lasts as long as `pass` says. */
async function worker(queue: PassQueue, pass: (project: number) => Promise<void> = async () => {}) {
  const begun: string[] = [];
  await queue.work(4, async (project, trigger) => {
    begun.push(`${project} ${trigger}`);
    await pass(project);
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
    await queue.ask(1, 'timer', 3_600_000);
    await queue.ask(1, 'webhook', 0);
    await queue.ask(1, 'git', 0);
    await queue.ask(1, 'timer', 3_600_000);
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
    await a.ask(1, 'start', 0);
    await until(
      async () => now,
      (count) => count === 1,
      'it is worked on',
    );
    await b.ask(1, 'git', 0);
    await b.ask(2, 'git', 0);
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
    await queue.ask(1, 'timer', 3_600_000);
    expect(await queue.takeDue(1)).toBeUndefined();
    await queue.ask(1, 'webhook', 0);
    await queue.ask(2, 'git', 0);
    expect(await queue.takeDue(1)).toBe('webhook');
    expect(await queue.takeDue(1)).toBeUndefined();
    const begun = await worker(queue);
    await until(
      async () => begun,
      (all) => all.length > 0,
      'the other comes up',
    );
    expect(begun).toEqual(['2 git']);
  });

  test('a pass that rejects comes up again', async () => {
    const queue = await queueNamed('again');
    let tries = 0;
    const begun = await worker(queue, async () => {
      tries += 1;
      if (tries === 1) throw new Error('the database was gone');
    });
    await queue.ask(1, 'file', 0);
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
