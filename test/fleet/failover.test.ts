import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { folderWith } from '../cli/run.ts';
import { until } from '../daemon/support.ts';
import { postgresServer } from '../support/postgres.ts';
import {
  allConverged,
  billed,
  cloud,
  creations,
  database,
  ids,
  replica,
  specOf,
  specs,
  withServer,
} from './rig.ts';

const server = postgresServer();

const edited = specOf(4711, `  one: { cidr: 10.30.0.0/24 }\n${withServer}`);

describe('src/daemon/fleet: a standby is promoted without the last writes', () => {
  test('the specs are those of the source again, nothing is bought twice, and no operator is asked', async () => {
    const api = await cloud();
    const state = await database(server, 'failover');
    const folders = [folderWith(), folderWith()];
    for (const folder of folders) specs(folder);
    const replicas = await Promise.all(
      folders.map((folder) => replica(api, state, folder, { args: ['-f', 'specs', '--interval', '5s'] })),
    );
    const [first] = replicas;
    if (first === undefined) throw new Error('no replica');
    await allConverged(api, first);
    await server.backUp();
    // What the backup lacks: a server in each project, and the last version of each spec.
    for (const folder of folders) specs(folder, withServer);
    for (const folder of folders) writeFileSync(join(folder, 'specs/4711.yaml'), edited);
    await until(
      async () => billed(api),
      (found) => found.every(([servers]) => servers === 1),
      'every project has its server',
    );
    await until(
      async () => api.emulator.world.projects[0]?.networks.map(({ name }) => name) ?? [],
      (names) => names.includes('one'),
      'the edit is in force',
    );

    await server.failOver();

    // The backup has the first version of the spec, which declares no such network.
    const made = () => api.emulator.world.projects[0]?.networks.find(({ name }) => name === 'one')?.id;
    const before = made() ?? 0;
    api.emulator.mutate({ do: 'delete_network', project_id: 4711, id: before });
    await until(
      async () => made() ?? before,
      (id) => id !== before,
      'the network of the latest spec is made again',
      () => JSON.stringify(first.log().slice(-20)),
    );
    const fleet = await allConverged(api, first);
    expect(fleet.projects.map(({ condition }) => condition)).toEqual(ids.map(() => 'converged'));
    expect(billed(api)).toEqual(ids.map(() => [1, 1]));
    expect(creations(api)).toEqual(ids.map(() => 1));
  });
});
