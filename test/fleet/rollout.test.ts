import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { loadFleetConfig } from '../../src/cli/settings/fleet-config.ts';
import type { RunningEmulator } from '../../src/emulator/http-server.ts';
import { folderWith, inProcess } from '../cli/run.ts';
import { type RunningDaemon, until } from '../daemon/support.ts';
import { postgresServer } from '../support/postgres.ts';
import {
  conditionsOf,
  eachOf,
  fleetOf,
  ids,
  projectsWith,
  replica,
  restingFleet,
  specOf,
  workersOf,
} from './rig.ts';

const server = postgresServer();

/** Of caps so low that no deletions have to be counted. */
const plain = (id: number) => specOf(id).replace('max_deletions: 9', 'max_deletions: 2');
const withImage = (id: number, image: string) => `${plain(id)}servers:
  web-1: { server_type: sliders-1, image: ${image}, cores: 2, memory_mb: 4096, disk_gb: 40 }
`;
const rolloutOf = async (daemon: RunningDaemon) => (await fleetOf(daemon)).rollout;
const write = (folder: string, textOf: (id: number) => string) => {
  for (const id of ids) writeFileSync(join(folder, 'specs', `${id}.yaml`), textOf(id));
};
/** A folder with a fleet file; at a speed of 60, minutes are seconds. */
const folderOf = (config: string, textOf: (id: number) => string) =>
  folderWith({
    'fleet.yaml': config,
    ...Object.fromEntries(ids.map((id) => [`specs/${id}.yaml`, textOf(id)])),
  });
const args = ['-f', 'specs', '--fleet-config', 'fleet.yaml'];
const halfAnHourMs = 1_800_000;
/** Options of a Node whose wall clock is so far ahead. */
const withClock = (aheadMs: number) =>
  `--import=data:text/javascript,${encodeURIComponent(`const { now } = Date; Date.now = () => now() + ${aheadMs};`)}`;
/** Projects about whose images anybody has asked. */
const asked = ({ emulator }: RunningEmulator, from: number) =>
  new Set(
    emulator.requests.slice(from).flatMap(({ project, method }) => (method === 'GET' ? [project] : [])),
  );

describe('src/daemon/fleet/releases.ts: replicas', () => {
  test('a bad change reaches the canary alone until an operator approves the change, also after a leader crash', async () => {
    const config = `fleet:
  stay: 1m
  waves: [{ match: { label: canary } }, { percent: 100 }]
labels: { canary: [4712] }
`;
    const folder = folderOf(config, plain);
    // Nobody but an edit asks for a reconcile.
    const rare = { folder, args: [...args, '--interval', '100h'] };
    const { api, state, first } = await restingFleet(server, 'waves', rare);
    await expect.poll(() => workersOf(first)).toEqual(eachOf(null));
    const from = api.emulator.requests.length;

    write(folder, (id) => withImage(id, 'no-such-image'));
    const stopped = await until(
      () => rolloutOf(first),
      (rollout) => rollout?.phase === 'stopped',
    );
    expect(stopped).toMatchObject({ projects: 4, projects_left: 3, waves_done: 1, watched: [4712] });
    expect(asked(api, from)).toEqual(new Set([4712]));
    const change = String(stopped?.change);
    const said = first.log().filter(({ msg }) => msg === 'rollout paused');
    expect(said.map(({ resolve }) => resolve)).toEqual([
      `vdcsync approve-commit ${change} --state postgres://127.0.0.1:${new URL(state).port}/waves`,
    ]);

    await first.end('SIGKILL');
    const next = await replica(api, state, folder, rare);
    await expect.poll(() => fleetOf(next)).toMatchObject({ leads: true });
    await pause(2_000);
    expect(await rolloutOf(next)).toMatchObject({ phase: 'stopped', projects_left: 3 });
    expect(next.log().filter(({ msg }) => msg === 'rollout paused')).toEqual([]);
    const call = { cwd: folder, env: { VDCSYNC_STATE: state } };
    expect((await inProcess(['approve-commit', 'no-such'], call)).stderr).toContain(change);
    expect((await inProcess(['approve-commit', change.slice(0, 12)], call)).code).toBe(0);
    await expect.poll(() => conditionsOf(next)).toEqual(eachOf('blocked'));
    expect(await rolloutOf(next)).toBe(null);
  });

  test('a leader with a clock one hour behind the clock of the leader before ends a wave after the remaining time', async () => {
    const config = `fleet: { stay: 5m, waves: [{ match: { label: canary } }, { percent: 100 }] }
labels: { canary: [4712] }
`;
    const folder = folderOf(config, plain);
    const ahead = (aheadMs: number) => ({ args, env: { NODE_OPTIONS: withClock(aheadMs) } });
    const { api, state, first } = await restingFleet(server, 'clocks', { folder, ...ahead(halfAnHourMs) });
    write(folder, (id) => `${plain(id)}  extra: { cidr: 10.21.0.0/24 }\n`);
    await expect.poll(() => projectsWith(api)).toEqual([4712]);
    const rested = eachOf({ condition: 'converged', worker: null });
    await expect.poll(() => fleetOf(first)).toMatchObject({ projects: rested });
    expect(projectsWith(api)).toEqual([4712]);
    const convergedAt = performance.now();
    await replica(api, state, folder, ahead(-halfAnHourMs));
    expect(await first.end()).toBe(0);
    await expect.poll(() => projectsWith(api)).toEqual(ids);
    expect(performance.now() - convergedAt).toBeGreaterThan(3_000);
  });

  test('a change with more deletions than the fleet allows deletes nothing before its approval', async () => {
    const textOf = (id: number) =>
      `${specOf(id).replace('exclusive: true', 'prune: true')}  extra: { cidr: 10.21.0.0/24 }\n`;
    const folder = folderOf('fleet: { max_deletions: 3 }\n', textOf);
    const { api, state, first: only } = await restingFleet(server, 'fuse', { folder, args });
    await expect.poll(() => projectsWith(api)).toEqual(ids);
    const deletions = () => api.emulator.requests.filter(({ method }) => method === 'DELETE').length;

    write(folder, (id) => textOf(id).replace(/ {2}extra.*\n/, ''));
    const waiting = await until(
      () => rolloutOf(only),
      (rollout) => rollout?.phase === 'waiting',
    );
    expect(waiting).toMatchObject({ deletions: 4, projects_left: 4, waves_done: 0 });
    await pause(3_000);
    expect(deletions()).toBe(0);
    const call = { cwd: folder, env: { VDCSYNC_STATE: state } };
    expect((await inProcess(['approve-commit', String(waiting?.change)], call)).code).toBe(0);
    await expect.poll(() => projectsWith(api)).toEqual([]);
    expect(deletions()).toBe(4);
    expect((await inProcess(['approve-commit', String(waiting?.change)], call)).stderr).toMatch(/No rollout/);
  });
});

describe('src/cli/settings/fleet-config.ts', () => {
  test('reports each mistake of a fleet file at its position', () => {
    const text = `fleet:
  max_deletions: many
  waves: [{ match: { label: canaries } }, { percent: 0 }]
labels: { canary: [4711] }
`;
    const load = () => loadFleetConfig(text, 'fleet.yaml');
    expect(load).toThrow(/fleet\.yaml:2:18: .*max_deletions/);
    expect(load).toThrow(/fleet\.yaml:3:29: no project has the label "canaries"/);
    expect(load).toThrow(/fleet\.yaml:3:54: .*percent/);
    expect(loadFleetConfig('', 'fleet.yaml')).toMatchObject({ maxDeletions: 10, waves: [] });
  });
});
