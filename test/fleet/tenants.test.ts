import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { folderWith } from '../cli/run.ts';
import { emulate, type RunningDaemon, startDaemon } from '../daemon/support.ts';
import { postgresServer } from '../support/postgres.ts';
import { database, fleetOf, specOf } from './rig.ts';

const server = postgresServer();
/** `npm run test:fleet` plays the long form. */
const [most, few, speed, within] =
  process.env.FLEET_FAULTS === undefined ? [30, 3, 60, {}] : [500, 50, 20, { timeout: 500_000 }];
const large = Array.from({ length: most }, (_, at) => 4_711 + at);
const small = Array.from({ length: few }, (_, at) => 5_801 + at);
const ids = [...large, ...small];
const config = `fleet: { max_deletions: 3 }
tenants: { large: [${large.join(', ')}], small: [${small.join(', ')}] }
`;
/** Of the small tenant with caps so low that no deletions have to be counted. */
const textOf = (id: number, extras: number) => {
  const networks = Array.from(
    { length: extras },
    (_, at) => `  extra-${at + 1}: { cidr: 10.21.${at + 1}.0/24 }\n`,
  );
  const most = small.includes(id) ? 1 : 9;
  const settings = `prune: true, max_deletions: ${most}`;
  return `${specOf(id).replace('exclusive: true, max_deletions: 9', settings)}${networks.join('')}`;
};

describe('src/daemon/fleet: two tenants', () => {
  test('invalid tokens, a circuit breaker and full rounds of one tenant delay no edit of the other tenant', async () => {
    const api = await emulate({ speed, projects: ids.map((id) => ({ id, name: `project ${id}` })) });
    const state = await database(server, 'tenants');
    const folders = [0, 1].map(() => folderWith({ 'fleet.yaml': config, 'specs/.keep': '' }));
    const write = (id: number, extras: number) => {
      for (const folder of folders) writeFileSync(join(folder, 'specs', `${id}.yaml`), textOf(id, extras));
    };
    for (const id of ids) write(id, 1);
    // Nobody has the tokens of these projects.
    const [missing, refused] = [large.slice(0, 5), large.slice(5, 15)];
    const tokens = ids.map((id) => [
      `TOKEN_${id}`,
      missing.includes(id) ? '' : api.emulator.tokens(id).readWrite,
    ]);
    const args = ['-f', 'specs', '--fleet-config', 'fleet.yaml', '--state', state, '--interval', '30m'];
    const env = Object.fromEntries(tokens);
    const replicas = await Promise.all(
      folders.map((folder) => startDaemon(api, { folder, args, env, speed })),
    );
    const [one] = replicas as [RunningDaemon];
    const networksOf = (id: number) =>
      api.emulator.world.projects[ids.indexOf(id)]?.networks.map(({ name }) => name) ?? [];
    const working = ids.filter((id) => !missing.includes(id));
    await expect.poll(() => working.filter((id) => !networksOf(id).includes('extra-1')), within).toEqual([]);
    /** The time from the edit of each small project to its network, in ms. */
    const edited = async (at: number) => {
      const since = performance.now();
      for (const id of small) write(id, at);
      await expect
        .poll(() => small.filter((id) => !networksOf(id).includes(`extra-${at}`)), within)
        .toEqual([]);
      return performance.now() - since;
    };
    const alone = [await edited(2), await edited(3)];

    for (const id of refused)
      api.emulator.mutate({ do: 'revoke_token', token: api.emulator.tokens(id).readWrite });
    for (const id of large) write(id, 0);
    const held = expect.arrayContaining([expect.objectContaining({ phase: 'waiting' })]);
    await expect.poll(() => fleetOf(one), within).toMatchObject({ rollouts: held });
    const beside: number[] = [];
    for (const at of [4, 5, 6]) {
      for (const { child } of replicas) child.kill('SIGHUP');
      beside.push(await edited(at));
    }
    process.stdout.write(
      `edits of the small tenant: alone ${alone.map(Math.round)}, beside ${beside.map(Math.round)} ms\n`,
    );
    // A few edits alone take about as long as one poll of the queue and of the task.
    const leastMs = 5_000;
    expect(Math.max(...beside)).toBeLessThan(2 * Math.max(...alone, leastMs));
    const isHeld = (project: number | null) => project !== null && large.includes(project);
    const { requests } = api.emulator;
    expect(requests.filter((each) => each.method === 'DELETE' && isHeld(each.project))).toEqual([]);
    for (const each of replicas) expect(await each.ready()).toBe(true);
  });
});
