import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { startEmulator } from '../src/emulator/http-server.ts';
import { OwnPostgres } from '../test/support/postgres-server.ts';

// `npm run bench:fleet -- --projects 100 --replicas 1`: real replicas, a real PostgreSQL and the emulator on this machine.
// Times are real; the API's clock runs 60 times faster.

const { values } = parseArgs({
  options: {
    projects: { type: 'string', default: '100' },
    replicas: { type: 'string', default: '1' },
    edits: { type: 'string', default: '20' },
    parallel: { type: 'string', default: '10' },
    verbose: { type: 'boolean', default: false },
    // For the first replica, such as --cpu-prof.
    'node-options': { type: 'string', default: '' },
  },
});
const [projects, replicas, edits] = [Number(values.projects), Number(values.replicas), Number(values.edits)];
const speed = 60;
const ids = Array.from({ length: projects }, (_, index) => 4_711 + index);
const specOf = (id: number, more = '') =>
  `version: 1\nproject: { id: ${id}, token_env: TOKEN_${id} }\nnetworks:\n  backend: { cidr: 10.20.0.0/24 }\n${more}`;

const say = (line: string) => void process.stdout.write(`${line}\n`);
const ended: (() => unknown)[] = [];
try {
  await bench();
} finally {
  for (const end of ended.toReversed()) await end();
}

