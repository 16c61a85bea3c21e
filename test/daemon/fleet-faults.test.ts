import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import type { RunningEmulator } from '../../src/emulator/http-server.ts';
import { folderWith } from '../cli/run.ts';
import { postgresServer } from '../support/postgres.ts';
import { billed, cloud, creations, database, fleetOf, ids, replica, specs, withServer } from './fleet-rig.ts';
import { until } from './support.ts';

const server = postgresServer();

/** A task that goes on for longer than any test lasts. */
const endlessServer = faultRule({ method: 'POST', path: '/servers' }, { do: 'task', outcome: 'stuck' });

/** One statement by the operator of the database. */
async function sql(state: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: state, application_name: 'operator' });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const owners = `SELECT s.project_id AS project, l.pid FROM pg_locks l JOIN vdcsync.states s ON s.id::bigint = l.objid::bigint
  WHERE l.locktype = 'advisory' AND l.granted AND s.project_id IS NOT NULL
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

async function ownersOf(state: string): Promise<ReadonlyMap<number, number>> {
  return new Map((await sql(state, owners)).map(({ project, pid }) => [Number(project), Number(pid)]));
}

/** How often the task of each project's server was read. */
const polls = ({ emulator }: RunningEmulator) =>
  ids.map(
    (id) => emulator.requests.filter(({ project, url }) => project === id && url.includes('/tasks/')).length,
  );

describe('daemon/fleet: faults', () => {
  test('connections that the database ends while tasks are polled end the reconciles, and others go on at once', async () => {
    const api = await cloud([endlessServer]);
    const state = await database(server, 'terminated');
    const folder = folderWith();
    specs(folder, withServer);
    // The interval would end a reconcile that only waits.
    const only = await replica(api, state, folder, { args: ['-f', 'specs', '--interval', '10h'] });
    await until(
      async () => polls(api),
      (counts) => counts.every((count) => count > 1),
      'all tasks are polled',
    );
    const before = await ownersOf(state);
    expect(before.size).toBe(ids.length);

    await sql(
      state,
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
    const endedAt = performance.now();

    const after = await until(
      () => ownersOf(state),
      (now) => ids.every((id) => now.has(id) && now.get(id) !== before.get(id)),
      'every project is worked on again',
      () => JSON.stringify(only.log().slice(-15)),
    );
    expect(after.size).toBe(ids.length);
    expect(performance.now() - endedAt).toBeLessThan(20_000);
    const polled = polls(api);
    await until(
      async () => polls(api),
      (counts) => counts.every((count, index) => count > (polled[index] ?? 0)),
      'all tasks are polled again',
    );
    expect(creations(api)).toEqual(ids.map(() => 1));
    expect(billed(api).every(([servers = 0]) => servers <= 1)).toBe(true);
    expect((await fleetOf(only)).projects.every(({ worker }) => worker !== null)).toBe(true);
  }, 60_000);
});
