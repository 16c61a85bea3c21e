import { describe, expect, test } from 'vitest';
import type { RunningDaemon } from '../daemon/support.ts';
import { postgresServer } from '../support/postgres.ts';
import {
  allConverged,
  billed,
  cloud,
  database,
  eachOf,
  expectBoughtOnce,
  fleetOf,
  lastReplicasOf,
  twoReplicas,
} from './rig.ts';

const server = postgresServer();

describe('src/daemon/fleet: two replicas that share projects through PostgreSQL', () => {
  test('killed in the middle of its work, a replica is replaced by the other one, and nothing is bought twice', async () => {
    const api = await cloud();
    const state = await database(server, 'killed');
    const { replicas, names, working: victim } = await twoReplicas(api, state);
    await replicas[victim]?.end('SIGKILL');
    const survivor = replicas[1 - victim] as RunningDaemon;
    await allConverged(api, survivor);
    await expect.poll(() => billed(api)).toEqual(eachOf([1, 1]));
    await expect.poll(() => fleetOf(survivor)).toMatchObject({ leads: true });
    await expect.poll(() => lastReplicasOf(survivor)).toEqual(eachOf(names[1 - victim]));
    expectBoughtOnce(api);
  });
});
