import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { postgresServer } from '../support/postgres.ts';
import {
  allConverged,
  billed,
  cloud,
  database,
  eachOf,
  expectBoughtOnce,
  folderOfSpecs,
  projectsWith,
  replica,
  specOf,
  specs,
  withServer,
} from './rig.ts';

const server = postgresServer();

const edited = specOf(4711, `  one: { cidr: 10.30.0.0/24 }\n${withServer}`);

describe('src/daemon/fleet: a standby is promoted without the last writes', () => {
  test('the fleet returns to the specs of the source, buys nothing twice and needs no operator', async () => {
    const api = await cloud();
    const state = await database(server, 'failover');
    const folders = [folderOfSpecs(), folderOfSpecs()];
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
    await expect.poll(() => billed(api)).toEqual(eachOf([1, 1]));
    await expect.poll(() => projectsWith(api, 'one')).toEqual([4711]);

    await server.failOver();

    // The backup has the first version of the spec, which declares no such network.
    const made = () => api.emulator.world.projects[0]?.networks.find(({ name }) => name === 'one')?.id;
    const before = made() ?? 0;
    api.emulator.mutate({ do: 'delete_network', project_id: 4711, id: before });
    await expect.poll(() => made() ?? before).not.toBe(before);
    await allConverged(api, first);
    expectBoughtOnce(api);
  });
});