async function bench(): Promise<void> {
  const server = new OwnPostgres(['shared_preload_libraries=pg_stat_statements']);
  await server.create();
  ended.push(() => server.remove());
  const api = await startEmulator({
    speed,
    projects: ids.map((id) => ({ id, name: `project ${id}` })),
  });
  ended.push(() => api.close());
  const folder = mkdtempSync(join(tmpdir(), 'vdcsync-fleet-'));
  ended.push(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'specs'));
  const write = (id: number, more?: string) => {
    writeFileSync(join(folder, 'new'), specOf(id, more));
    renameSync(join(folder, 'new'), join(folder, 'specs', `${id}.yaml`));
  };
  for (const id of ids) write(id);
  writeFileSync(join(folder, 'profile.yaml'), `time_scale: ${speed}\n`);
  const db = new pg.Client({ connectionString: server.url(), application_name: 'bench' });
  await db.connect();
  ended.push(() => db.end());
  await db.query('CREATE EXTENSION pg_stat_statements');
  const count = async (sql: string) => Number((await db.query(`/* bench */ ${sql}`)).rows[0]?.count ?? 0);
  const statements = () =>
    count("SELECT sum(calls) AS count FROM pg_stat_statements WHERE query NOT LIKE '%bench%'");
  const memory = "FROM vdcsync.notes WHERE name = 'daemon'";
  const converged = () =>
    count(`SELECT count(*) ${memory} AND value::jsonb->'history'->>'condition' = 'converged'`).catch(() => 0);
  const reconciliations = () =>
    count(`SELECT sum((value::jsonb->'history'->>'reconciliations')::int) AS count ${memory}`);
  const connections = () => count("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'vdcsync'");
  const sessions = () => count("SELECT sessions AS count FROM pg_stat_database WHERE datname = 'postgres'");

  const children: ChildProcess[] = [];
  const startedAt = performance.now();
  for (let at = 0; at < replicas; at += 1) {
    const tokens = ids.map((id) => [`TOKEN_${id}`, api.emulator.tokens(id).readWrite]);
    const child = spawn(
      process.execPath,
      [
        ...(at === 0 ? values['node-options'].split(' ').filter(Boolean) : []),
        join(import.meta.dirname, '..', 'src', 'cli', 'main.ts'),
        ...['run', '-f', 'specs', '--listen', 'off', '--interval', '10h', '--parallel', values.parallel],
        ...['--token-env-prefix', 'TOKEN_', '--state', server.url()],
      ],
      {
        cwd: folder,
        stdio: ['ignore', 'ignore', values.verbose ? 'inherit' : 'ignore'],
        env: {
          ...{ PATH: process.env.PATH, ...Object.fromEntries(tokens) },
          ...{ VDC_BASE_URL: api.baseUrl, VDCSYNC_API_PROFILE: 'profile.yaml' },
          VDCSYNC_ALLOW_EPHEMERAL_STATE: '1',
        },
      },
    );
    children.push(child);
    ended.push(() => child.kill('SIGKILL'));
  }
  const seconds = (since: number) => ((performance.now() - since) / 1000).toFixed(1);
  await reach(converged, projects, 'converged');
  await pause(2_000);
  say(`${projects} projects, ${replicas} replicas: converged from nothing after ${seconds(startedAt)} s`);
  say(
    `CPU ${cpu(children).toFixed(1)} s, RSS at most ${rss(children)} MB, connections ${await connections()}`,
  );

  // What only the first reconciles do is done.
  const warm = await reconciliations();
  children[0]?.kill('SIGHUP');
  await reach(reconciliations, warm + projects, 'looked at a second time');
  await pause(2_000);
  const before = {
    statements: await statements(),
    reconciliations: await reconciliations(),
    sessions: await sessions(),
  };
  const roundAt = performance.now();
  const cpuBefore = cpu(children);
  children[0]?.kill('SIGHUP');
  await reach(reconciliations, before.reconciliations + projects, 'looked at again');
  const made = (await reconciliations()) - before.reconciliations;
  say(
    `a full round: ${seconds(roundAt)} s, ${((cpu(children) - cpuBefore) / made).toFixed(3)} CPU s a reconcile`,
  );
  say(`statements a reconcile: ${(((await statements()) - before.statements) / made).toFixed(1)}`);
  say(`new connections a reconcile: ${(((await sessions()) - before.sessions) / made).toFixed(2)}`);
  if (values.verbose) {
    const { rows } = await db.query(
      "SELECT calls, left(regexp_replace(query, '\\s+', ' ', 'g'), 110) AS query FROM pg_stat_statements WHERE query NOT LIKE '%bench%' ORDER BY calls DESC LIMIT 45",
    );
    for (const { calls, query } of rows) say(`${calls} ${query}`);
  }
  await pause(3_000);
  const idle = await statements();
  await pause(10_000);
  say(`idle: ${(((await statements()) - idle) / 10).toFixed(1)} statements/s`);

  const waits: number[] = [];
  for (let at = 0; at < edits; at += 1) {
    const id = ids[Math.floor((at / edits) * ids.length)] ?? 0;
    if (at % 5 === 0) children[0]?.kill('SIGHUP');
    await pause(300);
    const { requests } = api.emulator;
    let seen = requests.at(-1);
    const editedAt = performance.now();
    write(id, `  edit-${at}: { cidr: 10.${30 + at}.0.0/24 }\n`);
    // The emulator is in this process: a search through all its requests would delay its answers.
    const isSent = () => {
      const news = requests.slice(seen === undefined ? 0 : requests.lastIndexOf(seen) + 1);
      seen = requests.at(-1);
      return news.some(({ project, method, body }) => {
        return project === id && method === 'POST' && body?.includes(`edit-${at}"`) === true;
      });
    };
    while (!isSent()) await pause(5);
    waits.push(performance.now() - editedAt);
  }
  waits.sort((a, b) => a - b);
  const [p50, p99] = [0.5, 0.99].map((share) => Math.round(waits[Math.ceil(waits.length * share) - 1] ?? 0));
  say(`an edit under full rounds → its first write: p50 ${p50} ms, p99 ${p99} ms`);
}

async function reach(ask: () => Promise<number>, wanted: number, what: string): Promise<void> {
  let last = -1;
  for (let at = 0; ; at += 1) {
    const now = await ask();
    if (now >= wanted) return;
    if (at % 50 === 0 && now !== last) say(`  ${now} of ${wanted} ${what}`);
    last = now;
    await pause(200);
  }
}

/** User and system time of processes, in s. */
function cpu(children: readonly ChildProcess[]): number {
  return children.reduce((sum, { pid }) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return sum + (Number(fields[11]) + Number(fields[12])) / 100;
  }, 0);
}

function rss(children: readonly ChildProcess[]): number {
  return Math.max(
    ...children.map(({ pid }) => {
      const [, kb = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
      return Math.round(Number(kb) / 1024);
    }),
  );
}
