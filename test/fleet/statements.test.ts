import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { folderWith } from '../cli/run.ts';
import { postgresServer } from '../support/postgres.ts';
import { allConverged, cloud, database, fleetOf, ids, replica, specs, withServer } from './rig.ts';

const [, ...oneServer] = withServer.split('\n');
const fiveServers = `servers:\n${[1, 2, 3, 4, 5].map((n) => oneServer.join('\n').replace('web-1', `web-${n}`)).join('')}`;
const server = postgresServer(['shared_preload_libraries=pg_stat_statements']);

describe('src/daemon/fleet: the database load of a reconciliation', () => {
  test('a reconciliation without changes opens no connection and runs at most 20 statements, 12 for its project', async () => {
    // The API's clock must let a block of reads be used up on a busy machine.
    const speed = 6;
    const api = await cloud([], speed);
    const state = await database(server, 'statements');
    const folder = folderWith();
    specs(folder, fiveServers);
    const only = await replica(api, state, folder, { args: ['-f', 'specs', '--interval', '10h'], speed });
    await allConverged(api, only);
    const client = new pg.Client(state);
    onTestFinished(() => client.end());
    await client.connect();
    await client.query('CREATE EXTENSION pg_stat_statements');
    const count = async (sql: string) => Number((await client.query(sql)).rows[0]?.count);
    const calls = (which: string) =>
      count(
        `SELECT coalesce(sum(calls), 0) AS count FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
         WHERE datname = current_database() AND query NOT LIKE '%pg_stat%' ${which}`,
      );
    const reset = () => client.query('SELECT pg_stat_statements_reset() /* pg_stat */');
    const sessions = () =>
      count('SELECT sessions AS count FROM pg_stat_database WHERE datname = current_database()');
    const reconciliations = async () => {
      // By the state, and not by /status: that asks the database too.
      const sql = `SELECT sum((value::jsonb->'history'->>'reconciliations')::int) AS count FROM vdcsync.notes /* pg_stat */ WHERE name = 'daemon'`;
      return count(sql);
    };
    const round = async () => {
      const before = await reconciliations();
      only.child.kill('SIGHUP');
      await expect.poll(reconciliations).toBeGreaterThanOrEqual(before + ids.length);
      // The server counts a moment later.
      await pause(1_500);
      return (await reconciliations()) - before;
    };
    await round();
    await reset();
    const idleSince = performance.now();
    await pause(12_000);
    const idlePerMs = (await calls('')) / (performance.now() - idleSince);
    await reset();
    const since = performance.now();
    let reconciles = 0;
    for (const _ of [1, 2, 3, 4]) reconciles += await round();
    const all = (await calls('')) - idlePerMs * (performance.now() - since);
    const own = await calls(
      "AND query NOT LIKE '%vdcsync_jobs%' AND (query LIKE '%vdcsync.%' OR query LIKE '%advisory_lock%' OR query LIKE '%advisory_unlock%')",
    );
    process.stdout.write(
      `statements of a reconcile: ${(own / reconciles).toFixed(1)} about the project, ${(all / reconciles).toFixed(1)} in all; idle: ${(idlePerMs * 1_000).toFixed(1)} a second\n`,
    );
    // 8 for the state and the spec, and one for up to eight reads in three seconds of the API.
    expect(own / reconciles).toBeLessThanOrEqual(12);
    expect(all / reconciles).toBeLessThanOrEqual(20);
    expect(idlePerMs * 1_000).toBeLessThanOrEqual(13);
    // At most two of the start are gone again. No project and no reconcile has had a connection of its own.
    expect(await sessions()).toBeLessThan(9 + 1 + ids.length);

    expect((await fleetOf(only)).projects).toHaveLength(ids.length);
  });
});
