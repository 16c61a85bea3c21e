import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { folderWith } from '../cli/run.ts';
import { until } from '../daemon/support.ts';
import { postgresServer } from '../support/postgres.ts';
import { allConverged, cloud, database, fleetOf, ids, replica, specs, withServer } from './rig.ts';

const [, ...oneServer] = withServer.split('\n');
const fiveServers = `servers:\n${[1, 2, 3, 4, 5].map((n) => oneServer.join('\n').replace('web-1', `web-${n}`)).join('')}`;
const server = postgresServer(['shared_preload_libraries=pg_stat_statements']);

describe('src/daemon/fleet: what a reconcile costs the database', () => {
  test('a reconcile of five servers that changes nothing makes no connection, and at most 15 statements about the project', async () => {
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
    const statements = () =>
      count(
        `SELECT sum(calls) AS count FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
         WHERE datname = current_database() AND query NOT LIKE '%pg_stat%' AND query NOT LIKE '%vdcsync_jobs%'
           AND (query LIKE '%vdcsync.%' OR query LIKE '%advisory%')`,
      );
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
      await until(reconciliations, (now) => now >= before + ids.length, 'all are looked at again');
      // The server counts a moment later.
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      return (await reconciliations()) - before;
    };
    // At most two of the start are gone again. No project has had a connection of its own.
    expect(await sessions()).toBeLessThan(9 + 1 + ids.length);
    await round();
    const connections = await sessions();
    await client.query('SELECT pg_stat_statements_reset() /* pg_stat */');
    await round();
    const locks =
      "SELECT sum(calls) AS count FROM pg_stat_statements WHERE query LIKE '%pg_try_advisory_lock%'";
    // 11 for the state and the spec, and one for up to eight reads in three seconds of the API.
    expect((await statements()) / (await count(locks))).toBeLessThanOrEqual(15);
    expect(await sessions()).toBe(connections);

    expect((await fleetOf(only)).projects).toHaveLength(ids.length);
  });
});
