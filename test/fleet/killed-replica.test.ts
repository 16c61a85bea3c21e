import { describe, expect, test } from 'vitest';
import { folderWith } from '../cli/run.ts';
import { type RunningDaemon, until } from '../daemon/support.ts';
import { postgresServer } from '../support/postgres.ts';
import {
  allConverged,
  billed,
  cloud,
  creations,
  database,
  fleetOf,
  ids,
  replica,
  specs,
  withServer,
  workingReplica,
} from './rig.ts';

const server = postgresServer();

describe('src/daemon/fleet: two replicas that share projects through PostgreSQL', () => {
  test('killed in the middle of its work, a replica is replaced by the other one, and nothing is bought twice', async () => {
    const api = await cloud();
    const state = await database(server, 'killed');
    const [one, two] = [folderWith(), folderWith()];
    specs(one, withServer);
    specs(two, withServer);
    const replicas = await Promise.all([replica(api, state, one), replica(api, state, two)]);
    const names = await Promise.all(replicas.map(async (each) => (await fleetOf(each)).replica));
    const victim = names.indexOf(await workingReplica(replicas[0] as RunningDaemon, api));
    await replicas[victim]?.end('SIGKILL');
    const survivor = replicas[1 - victim] as RunningDaemon;
    await allConverged(api, survivor);
    await until(
      async () => billed(api),
      (found) => found.every(([servers]) => servers === 1),
      'every project has its server',
    );
    await until(
      () => fleetOf(survivor),
      ({ leads, projects }) =>
        leads &&
        projects.every(({ last_reconciliation }) => last_reconciliation?.replica === names[1 - victim]),
      'the other one leads and works on everything',
    );
    expect(billed(api)).toEqual(ids.map(() => [1, 1]));
    expect(creations(api)).toEqual(ids.map(() => 1));
  }, 120_000);
});
