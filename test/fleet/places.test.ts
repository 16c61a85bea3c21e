import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import type { RunningDaemon } from '../daemon/support.ts';
import { postgresServer } from '../support/postgres.ts';
import {
  allConverged,
  cloud,
  database,
  eachOf,
  fleetOf,
  folderOfSpecs,
  ids,
  projectsWith,
  replica,
  restingFleet,
  specOf,
  sql,
  withServer,
  workersOf,
} from './rig.ts';

const server = postgresServer();
const args = ['-f', 'specs', '--interval', '10h', '--parallel', '1'];

async function connections(state: string): Promise<unknown> {
  const [row] = await sql(
    state,
    "SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'vdcsync'",
  );
  return row?.count;
}

describe('src/daemon/fleet', () => {
  test('a turn that waits for a task holds neither a place nor its own connection', async () => {
    const api = await cloud([
      faultRule({ method: 'POST', path: '/servers' }, { do: 'task', outcome: 'stuck' }),
    ]);
    const state = await database(server, 'waiting');
    const folder = folderOfSpecs(withServer);
    const only = await replica(api, state, folder, { args });
    const waiting = () =>
      new Set(
        api.emulator.requests.filter(({ url }) => url.includes('/tasks/')).map(({ project }) => project),
      );
    await expect.poll(() => waiting().size).toBe(ids.length);
    await expect.poll(() => workersOf(only)).not.toContain(null);
    // Four for states, two of the queue, one to read the board, one that /status opens.
    expect(await connections(state)).toBeLessThanOrEqual(8);
  });

  test('after a restart of all replicas, projects at rest stay at rest, and an edited project reconciles', async () => {
    const { api, state, folder, first: before } = await restingFleet(server, 'restarted', { args });
    await expect.poll(() => workersOf(before)).toEqual(eachOf(null));
    expect(await before.end()).toBe(0);
    const asked = api.emulator.requests.length;
    writeFileSync(join(folder, 'specs', '4712.yaml'), `${specOf(4712)}  extra: { cidr: 10.21.0.0/24 }\n`);
    await replica(api, state, folder, { args });
    await expect.poll(() => projectsWith(api)).toEqual([4712]);
    await pause(2_000);
    expect(new Set(api.emulator.requests.slice(asked).map(({ project }) => project))).toEqual(
      new Set([4712]),
    );
  });

  test('a project with a deleted file stays until the leader restarts, and keeps its resources', async () => {
    const { api, state, folder, first: one } = await restingFleet(server, 'removed', { args });
    const two = await replica(api, state, folder, { args });
    await allConverged(api, two);
    rmSync(join(folder, 'specs', '4714.yaml'));
    const listed = async (daemon: RunningDaemon) => (await fleetOf(daemon)).projects.map(({ id }) => id);
    await expect.poll(one.metrics).toContain('vdcsync_broken_specs 1\n');
    for (const each of [one, two]) expect(await listed(each)).toEqual(ids);
    expect(await one.end()).toBe(0);
    await expect.poll(() => listed(two)).toHaveLength(3);
    expect(projectsWith(api, 'backend')).toEqual(ids);
  });
});
