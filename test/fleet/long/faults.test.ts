import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RunningEmulator } from '../../../src/emulator/http-server.ts';
import { folderWith } from '../../cli/run.ts';
import { emulate, type RunningDaemon, startDaemon, until } from '../../daemon/support.ts';
import { postgresServer } from '../../support/postgres.ts';
import { billed, creations, database, specOf, sql, withServer } from '../rig.ts';

// `npm run test:fleet`: 100 projects at work on three replicas, for faults that last as long as they do in production. Minutes
// each, so CI plays the short forms in `test/fleet/faults.test.ts` instead.

const server = postgresServer();
const ids = Array.from({ length: 100 }, (_, index) => 4_711 + index);
/** A replica without work, while projects wait for one, has failed after so long. */
const mostIdleMs = 30_000;

interface Fleet {
  readonly api: RunningEmulator;
  readonly daemons: RunningDaemon[];
  readonly start: () => Promise<RunningDaemon>;
  readonly sql: (text: string) => Promise<Record<string, unknown>[]>;
  /** The longest time that each replica had no work while projects waited, in ms, by its name. */
  readonly idle: Map<string, number>;
}

/**
 * Three replicas in the middle of buying a server for each of 100 projects. `byFirst`: the first one has the turns of all
 * projects when the others start.
 */
async function fleetAtWork(name: string, { byFirst = false } = {}): Promise<Fleet> {
  // Two minutes, or three to twelve seconds: most projects wait for a task when the fault comes.
  const [speed, least, most] = byFirst ? [15, 26, 29] : [60, 3, 12];
  const api = await emulate({
    speed,
    durations: { create_server: [least * 60_000, most * 60_000] },
    projects: ids.map((id) => ({ id, name: `project ${id}` })),
  });
  const state = await database(server, name);
  const env = Object.fromEntries(ids.map((id) => [`TOKEN_${id}`, api.emulator.tokens(id).readWrite]));
  const daemons: RunningDaemon[] = [];
  const start = async () => {
    const folder = folderWith();
    mkdirSync(join(folder, 'specs'));
    for (const id of ids) writeFileSync(join(folder, 'specs', `${id}.yaml`), specOf(id, withServer));
    const args = ['-f', 'specs', '--state', state, '--interval', '10h'];
    const daemon = await startDaemon(api, { folder, args, env, speed });
    daemons.push(daemon);
    return daemon;
  };
  const fleet: Fleet = { api, daemons, start, sql: (text) => sql(state, text), idle: new Map() };
  await start();
  if (byFirst)
    await reach(
      async () => [bought(api), (await workers(fleet)).size] as const,
      ([count, busy]) => count >= ids.length && busy >= ids.length,
      120,
      'one replica has the turns of all projects',
    );
  await Promise.all([start(), start()]);
  await reach(
    async () => bought(api),
    (count) => count >= 10,
    120,
    'servers are being bought',
  );
  watchIdle(fleet);
  return fleet;
}

