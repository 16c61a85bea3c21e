import { copyFileSync, cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { newFolder } from '../support/folders.ts';
import { postgresServer } from '../support/postgres.ts';
import {
  allConverged,
  billed,
  cloud,
  database,
  expectBoughtOnce,
  folderOfSpecs,
  ids,
  projectsWith,
  replica,
  specs,
  withServer,
} from './rig.ts';

const server = postgresServer();
const root = fileURLToPath(new URL('../..', import.meta.url));

/** The main file of a later release, whose tables have one column more. */
function laterRelease(): string {
  const folder = newFolder('vdcsync-later-');
  cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true });
  copyFileSync(join(root, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const file = join(folder, 'src/state/postgres-migrations.ts');
  const step = "'ALTER TABLE vdcsync.states ADD COLUMN later integer',";
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^\];$/m, `  ${step}\n];`));
  return join(folder, 'src/cli/main.ts');
}

describe('src/daemon/fleet: an upgrade', () => {
  test('a replica of a later release takes over the work of the old replicas, and buys nothing twice', async () => {
    const api = await cloud();
    const state = await database(server, 'upgraded');
    const folders = [1, 2, 3].map(() => folderOfSpecs(withServer));
    const [one = '', two = '', three = ''] = folders;
    const olds = await Promise.all([replica(api, state, one), replica(api, state, two)]);
    await expect.poll(() => billed(api).map(([servers]) => servers)).toContain(1);
    const later = await replica(api, state, three, { program: laterRelease() });
    await allConverged(api, later);
    expectBoughtOnce(api);
    // The old ones run on: their turns end at once, and the later one takes over each of them.
    for (const folder of folders) specs(folder, `  extra: { cidr: 10.21.0.0/24 }\n${withServer}`);
    await expect.poll(() => projectsWith(api)).toEqual(ids);
    expect(await later.ready()).toBe(true);
    for (const each of olds) {
      // The next turn shows that the database has a later version.
      await expect.poll(each.ready).toBe(false);
      expect(await each.end()).toBe(0);
    }
    await allConverged(api, later);
    expect(await later.ready()).toBe(true);
    expectBoughtOnce(api);
  });
});
