import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { OwnPostgres } from '../test/support/postgres-server.ts';
import { copyState } from './fleet-copies.ts';
import { fleetSpec } from './fleet-spec.ts';
import { cpuSeconds, postgresCpuSeconds, rssMb } from './processes.ts';

// `npm run bench:fleet -- --projects 100 --replicas 1 --servers 5`: real replicas, a real PostgreSQL and the emulator on this machine, each in
// processes of its own. Times are real; the API's clock runs 60 times faster, or as fast as `--speed`. A line every ten seconds shows how far it is.

const { values } = parseArgs({
  options: {
    projects: { type: 'string', default: '100' },
    replicas: { type: 'string', default: '1' },
    // Of each project. 0: a project is one network.
    servers: { type: 'string', default: '5' },
    speed: { type: 'string', default: '60' },
    edits: { type: 'string', default: '20' },
    parallel: { type: 'string', default: '10' },
    // Begins with projects that have converged: the first one is made, and the others are copies of it.
    copies: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    // The heap limit of each replica, in MB. Node derives it from the memory of a container, and without one from the machine.
    heap: { type: 'string', default: '320' },
    // For the first replica, such as --cpu-prof. It ends in good order then.
    'node-options': { type: 'string', default: '' },
  },
});
const [projects, replicas, servers, edits] = [
  ...[values.projects, values.replicas, values.servers, values.edits].map(Number),
] as [number, number, number, number];
const speed = Number(values.speed);
const ids = Array.from({ length: projects }, (_, index) => 4_711 + index);
const [networksOf, serversOf] = fleetSpec(servers).split(/^(?=servers:)/m);
const specOf = (id: number, more = '') =>
  `version: 1\nproject: { id: ${id}, token_env: TOKEN_${id} }\n${networksOf}${more}${servers === 0 ? '' : serversOf}`;

