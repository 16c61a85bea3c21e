import { copyFileSync, cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { postgresVersion } from '../../src/state/postgres-migrations.ts';
import { folderWith } from '../cli/run.ts';
import { until } from '../daemon/support.ts';
import { newFolder } from '../support/folders.ts';
import { postgresServer } from '../support/postgres.ts';
import { allConverged, billed, cloud, creations, database, ids, replica, specs, withServer } from './rig.ts';

const server = postgresServer();
const root = fileURLToPath(new URL('../..', import.meta.url));

/** The main file of a later release, whose tables have one column more. */
function laterRelease(): string {
  const folder = newFolder('vdcsync-later-');
  cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true });
  copyFileSync(join(root, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const file = join(folder, 'src/state/postgres-migrations.ts');
  const step = `{ version: ${postgresVersion + 1}, sql: 'ALTER TABLE vdcsync.states ADD COLUMN later integer' },`;
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^\];$/m, `  ${step}\n];`));
  return join(folder, 'src/cli/main.ts');
}

describe('src/daemon/fleet: an upgrade', () => {
  test('a replica of a later release takes over the work of the old ones, and nothing is bought twice', async () => {
    const api = await cloud();
    const state = await database(server, 'upgraded');
    const folders = [folderWith(), folderWith(), folderWith()];
    for (const folder of folders) specs(folder, withServer);
    const [one = '', two = '', three = ''] = folders;
    const olds = await Promise.all([replica(api, state, one), replica(api, state, two)]);
    await until(
      async () => billed(api),
      (found) => found.some(([servers]) => servers === 1),
      'a server is bought',
    );
    const later = await replica(api, state, three, { program: laterRelease() });
    const ready = (each: { readonly url: string }) =>
      fetch(`${each.url}/readyz`).then(({ status }) => status);
    await allConverged(api, later);
    expect(billed(api)).toEqual(ids.map(() => [1, 1]));
    // The old ones run on: their turns end at once, and the later one takes over each of them.
    for (const folder of folders) specs(folder, `  extra: { cidr: 10.21.0.0/24 }\n${withServer}`);
    await until(
      async () => api.emulator.world.projects,
      (projects) => projects.every(({ networks }) => networks.some(({ name }) => name === 'extra')),
      'an edit is carried out',
      () => JSON.stringify([...olds, later].map((each) => each.log().slice(-10))),
    );
    expect(await ready(later)).toBe(200);
    for (const each of olds) {
      await until(
        () => ready(each),
        (status) => status === 503,
        'its next turn shows that the database has a later version',
      );
      expect(await each.end()).toBe(0);
    }
    await allConverged(api, later);
    expect(await ready(later)).toBe(200);
    expect(billed(api)).toEqual(ids.map(() => [1, 1]));
    expect(creations(api)).toEqual(ids.map(() => 1));
  });
});