const owned = `SELECT s.project_id AS project, o.host || ':' || o.pid AS replica
  FROM pg_locks l JOIN vdcsync.states s ON s.id::bigint = l.objid::bigint JOIN vdcsync.owners o ON o.state_id = s.id
  WHERE l.locktype = 'advisory' AND l.granted AND s.project_id IS NOT NULL
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
const unfinished = `SELECT s.project_id AS project, n.value::json -> 'history' ->> 'condition' AS condition, n.value::json ->> 'dueAt' AS due, n.value::json ->> 'replica' AS replica FROM vdcsync.states s LEFT JOIN vdcsync.notes n ON n.state_id = s.id AND n.name = 'daemon'
  WHERE s.project_id IS NOT NULL AND (n.value::json -> 'history' ->> 'condition') IS DISTINCT FROM 'converged'`;

/** The projects that have not converged, and that no replica has or may take within a second. */
const stranded = `SELECT project FROM (${unfinished}) AS s WHERE NOT EXISTS (SELECT FROM vdcsync_jobs.job j
  WHERE j.singleton_key = project::text AND (j.state = 'active' OR j.state < 'active' AND j.start_after < now() + interval '1 s'))`;

/** Which replica works on which project. */
async function workers({ sql }: Fleet): Promise<ReadonlyMap<number, string>> {
  return new Map((await sql(owned)).map(({ project, replica }) => [Number(project), String(replica)]));
}

function watchIdle(fleet: Fleet): void {
  const since = new Map<string, number>();
  let ended = false;
  onTestFinished(() => {
    ended = true;
  });
  void (async () => {
    for (; !ended; await pause(1_000)) {
      const [left, now] = await Promise.all([fleet.sql(unfinished), workers(fleet)]).catch(() => []);
      // While the database is away nobody can work.
      if (left === undefined || now === undefined) since.clear();
      else if (left.length <= now.size) since.clear();
      else
        for (const { child } of fleet.daemons.filter(
          ({ child }) => child.exitCode === null && child.signalCode === null,
        )) {
          const name = [...now.values()].find((each) => each.endsWith(`:${child.pid}`));
          const key = `:${child.pid}`;
          if (name !== undefined) since.delete(key);
          else since.set(key, since.get(key) ?? performance.now());
          const idle = performance.now() - (since.get(key) ?? performance.now());
          fleet.idle.set(key, Math.max(idle, fleet.idle.get(key) ?? 0));
        }
    }
  })();
}

const bought = (api: RunningEmulator) => creations(api, ids).filter((keys) => keys > 0).length;

/** How long it takes until the answer is as wanted, in ms. While the database is away, there is no answer. */
async function reach<Value>(
  ask: () => Promise<Value>,
  isWanted: (value: Value) => boolean,
  seconds: number,
  what: string,
): Promise<number> {
  const startedAt = performance.now();
  await until(
    () => ask().catch(() => undefined),
    (value) => value !== undefined && isWanted(value),
    seconds * 1_000,
    what,
  );
  return performance.now() - startedAt;
}

/** How long it takes until another replica works on the first and on the last project of one that is gone, or has worked on it, in ms. */
async function takenOver(fleet: Fleet, from: ReadonlyMap<number, string>, gone: string) {
  const since = performance.now();
  let first: number | undefined;
  const lost = new Set([...from].flatMap(([project, replica]) => (replica.endsWith(gone) ? [project] : [])));
  say(`${lost.size} projects were worked on by it`);
  const { size } = lost;
  const last = await reach(
    async () => {
      const [now, left] = await Promise.all([workers(fleet), fleet.sql(unfinished)]);
      const waiting = new Map(left.map(({ project, replica }) => [Number(project), String(replica ?? gone)]));
      // A turn may be over before it is seen.
      for (const project of lost)
        if (waiting.get(project)?.endsWith(gone) !== true || now.get(project)?.endsWith(gone) === false)
          lost.delete(project);
      if (lost.size < size) first ??= performance.now() - since;
      return [...lost];
    },
    (left) => left.length === 0,
    60,
    'its projects are taken over',
  );
  return { first: first ?? last, last };
}

/** All converge, and nothing was bought twice. */
async function expectConverged(fleet: Fleet, except: readonly RunningDaemon[] = []): Promise<void> {
  const { api, sql } = fleet;
  await reach(
    async () => {
      const missing = api.emulator.world.projects.filter(({ servers }) => servers.length === 0);
      return [await sql(unfinished), missing.length] as const;
    },
    ([left, missing]) => left.length === 0 && missing === 0,
    300,
    'all projects are converged',
  );
  expect(billed(api)).toEqual(ids.map(() => [1, 1]));
  // The emulator remembers its last requests only, and a busy fleet polls for long.
  expect(creations(api, ids).filter((keys) => keys > 1)).toEqual([]);
  expect([...fleet.idle].filter(([, ms]) => ms > mostIdleMs)).toEqual([]);
  for (const daemon of fleet.daemons)
    if (!except.includes(daemon) && daemon.child.exitCode === null) expect(await isReady(daemon)).toBe(true);
}

const isReady = ({ url }: RunningDaemon) =>
  fetch(`${url}/readyz`, { signal: AbortSignal.timeout(3_000) }).then(
    ({ ok }) => ok,
    () => false,
  );

const say = (line: string) => void process.stdout.write(`${line}\n`);
const s = (ms: number) => (ms / 1_000).toFixed(1);

describe('src/daemon/fleet: 100 projects at work', () => {
  test('a replica with the turns of 100 projects is killed', async () => {
    const fleet = await fleetAtWork('long_kill', { byFirst: true });
    const [victim] = fleet.daemons as [RunningDaemon];
    const before = await workers(fleet);
    await victim.end('SIGKILL');
    const { first, last } = await takenOver(fleet, before, `:${victim.child.pid}`);
    say(`kill: the first taken over after ${s(first)} s, the last after ${s(last)} s`);
    expect(first).toBeLessThan(15_000);
    expect(last).toBeLessThan(mostIdleMs);
    await expectConverged(fleet, [victim]);
  });

  test('a replica with the turns of 100 projects pauses for 2 minutes', async () => {
    const fleet = await fleetAtWork('long_stop', { byFirst: true });
    const [victim] = fleet.daemons as [RunningDaemon];
    const before = await workers(fleet);
    victim.child.kill('SIGSTOP');
    const stoppedAt = performance.now();
    const { first, last } = await takenOver(fleet, before, `:${victim.child.pid}`);
    say(`stop: the first taken over after ${s(first)} s, the last after ${s(last)} s`);
    expect(first).toBeLessThan(15_000);
    expect(last).toBeLessThan(mostIdleMs);
    await pause(Math.max(0, 120_000 - (performance.now() - stoppedAt)));
    victim.child.kill('SIGCONT');
    await reach(
      () => isReady(victim),
      (ready) => ready,
      30,
      'it is one of the fleet again',
    );
    await expectConverged(fleet);
  });

  test('the database restarts, and then stops for 60 s', async () => {
    const fleet = await fleetAtWork('long_away');
    const all = (wanted: boolean) => async () =>
      (await Promise.all(fleet.daemons.map(isReady))).every((ready) => ready === wanted);
    await server.stop('fast');
    await server.start();
    const restarted = await reach(all(true), Boolean, 60, 'all are ready after the restart');
    await server.stop('crash');
    const noticed = await reach(all(false), Boolean, 60, 'all say that they cannot work');
    await pause(60_000);
    expect(await all(false)()).toBe(true);
    await server.start();
    const back = await reach(all(true), Boolean, 60, 'all are ready again');
    say(
      `restart: ready after ${s(restarted)} s; away: noticed after ${s(noticed)} s, ready ${s(back)} s after it is back`,
    );
    expect(noticed).toBeLessThan(15_000);
    expect(back).toBeLessThan(mostIdleMs);
    await expectConverged(fleet);
  });

  test('all replicas are restarted one after the other', async () => {
    const fleet = await fleetAtWork('long_rolling');
    const old = [...fleet.daemons];
    const times: number[] = [];
    for (const each of old) {
      const next = await fleet.start();
      await reach(
        () => isReady(next),
        (ready) => ready,
        60,
        'the new one is ready',
      );
      const before = await workers(fleet);
      expect(await each.end()).toBe(0);
      expect(await fleet.sql(stranded)).toEqual([]);
      times.push((await takenOver(fleet, before, `:${each.child.pid}`)).last);
    }
    say(`rolling restart: the last project of each taken over after ${times.map(s).join(', ')} s`);
    expect(Math.max(...times)).toBeLessThan(15_000);
    await expectConverged(fleet, old);
  });
});
