import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { type AddressInfo, connect, createServer as createProxy, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import type { RunningEmulator } from '../../src/emulator/http-server.ts';
import { openPostgresState } from '../../src/state/postgres.ts';
import { folderWith } from '../cli/run.ts';
import { until } from '../daemon/support.ts';
import { postgresServer } from '../support/postgres.ts';
import {
  allConverged,
  billed,
  cloud,
  creations,
  database,
  fleetOf,
  ids,
  replica,
  specs,
  withServer,
} from './rig.ts';

const server = postgresServer();

/** A task that goes on for longer than any test lasts. */
const endlessServer = faultRule({ method: 'POST', path: '/servers' }, { do: 'task', outcome: 'stuck' });

/** One statement by the operator of the database. */
async function sql(state: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: state, application_name: 'operator' });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

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
  test('connections that the database ends while tasks are polled end the reconciles, and others go on', async () => {
    const api = await cloud([endlessServer]);
    const state = await database(server, 'terminated');
    const folder = folderWith();
    specs(folder, withServer);
    // The interval would end a reconcile that only waits.
    const only = await replica(api, state, folder, { args: ['-f', 'specs', '--interval', '10h'] });
    await until(
      async () => polls(api),
      (counts) => counts.every((count) => count > 1),
      'all tasks are polled',
    );
    const before = await ownersOf(state);
    expect(before.size).toBe(ids.length);

    await sql(
      state,
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );

    const after = await until(
      () => ownersOf(state),
      (now) => ids.every((id) => now.has(id) && now.get(id) !== before.get(id)),
      'every project is worked on again',
      () => JSON.stringify(only.log().slice(-15)),
    );
    expect(after.size).toBe(ids.length);
    const polled = polls(api);
    await until(
      async () => polls(api),
      (counts) => counts.every((count, index) => count > (polled[index] ?? 0)),
      'all tasks are polled again',
    );
    expect(creations(api)).toEqual(ids.map(() => 1));
    expect(billed(api).every(([servers = 0]) => servers <= 1)).toBe(true);
    expect((await fleetOf(only)).projects.every(({ worker }) => worker !== null)).toBe(true);
  });

  test('a leader that is stopped in mid-work is replaced, and sends nothing when it goes on', async () => {
    const api = await cloud();
    const state = await database(server, 'hung');
    const [one, two] = [folderWith(), folderWith()];
    specs(one);
    specs(two);
    // Neither may take all of them.
    const args = ['-f', 'specs', '--interval', '10h', '--parallel', '2'];
    const way = await wayTo(api);
    const hung = await replica(api, state, one, { args, env: { VDC_BASE_URL: way.baseUrl } });
    await allConverged(api, hung);
    const other = await replica(api, state, two, { args });
    const { replica: name } = await fleetOf(other);
    specs(one, withServer);
    specs(two, withServer);
    await until(
      () => ownersOf(state),
      (owners) => owners.size > 0,
      'a project is reconciled',
    );
    // With an answer on its way.
    await way.at(1, () => void hung.child.kill('SIGSTOP'));
    const frozen = await ownersOf(state);
    expect(frozen.size).toBeGreaterThan(0);

    await until(
      () => ownersOf(state),
      (now) => [...frozen].every(([project, pid]) => now.get(project) !== pid),
      'its projects are taken from it',
    );
    await until(
      () => fleetOf(other),
      ({ leads }) => leads,
      'the other one leads',
    );
    await until(
      async () => [billed(api), (await fleetOf(other)).projects] as const,
      ([found, projects]) =>
        found.every(([servers]) => servers === 1) &&
        projects.every(({ condition, worker }) => condition === 'converged' && worker === null) &&
        projects.every(
          ({ id, last_reconciliation }) => !frozen.has(id) || last_reconciliation?.replica === name,
        ),
      'every project has its server',
    );

    const before = way.writes();
    hung.child.kill('SIGCONT');
    await until(
      () => fetch(`${hung.url}/readyz`).then(({ status }) => status),
      (status) => status === 200,
      'it is one of the fleet again',
    );
    await pause(3_000);
    expect((await fleetOf(hung)).leads).toBe(false);
    expect(way.writes()).toBe(before);
    expect(billed(api)).toEqual(ids.map(() => [1, 1]));
    expect(creations(api)).toEqual(ids.map(() => 1));
  });

  test('a replica whose messages to the database are lost is replaced, and sends nothing once they arrive again', async () => {
    const api = await cloud();
    const state = await database(server, 'black_hole');
    const [one, two] = [folderWith(), folderWith()];
    specs(one);
    specs(two);
    const args = ['-f', 'specs', '--interval', '10h', '--parallel', '2'];
    const [toApi, toDatabase] = [await wayTo(api), await wayToDatabase(server.port)];
    const url = new URL(state);
    url.port = String(toDatabase.port);
    const cut = await replica(api, url.href, one, { args, env: { VDC_BASE_URL: toApi.baseUrl } });
    await allConverged(api, cut);
    const other = await replica(api, state, two, { args });
    specs(one, withServer);
    specs(two, withServer);
    // With an answer of the API on its way.
    await until(
      () => ownersOf(state),
      (owners) => owners.size > 0,
      'a project is reconciled',
    );
    await toApi.at(1, () => toDatabase.hold());
    const since = performance.now();
    await until(
      async () => [billed(api), (await fleetOf(other)).projects, (await fleetOf(other)).leads] as const,
      ([found, projects, leads]) =>
        leads &&
        found.every(([servers]) => servers === 1) &&
        projects.every(({ condition, worker }) => condition === 'converged' && worker === null),
      'the other one leads, and every project has its server',
    );
    process.stdout.write(
      `black hole: all done elsewhere after ${Math.round(performance.now() - since)} ms\n`,
    );
    const ready = () => fetch(`${cut.url}/readyz`).then(({ status }) => status);
    expect(await ready()).toBe(503);
    const before = toApi.writes();
    toDatabase.release();
    await until(ready, (status) => status === 200, 'it is one of the fleet again');
    await pause(3_000);
    expect(toApi.writes()).toBe(before);
    expect(billed(api)).toEqual(ids.map(() => [1, 1]));
    expect(creations(api)).toEqual(ids.map(() => 1));
  });

  test('a project whose state cannot be read delays no other one, and is tried less and less often', async () => {
    const api = await cloud();
    const state = await database(server, 'poisoned');
    const folder = folderWith();
    specs(folder);
    const args = ['-f', 'specs', '--interval', '10h', '--parallel', '1'];
    const only = await replica(api, state, folder, { args });
    await allConverged(api, only);
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
    await until(attempts, (count) => count >= 3, 'the project has failed and failed again');
    await until(
      async () => api.emulator.world.projects.slice(1),
      (others) => others.every(({ networks }) => networks.some(({ name }) => name === 'extra')),
      'the edits of the others are carried out',
    );
    expect(await fetch(`${only.url}/readyz`).then(({ status }) => status)).toBe(200);
    const [before, since] = [await attempts(), performance.now()];
    await pause(10_000);
    // Each time after twice as long: 1, 2, 4, 8 s.
    const made = (await attempts()) - before;
    expect(made).toBeLessThanOrEqual(Math.ceil((performance.now() - since) / 2_000));
  });

  test('a state that another process holds blocks no place: the project is given back, and tried again', async () => {
    const api = await cloud();
    const state = await database(server, 'held');
    const folder = folderWith();
    specs(folder);
    // As a command of the operator holds it.
    const holder = await openPostgresState(`${state}?state=4711`, {
      mode: 'write',
      now: 1,
      lineage: 'operator',
    });
    const only = await replica(api, state, folder, { args: ['-f', 'specs', '--parallel', '1'] });
    const converged = async () =>
      (await fleetOf(only)).projects.filter(({ condition }) => condition === 'converged').map(({ id }) => id);
    await until(
      converged,
      (done) => done.length === ids.length - 1,
      'the others are worked on',
      () => JSON.stringify(only.log().slice(-15)),
    );
    expect(await converged()).not.toContain(4711);
    expect((await only.status()).projects.find(({ project }) => project.id === 4711)?.daemon.error).toBe(
      null,
    );
    await holder.close();
    await allConverged(api, only);
  });

  test.each([
    ['that cannot reach the API', { VDC_BASE_URL: 'http://127.0.0.1:9/v1' }],
    ['that has no tokens', Object.fromEntries(ids.map((id) => [`TOKEN_${id}`, '']))],
  ])('a replica %s says so, and its projects converge elsewhere', async (name, env) => {
    const api = await cloud();
    const state = await database(server, `bad_${name.length}`);
    const [one, two] = [folderWith(), folderWith()];
    specs(one);
    specs(two);
    const bad = await replica(api, state, one, { env });
    const good = await replica(api, state, two);
    const since = performance.now();
    await allConverged(api, good);
    expect(performance.now() - since).toBeLessThan(60_000);
    await until(
      () => fetch(`${bad.url}/readyz`).then(({ status }) => status),
      (status) => status === 503,
      'it is not ready',
    );
    const { replica: own } = await fleetOf(good);
    await until(
      () => fleetOf(good),
      ({ projects }) => projects.every(({ last_reconciliation: last }) => last?.replica === own),
      'the other one works on everything',
    );
  });

  test('a replica whose database is gone says so, and one that follows is ready once it is back', async () => {
    const api = await cloud();
    const state = await database(server, 'away');
    const [one, two] = [folderWith(), folderWith()];
    specs(one);
    specs(two);
    const replicas = [await replica(api, state, one), await replica(api, state, two)];
    for (const each of replicas) await allConverged(api, each);
    const ready = () => Promise.all(replicas.map(({ url }) => fetch(`${url}/readyz`).then(({ ok }) => ok)));
    await until(
      () => ready(),
      (all) => !all.includes(false),
      'both are ready at first',
    );

    await server.stop('crash');
    await until(
      () => ready(),
      (all) => !all.includes(true),
      'both say that they cannot work',
    );
    // Long enough for the pauses between two tries to become long.
    await pause(15_000);
    await server.start();
    await until(
      () => ready(),
      (all) => !all.includes(false),
      'both are ready',
    );
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

/** A way to the API that counts what goes through it. */
async function wayTo({ baseUrl }: RunningEmulator) {
  let onRequest: (count: number) => void = () => {};
  const target = new URL(baseUrl);
  let [count, writes] = [0, 0];
  const proxy = createServer((incoming, outgoing) => {
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
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const { port } = proxy.address() as AddressInfo;
  const own = new URL(baseUrl);
  own.port = String(port);
  return {
    baseUrl: own.href,
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
  const proxy = createProxy((near) => {
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
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  return {
    port: (proxy.address() as AddressInfo).port,
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
