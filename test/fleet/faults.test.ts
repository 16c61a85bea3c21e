import { request } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import type { RunningEmulator } from '../../src/emulator/http-server.ts';
import { openPostgresState } from '../../src/state/postgres.ts';
import type { RunningDaemon } from '../daemon/support.ts';
import { postgresServer } from '../support/postgres.ts';
import { portOf, serving } from '../support/serving.ts';
import {
  allConverged,
  billed,
  cloud,
  conditionsOf,
  creations,
  database,
  eachOf,
  expectBoughtOnce,
  fleetOf,
  folderOfSpecs,
  ids,
  lastReplicasOf,
  projectsWith,
  replica,
  restingFleet,
  specs,
  sql,
  withServer,
  workersOf,
} from './rig.ts';

const server = postgresServer();

/** A task that goes on for longer than any test lasts. */
const endlessServer = faultRule({ method: 'POST', path: '/servers' }, { do: 'task', outcome: 'stuck' });

const owners = `SELECT s.project_id AS project, l.pid FROM pg_locks l JOIN vdcsync.states s ON s.id::bigint = l.objid::bigint
  WHERE l.locktype = 'advisory' AND l.granted AND s.project_id IS NOT NULL
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

async function ownersOf(state: string): Promise<ReadonlyMap<number, number>> {
  return new Map((await sql(state, owners)).map(({ project, pid }) => [Number(project), Number(pid)]));
}

/** How often the task of each project's server was read. */
const polls = ({ emulator }: RunningEmulator) =>
  ids.map(
    (id) => emulator.requests.filter(({ project, url }) => project === id && url.includes('/tasks/')).length,
  );

describe('src/daemon/fleet', () => {
  test('a connection that the database ends during a poll ends its reconciliation, and another one continues', async () => {
    const api = await cloud([endlessServer]);
    const state = await database(server, 'terminated');
    const folder = folderOfSpecs(withServer);
    // The interval would end a reconcile that only waits.
    const only = await replica(api, state, folder, { args: ['-f', 'specs', '--interval', '10h'] });
    await expect.poll(() => polls(api).every((count) => count > 1)).toBe(true);
    const before = await ownersOf(state);
    expect(before.size).toBe(ids.length);

    await sql(
      state,
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );

    const isOther = async (id: number) =>
      ![undefined, before.get(id)].includes((await ownersOf(state)).get(id));
    for (const id of ids) await expect.poll(() => isOther(id)).toBe(true);
    const polled = polls(api);
    await expect.poll(() => polls(api).every((count, index) => count > (polled[index] ?? 0))).toBe(true);
    expect(creations(api)).toEqual(eachOf(1));
    expect(billed(api).every(([servers = 0]) => servers <= 1)).toBe(true);
    expect(await workersOf(only)).not.toContain(null);
  });

  test('a leader that pauses during its work is replaced, and sends nothing when it continues', async () => {
    const { api, state, way, leader: hung, other } = await leaderAtWork('hung');
    const { replica: name } = await fleetOf(other);
    // With an answer on its way.
    await way.at(1, () => void hung.child.kill('SIGSTOP'));
    const frozen = await ownersOf(state);
    expect(frozen.size).toBeGreaterThan(0);

    for (const [project, pid] of frozen)
      await expect.poll(async () => (await ownersOf(state)).get(project)).not.toBe(pid);
    await expectTakenOver(api, other);
    const last = async () => (await lastReplicasOf(other)).filter((_, at) => frozen.has(ids[at] ?? 0));
    await expect.poll(last).toEqual([...frozen].map(() => name));

    const before = way.writes();
    hung.child.kill('SIGCONT');
    await expect.poll(hung.ready).toBe(true);
    await pause(3_000);
    expect((await fleetOf(hung)).leads).toBe(false);
    expect(way.writes()).toBe(before);
    expectBoughtOnce(api);
  });

  test('a replica that the database does not hear is replaced, and sends nothing after its reconnection', async () => {
    const toDatabase = await wayToDatabase(server.port);
    const { api, way, leader: cut, other } = await leaderAtWork('black_hole', toDatabase.port);
    // With an answer of the API on its way.
    await way.at(1, () => toDatabase.hold());
    const since = performance.now();
    await expectTakenOver(api, other);
    process.stdout.write(
      `black hole: all done elsewhere after ${Math.round(performance.now() - since)} ms\n`,
    );
    expect(await cut.ready()).toBe(false);
    const before = way.writes();
    toDatabase.release();
    await expect.poll(cut.ready).toBe(true);
    await pause(3_000);
    expect(way.writes()).toBe(before);
    expectBoughtOnce(api);
  });

  test('a project with an unreadable state delays no other project, and is tried with a back-off', async () => {
    const args = ['-f', 'specs', '--interval', '10h', '--parallel', '1'];
    const { api, state, folder, first: only } = await restingFleet(server, 'poisoned', { args });
    await sql(
      state,
      "UPDATE vdcsync.claims SET body = 'no JSON' WHERE state_id = (SELECT id FROM vdcsync.states WHERE project_id = 4711)",
    );
    specs(folder, '  extra: { cidr: 10.21.0.0/24 }\n');
    const attempts = async () => {
      const [job] = await sql(
        state,
        "SELECT max(retry_count) AS count FROM vdcsync_jobs.job_common WHERE singleton_key = '4711' AND state = 'retry'",
      );
      return Number(job?.count ?? 0);
    };
    await expect.poll(attempts).toBeGreaterThanOrEqual(3);
    await expect.poll(() => projectsWith(api)).toEqual(ids.slice(1));
    expect(await only.ready()).toBe(true);
    const [before, since] = [await attempts(), performance.now()];
    await pause(10_000);
    // Each time after twice as long: 1, 2, 4, 8 s.
    const made = (await attempts()) - before;
    expect(made).toBeLessThanOrEqual(Math.ceil((performance.now() - since) / 2_000));
  });

  test('a state that another process owns blocks no place: the project returns to the queue', async () => {
    const api = await cloud();
    const state = await database(server, 'held');
    const folder = folderOfSpecs();
    // As a command of the operator holds it.
    const holder = await openPostgresState(`${state}?state=4711`, {
      mode: 'write',
      now: 1,
      lineage: 'operator',
    });
    const only = await replica(api, state, folder, { args: ['-f', 'specs', '--parallel', '1'] });
    const others = ids.slice(1).map(() => 'converged');
    await expect
      .poll(() => conditionsOf(only))
      .toEqual([expect.not.stringContaining('converged'), ...others]);
    expect((await only.status()).projects.find(({ project }) => project.id === 4711)?.daemon.error).toBe(
      null,
    );
    await holder.close();
    await allConverged(api, only);
  });

  test('a replica without API access or tokens reports its error, and its projects converge on other replicas', async () => {
    const api = await cloud();
    const state = await database(server, 'bad');
    const environments = [
      { VDC_BASE_URL: 'http://127.0.0.1:9/v1' },
      Object.fromEntries(ids.map((id) => [`TOKEN_${id}`, ''])),
    ];
    const bad: RunningDaemon[] = [];
    for (const env of environments) bad.push(await replica(api, state, folderOfSpecs(), { env }));
    const good = await replica(api, state, folderOfSpecs());
    const since = performance.now();
    await allConverged(api, good);
    expect(performance.now() - since).toBeLessThan(60_000);
    for (const each of bad) await expect.poll(each.ready).toBe(false);
    const { replica: own } = await fleetOf(good);
    await expect.poll(() => lastReplicasOf(good)).toEqual(eachOf(own));
  });

  test('a replica without its database is not ready, and is ready once the database returns', async () => {
    const { api, state, first } = await restingFleet(server, 'away');
    const replicas = [first, await replica(api, state, folderOfSpecs())];
    for (const each of replicas) await allConverged(api, each);
    const ready = () => Promise.all(replicas.map((each) => each.ready()));
    await expect.poll(ready).toEqual([true, true]);

    await server.stop('crash');
    await expect.poll(ready).toEqual([false, false]);
    // Long enough for the pauses between two tries to become long.
    await pause(15_000);
    await server.start();
    await expect.poll(ready).toEqual([true, true]);
    const said = replicas.flatMap((each) => each.log()).map((line) => JSON.stringify(line));
    expect(said.filter((line) => line.includes('This is a bug'))).toEqual([]);
    // Readers go one after the other on one connection, however many look at the board.
    const [{ count }] = (await sql(
      state,
      "SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'vdcsync'",
    )) as [{ count: number }];
    expect(count).toBeLessThanOrEqual(2 * (4 + 2 + 2));
  });
});

/**
 * A replica that leads and has begun to buy a server for each project, and another one. The requests of the first one go
 * through a way that counts them, and its messages to the database to this port.
 */
async function leaderAtWork(name: string, databasePort = server.port) {
  const [api, state] = [await cloud(), await database(server, name)];
  const [one, two] = [folderOfSpecs(), folderOfSpecs()];
  // Neither may take all of them.
  const args = ['-f', 'specs', '--interval', '10h', '--parallel', '2'];
  const [way, url] = [await wayTo(api), new URL(state)];
  url.port = String(databasePort);
  const leader = await replica(api, url.href, one, { args, env: { VDC_BASE_URL: way.baseUrl } });
  await allConverged(api, leader);
  const other = await replica(api, state, two, { args });
  for (const folder of [one, two]) specs(folder, withServer);
  await expect.poll(async () => (await ownersOf(state)).size).toBeGreaterThan(0);
  return { api, state, way, leader, other };
}

/** The other replica leads, and every project has its server. */
async function expectTakenOver(api: RunningEmulator, other: RunningDaemon): Promise<void> {
  await expect.poll(() => billed(api).map(([servers]) => servers)).toEqual(eachOf(1));
  const project = { condition: 'converged', worker: null };
  await expect.poll(() => fleetOf(other)).toMatchObject({ leads: true, projects: eachOf(project) });
}

/** A way to the API that counts what goes through it. */
async function wayTo({ baseUrl }: RunningEmulator) {
  let onRequest: (count: number) => void = () => {};
  const target = new URL(baseUrl);
  let [count, writes] = [0, 0];
  const origin = await serving((incoming, outgoing) => {
    count += 1;
    if (incoming.method !== 'GET') writes += 1;
    const { method, url: path, headers } = incoming;
    const { hostname, port } = target;
    const passed = request({ hostname, port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
      onRequest(count);
    });
    passed.on('error', () => outgoing.destroy());
    incoming.pipe(passed);
  });
  return {
    baseUrl: `${origin}${target.pathname}`,
    writes: () => writes,
    /** Resolves when `act` was done, while the answer to one of the next requests is on its way. */
    at: (further: number, act: () => void) =>
      new Promise<void>((resolve) => {
        const wanted = count + further;
        onRequest = (now) => {
          if (now < wanted) return;
          onRequest = () => {};
          act();
          resolve();
        };
      }),
  };
}

/** A way to the database that can hold everything back, also new connections, without an end of any connection. */
async function wayToDatabase(target: number) {
  let open = true;
  let waiting: (() => void)[] = [];
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  };
  const proxy = createServer((near) => {
    keep(near);
    const join = () => {
      const far = connect(target, '127.0.0.1');
      keep(far);
      near.pipe(far);
      far.pipe(near);
      near.on('close', () => far.destroy());
      far.on('close', () => near.destroy());
    };
    if (open) join();
    else waiting.push(join);
  });
  const port = await portOf(proxy);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return {
    port,
    hold: () => {
      open = false;
      for (const socket of sockets) socket.pause();
    },
    release: () => {
      open = true;
      for (const socket of sockets) socket.resume();
      for (const join of waiting) join();
      waiting = [];
    },
  };
}