const beganAt = performance.now();
const seconds = (since: number) => ((performance.now() - since) / 1000).toFixed(1);
const say = (line: string) => void process.stdout.write(`${seconds(beganAt).padStart(6)} s  ${line}\n`);
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
  const api = fork(join(import.meta.dirname, 'fleet-api.ts'), [JSON.stringify({ projects: ids, speed })]);
  ended.push(() => api.kill('SIGKILL'));
  const [{ baseUrl, tokens }] = (await once(api, 'message')) as [
    { readonly baseUrl: string; readonly tokens: readonly (readonly [number, string])[] },
  ];
  const folder = mkdtempSync(join(tmpdir(), 'vdcsync-fleet-'));
  ended.push(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'specs'));
  const write = (id: number, more?: string) => {
    writeFileSync(join(folder, 'new'), specOf(id, more));
    renameSync(join(folder, 'new'), join(folder, 'specs', `${id}.yaml`));
  };
  const [template = 0, ...copies] = ids;
  for (const id of values.copies ? [template] : ids) write(id);
  writeFileSync(join(folder, 'profile.yaml'), `time_scale: ${speed}\n`);
  const db = new pg.Client({ connectionString: server.url(), application_name: 'bench' });
  await db.connect();
  ended.push(() => db.end());
  await db.query('CREATE EXTENSION pg_stat_statements');
  const count = async (sql: string) =>
    // In the middle, because the server keeps the text of a statement without comments before it.
    Number((await db.query(sql.replace('SELECT', 'SELECT /* bench */'))).rows[0]?.count ?? 0);
  const statements = () =>
    count("SELECT sum(calls) AS count FROM pg_stat_statements WHERE query NOT LIKE '%bench%'");
  const memory = "FROM vdcsync.notes WHERE name = 'daemon'";
  const converged = () =>
    count(`SELECT count(*) ${memory} AND value LIKE '%"condition":"converged"%'`).catch(() => 0);
  const reconciliations = () =>
    count(`SELECT sum((value::jsonb->'history'->>'reconciliations')::int) AS count ${memory}`).catch(() => 0);
  const connections = () => count("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'vdcsync'");
  const sessions = () => count("SELECT sessions AS count FROM pg_stat_database WHERE datname = 'postgres'");

  const children: ChildProcess[] = [];
  const start = () => {
    const at = children.length;
    const more = at === 0 ? values['node-options'].split(' ').filter(Boolean) : [];
    const child = spawn(
      process.execPath,
      [
        ...[`--max-old-space-size=${values.heap}`, ...more],
        join(import.meta.dirname, '..', 'src', 'cli', 'main.ts'),
        ...['run', '-f', 'specs', '--listen', 'off', '--interval', '1000h', '--parallel', values.parallel],
        ...['--token-env-prefix', 'TOKEN_', '--state', server.url()],
      ],
      {
        cwd: folder,
        stdio: ['ignore', 'ignore', values.verbose ? 'inherit' : 'ignore'],
        env: {
          PATH: process.env.PATH,
          ...Object.fromEntries(tokens.map(([id, token]) => [`TOKEN_${id}`, token])),
          ...{ VDC_BASE_URL: baseUrl, VDCSYNC_API_PROFILE: 'profile.yaml' },
          VDCSYNC_ALLOW_EPHEMERAL_STATE: '1',
        },
      },
    );
    children.push(child);
    const exit = once(child, 'exit').then(([code]) => say(`replica ${at + 1} has ended with ${code}`));
    ended.push(() => {
      child.kill(more.length > 0 ? 'SIGTERM' : 'SIGKILL');
      return exit;
    });
    return { child, exit };
  };
  const used = () => {
    const [own, emulator] = [
      children.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0),
      cpuSeconds(api.pid),
    ];
    return { own, emulator, database: postgresCpuSeconds() };
  };
  const figures = async (since = { own: 0, emulator: 0, database: 0 }) => {
    const now = used();
    return (
      `CPU s: replicas ${(now.own - since.own).toFixed(1)}, emulator ${(now.emulator - since.emulator).toFixed(1)}, ` +
      `PostgreSQL ${(now.database - since.database).toFixed(1)}; RSS of the replicas ${children.map(({ pid }) => rssMb(pid)).join(', ')} MB`
    );
  };
  /** Asks seldom: with thousands of projects each question is work for the database. */
  const reach = async (ask: () => Promise<number>, wanted: number, what: string) => {
    let saidAt = performance.now();
    const since = used();
    for (;;) {
      const asked = performance.now();
      const now = await ask();
      if (now >= wanted) return;
      if (children.some(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null))
        throw new Error('a replica has ended');
      if (performance.now() - saidAt > 10_000) {
        saidAt = performance.now();
        say(`  ${now} of ${wanted} ${what}; ${await figures(since)}`);
      }
      await pause(Math.max(200, 20 * (performance.now() - asked)));
    }
  };
  if (values.copies) {
    const { child, exit } = start();
    await reach(converged, 1, 'converged');
    child.kill('SIGTERM');
    await exit;
    children.length = 0;
    await copyState(db, template, copies);
    api.send('copy');
    await once(api, 'message');
    for (const id of copies) write(id);
    say('copied');
  }
  const before = await reconciliations();
  const startedAt = performance.now();
  const statementsBefore = await statements();
  for (let at = 0; at < replicas; at += 1) start();
  if (values.copies) await reach(reconciliations, before + projects, 'reconciled a first time');
  else await reach(converged, projects, 'converged');
  const { own } = used();
  say(
    `${projects} projects, ${replicas} replicas: ${values.copies ? 'reconciled once from converged states' : 'converged from nothing'} after ${seconds(startedAt)} s`,
  );
  say(`${((own / projects) * 1000).toFixed(1)} ms of CPU for each project; ${await figures()}`);
  say(
    `connections: ${await connections()}; statements for each project: ${(((await statements()) - statementsBefore) / projects).toFixed(1)}`,
  );

  // What only the first reconciles do is done.
  const counting = () => db.query('SELECT /* bench */ pg_stat_statements_reset()');
  const sayCounted = async () => {
    const { rows } = await db.query(
      "SELECT calls, regexp_replace(regexp_replace(query, '\\s+', ' ', 'g'), '^(.{70}).*(.{60})$', '\\1 … \\2') AS query FROM pg_stat_statements WHERE query NOT LIKE '%bench%' ORDER BY calls DESC LIMIT 25",
    );
    for (const { calls, query } of rows) say(`${calls} ${query}`);
  };
  const round = async (what: string, idlePerS: number) => {
    const before = {
      statements: await statements(),
      reconciliations: await reconciliations(),
      sessions: await sessions(),
      used: used(),
    };
    const roundAt = performance.now();
    children[0]?.kill('SIGHUP');
    await reach(reconciliations, before.reconciliations + projects, what);
    const made = (await reconciliations()) - before.reconciliations;
    // The server counts a moment later.
    await pause(1_500);
    const counted = (await statements()) - before.statements - idlePerS * Number(seconds(roundAt));
    const cpu = (used().own - before.used.own) / made;
    say(
      `${what}: ${seconds(roundAt)} s, ${(cpu * 1000).toFixed(1)} ms of CPU for each; ${await figures(before.used)}`,
    );
    say(
      `statements for each, beside those of an idle fleet: ${(counted / made).toFixed(1)}; new connections: ${(await sessions()) - before.sessions}`,
    );
    return counted / made;
  };
  await pause(5_000);
  if (values.verbose) await counting();
  const idle = { statements: await statements(), used: used(), at: performance.now() };
  await pause(20_000);
  const idleS = (performance.now() - idle.at) / 1_000;
  const fixed = ((await statements()) - idle.statements) / idleS;
  say(
    `idle: ${fixed.toFixed(1)} statements/s and ${(((used().own - idle.used.own) / idleS) * 100).toFixed(1)} % of a core`,
  );
  if (values.verbose) await sayCounted();
  if (!values.copies) await round('reconciled a second time', fixed);
  await pause(3_000);
  if (values.verbose) await counting();
  const perReconcile = await round('reconciled once more', fixed);
  if (values.verbose) await sayCounted();
  say(`with an interval of 5 min: ${(fixed + (projects / 300) * perReconcile).toFixed(1)} statements/s`);

  if (edits === 0) return;
  const waits: number[] = [];
  for (let at = 0; at < edits; at += 1) {
    const id = ids[Math.floor((at / edits) * ids.length)] ?? 0;
    if (at % 5 === 0) children[0]?.kill('SIGHUP');
    await pause(300);
    const sent = once(api, 'message');
    api.send({ project: id, text: `edit-${at}"` });
    const editedAt = performance.now();
    write(id, `  edit-${at}: { cidr: 10.${30 + (at % 200)}.0.0/24 }\n`);
    await sent;
    waits.push(performance.now() - editedAt);
    if (at % 5 === 4)
      say(
        `  edits: ${waits
          .slice(-5)
          .map((ms) => Math.round(ms))
          .join(', ')} ms`,
      );
  }
  waits.sort((a, b) => a - b);
  const [p50, p99] = [0.5, 0.99].map((share) => Math.round(waits[Math.ceil(waits.length * share) - 1] ?? 0));
  say(`an edit under full rounds → its first write: p50 ${p50} ms, p99 ${p99} ms`);
}
