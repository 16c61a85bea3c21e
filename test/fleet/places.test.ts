import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { folderWith } from '../cli/run.ts';
import { type RunningDaemon, until } from '../daemon/support.ts';
import { postgresServer } from '../support/postgres.ts';
import { allConverged, cloud, database, fleetOf, ids, replica, specOf, specs, withServer } from './rig.ts';

const server = postgresServer();
const args = ['-f', 'specs', '--interval', '10h', '--parallel', '1'];

async function connections(state: string): Promise<number> {
  const client = new pg.Client(state);
  await client.connect();
  const { rows } = await client.query(
    "SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'vdcsync'",
  );
  await client.end();
  return rows[0].count;
}

describe('src/daemon/fleet', () => {
  test('a turn that waits for a task holds neither a place nor a connection of its own', async () => {
    const api = await cloud([
      faultRule({ method: 'POST', path: '/servers' }, { do: 'task', outcome: 'stuck' }),
    ]);
    const state = await database(server, 'waiting');
    const folder = folderWith();
    specs(folder, withServer);
    const only = await replica(api, state, folder, { args });
    const waiting = () =>
      new Set(
        api.emulator.requests.filter(({ url }) => url.includes('/tasks/')).map(({ project }) => project),
      );
    await until(
      async () => waiting().size,
      (count) => count === ids.length,
      'the tasks of all projects are polled, with one place for all',
      () => JSON.stringify(only.log().slice(-15)),
    );
    const workers = async () => (await fleetOf(only)).projects.filter(({ worker }) => worker !== null);
    await until(
      workers,
      (found) => found.length === ids.length,
      'each project has a worker',
      () => JSON.stringify(only.log().slice(-25)),
    );
    // Four for states, two of the queue, one to read the board, one that /status opens.
    expect(await connections(state)).toBeLessThanOrEqual(8);
  });

  test('an edit is carried out at once, on whichever replica, and another replica takes over from one that ends', async () => {
    const api = await cloud();
    const state = await database(server, 'edited');
    const [one, two] = [folderWith(), folderWith()];
    specs(one);
    specs(two);
    const leader = await replica(api, state, one, { args });
    await allConverged(api, leader);
    const other = await replica(api, state, two, { args });
    const endsOf = (fleet: Awaited<ReturnType<typeof fleetOf>>) =>
      fleet.projects.map((project) => project.last_reconciliation?.ended_at);
    const before = endsOf(await fleetOf(other));
    for (const id of ids)
      writeFileSync(join(one, 'specs', `${id}.yaml`), `${specOf(id)}  extra: { cidr: 10.21.0.0/24 }\n`);
    await until(
      async () => api.emulator.world.projects,
      (projects) => projects.every(({ networks }) => networks.some(({ name }) => name === 'extra')),
      'the edit is carried out',
    );
    await until(
      () => fleetOf(other),
      (fleet) => endsOf(fleet).every((end, at) => end !== before[at]),
      'the reconciliations of the edit have ended',
    );

    expect(await leader.end()).toBe(0);
    await until(
      () => fleetOf(other),
      ({ leads }) => leads,
      'the other one leads',
    );
    for (const id of ids) writeFileSync(join(two, 'specs', `${id}.yaml`), specOf(id));
    const { replica: name } = await fleetOf(other);
    await until(
      () => fleetOf(other),
      (fleet) => fleet.projects.every((project) => project.last_reconciliation?.replica === name),
      'the other one has all projects',
    );
  });

  test('after a restart of all, projects at rest go on resting, and one that was edited meanwhile is worked on', async () => {
    const api = await cloud();
    const state = await database(server, 'restarted');
    const folder = folderWith();
    specs(folder);
    const before = await replica(api, state, folder, { args });
    await allConverged(api, before);
    await until(
      () => fleetOf(before),
      ({ projects }) => projects.every(({ worker }) => worker === null),
      'all turns have ended',
    );
    expect(await before.end()).toBe(0);
    const asked = api.emulator.requests.length;
    writeFileSync(join(folder, 'specs', '4712.yaml'), `${specOf(4712)}  extra: { cidr: 10.21.0.0/24 }\n`);
    await replica(api, state, folder, { args });
    await until(
      async () => api.emulator.world.projects[1]?.networks.map(({ name }) => name),
      (names) => names?.includes('extra') === true,
      'the edit is carried out',
    );
    await pause(2_000);
    expect(new Set(api.emulator.requests.slice(asked).map(({ project }) => project))).toEqual(
      new Set([4712]),
    );
  });

  test('a project whose file was deleted stays until the replica that leads is restarted, and keeps its resources', async () => {
    const api = await cloud();
    const state = await database(server, 'removed');
    const folder = folderWith();
    specs(folder);
    const [one, two] = [
      await replica(api, state, folder, { args }),
      await replica(api, state, folder, { args }),
    ];
    await allConverged(api, one);
    await allConverged(api, two);
    rmSync(join(folder, 'specs', '4714.yaml'));
    const listed = async (daemon: RunningDaemon) => (await fleetOf(daemon)).projects.map(({ id }) => id);
    const broken = async ({ url }: RunningDaemon) =>
      /^vdcsync_broken_specs (\d+)$/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1];
    await until(
      () => broken(one),
      (count) => count === '1',
      'the missing file is reported',
    );
    for (const each of [one, two]) expect(await listed(each)).toEqual(ids);
    expect(await one.end()).toBe(0);
    await until(
      () => listed(two),
      (found) => found.length === 3,
      'a leader that never read the file knows only the projects that have one',
    );
    expect(api.emulator.world.projects[3]?.networks.map(({ name }) => name)).toContain('backend');
  });
});
