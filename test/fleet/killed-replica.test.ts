import { describe, expect, test } from 'vitest';
import { type RunningDaemon, until } from '../daemon/support.ts';
import { postgresServer } from '../support/postgres.ts';
import { allConverged, billed, cloud, creations, database, fleetOf, ids, twoReplicas } from './rig.ts';

const server = postgresServer();

describe('src/daemon/fleet: two replicas that share projects through PostgreSQL', () => {
  test('killed in the middle of its work, a replica is replaced by the other one, and nothing is bought twice', async () => {
    const api = await cloud();
    const state = await database(server, 'killed');
    const { replicas, names, working: victim } = await twoReplicas(api, state);
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
  });
});
