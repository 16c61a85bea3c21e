import { type ExecFileException, execFile } from 'node:child_process';
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { maskerOf } from '../../core/hidden-texts.ts';
import type { GitUrl } from './git-url.ts';
import { SourceError } from './source.ts';

/** The limits of one call of git: time in real ms, and size of its output. */
const timeoutMs = 120_000;
const mostOutputBytes = 4 * 1024 * 1024;

/** The complete configuration of the repository. A fetch with a filter adds to it, and vdcsync removes the addition. */
const ownConfiguration = '[core]\n\trepositoryformatversion = 0\n\tbare = true\n';
/** The unit of `ulimit -f`, by POSIX. */
const blockBytes = 512;
/** With less room than this a fetch is not begun. */
const leastRoomBytes = 256 * 1024;

export interface GitAccess {
  readonly url: GitUrl;
  /** For https. Read again for each call. The token is only in the child's environment, never in argv. */
  readonly token: (() => string) | undefined;
  /** Sent with the token. Most forges accept any user name. */
  readonly user: string;
  /** For ssh: the files of the private key and of the known hosts. Without them: the agent's key and the user's hosts. */
  readonly sshKeyFile: string | undefined;
  readonly sshKnownHostsFile: string | undefined;
  /** Public keys that may sign, in ssh's `allowed_signers` form; every commit has to be signed then. */
  readonly allowedSignersFile: string | undefined;
  /**
   * The environment of the caller, for PATH, HOME, proxies and certificates. Variables that would change git's
   * behaviour are left out.
   */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * The `git` program on one bare repository. Nothing is ever checked out: there is no work
 * tree, so no hook, no filter, no submodule and no symbolic link of the repository has a
 * place to act in. Of the machine's own configuration of git nothing is read.
 *
 * The repository may lack files that a fetch has left out. Git takes them for damage then
 * and does not ask the remote for them.
 */
export class GitProgram {
  readonly #folder: string;
  readonly #access: GitAccess;
  readonly #mostBytes: number;
  readonly #signal: AbortSignal;

  /** `mostBytes`: how much the repository may take on the disk. `signal` ends each call. */
  constructor(folder: string, access: GitAccess, mostBytes: number, signal: AbortSignal) {
    this.#folder = folder;
    this.#access = access;
    this.#mostBytes = mostBytes;
    this.#signal = signal;
  }

  /** Makes the repository where it is not there yet. */
  async prepare(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await this.run('init', '--quiet', '--bare', '--template=', '.');
    await this.#writeConfiguration();
  }

  /** Returns standard output. @throws SourceError with git's error text, without values of the environment. */
  async run(...args: readonly string[]): Promise<string> {
    return (await this.bytes(...args)).toString('utf8');
  }

  bytes(...args: readonly string[]): Promise<Buffer> {
    return this.#start('git', [...fixedSettings(this.#access), ...args], `git ${args[0]}`);
  }

  /**
   * Checks that an allowed signer made the signature, and that its key or certificate is valid now.
   *
   * @throws SourceError otherwise
   */
  async checkSignerNow(signature: string): Promise<void> {
    const { allowedSignersFile = '' } = this.#access;
    const file = join(this.#folder, 'vdcsync-signature');
    await writeFile(file, signature, { mode: 0o600 });
    try {
      const args = ['-Y', 'find-principals', '-s', file, '-f', allowedSignersFile];
      await this.#start('ssh-keygen', args, 'ssh-keygen');
    } finally {
      await rm(file, { force: true });
    }
  }

  /** Begins with an empty repository again. */
  async empty(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    await this.prepare();
  }

  /**
   * Runs `git fetch`. The operating system ends the fetch if it brings more data than there is room for.
   *
   * @throws TooLargeError in that case; SourceError otherwise.
   */
  async fetchBounded(...args: readonly string[]): Promise<void> {
    // A fetch that was killed leaves its files behind.
    await this.#removeUnfinished();
    const roomBytes = this.#mostBytes - (await this.#sizeBytes());
    if (roomBytes < leastRoomBytes) throw new TooLargeError(this.#mostBytes);
    const blocks = Math.floor(roomBytes / blockBytes);
    const limited = ['-c', 'ulimit -f "$1" && shift && exec git "$@"', 'sh', String(blocks)];
    const command = [...limited, ...fixedSettings(this.#access), 'fetch', ...args];
    try {
      await this.#start('sh', command, 'git fetch');
    } catch (error) {
      if ((await this.#largestUnfinished()) < blocks * blockBytes) throw error;
      throw new TooLargeError(this.#mostBytes);
    } finally {
      await this.#removeUnfinished();
      await this.#writeConfiguration();
    }
  }

  async #sizeBytes(): Promise<number> {
    const entries = await readdir(this.#folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    const sizes = await Promise.all(files.map(({ parentPath, name }) => sizeOf(join(parentPath, name))));
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  async #start(program: string, args: readonly string[], name: string): Promise<Buffer> {
    const signal = this.#signal;
    const running = promisify(execFile)(program, [...args], {
      cwd: this.#folder,
      env: environmentOf(this.#access),
      encoding: 'buffer',
      timeout: timeoutMs,
      maxBuffer: mostOutputBytes,
      killSignal: 'SIGKILL',
      signal,
    });
    const { stdout } = await running.catch((error: ExecFileException & { readonly stderr: Buffer }) => {
      if (signal.aborted) throw signal.reason;
      throw new SourceError(`${name}: ${masked(this.#access)(failureOf(error))}`);
    });
    return stdout;
  }

  async #writeConfiguration(): Promise<void> {
    await writeFile(join(this.#folder, 'config'), ownConfiguration);
  }

  async #unfinished(): Promise<string[]> {
    const packs = join(this.#folder, 'objects', 'pack');
    const names = await readdir(packs).catch(() => []);
    return names.filter((name) => name.startsWith('tmp_')).map((name) => join(packs, name));
  }

  async #largestUnfinished(): Promise<number> {
    return Math.max(0, ...(await Promise.all((await this.#unfinished()).map(sizeOf))));
  }

  async #removeUnfinished(): Promise<void> {
    for (const path of await this.#unfinished()) await rm(path, { force: true });
  }
}

/** The repository has no room for the data of a fetch. */
export class TooLargeError extends SourceError {
  constructor(mostBytes: number) {
    super(
      `the newest commit takes more than the ${Math.round(mostBytes / 1024 ** 2)} MiB that vdcsync keeps of a repository. ` +
        'The last valid commit, if there is one, stays in force. Keep the spec in a repository of its own, or on a server that ' +
        'can leave large files out of a fetch (uploadpack.allowFilter)',
    );
  }
}

/** A file that vanished in the meantime takes no space. */
async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

function fixedSettings({ allowedSignersFile }: GitAccess): string[] {
  const settings = [
    'core.hooksPath=/dev/null',
    'core.fsmonitor=false',
    // Another host would be given the token.
    'http.followRedirects=false',
    'http.lowSpeedLimit=100',
    'http.lowSpeedTime=60',
    'credential.helper=',
    'gc.auto=0',
    'maintenance.auto=false',
    'fetch.recurseSubmodules=false',
    'transfer.fsckObjects=true',
    // A pack stays one file, whose size is bounded.
    'fetch.unpackLimit=1',
    // Larger files pass through git in pieces and not through its memory.
    'core.bigFileThreshold=1m',
    // The format of the signature selects the program that checks it. Only the program of ssh may run, for all formats.
    ...['gpg.program', 'gpg.openpgp.program', 'gpg.x509.program'].map((name) => `${name}=false`),
    'gpg.format=ssh',
    'gpg.ssh.program=ssh-keygen',
    'gpg.minTrustLevel=fully',
    ...(allowedSignersFile === undefined ? [] : [`gpg.ssh.allowedSignersFile=${allowedSignersFile}`]),
  ];
  return settings.flatMap((setting) => ['-c', setting]);
}

/** The variables that git and ssh need. Variables that would change git's behaviour are missing. */
const passedOn = /^(PATH|HOME|LANG|LC_.*|TMPDIR|SSL_CERT_(FILE|DIR)|SSH_AUTH_SOCK|(https?|no|all)_proxy)$/i;

function environmentOf(access: GitAccess): NodeJS.ProcessEnv {
  const { url, token, user, environment } = access;
  const credential =
    token === undefined || url.origin === undefined
      ? {}
      : {
          GIT_CONFIG_COUNT: '1',
          GIT_CONFIG_KEY_0: `http.${url.origin}/.extraHeader`,
          GIT_CONFIG_VALUE_0: `Authorization: Basic ${Buffer.from(`${user}:${token()}`).toString('base64')}`,
        };
  return {
    ...Object.fromEntries(Object.entries(environment).filter(([name]) => passedOn.test(name))),
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: 'true',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ALLOW_PROTOCOL: url.protocol,
    GIT_NO_LAZY_FETCH: '1',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_SSH_COMMAND: sshCommand(access),
    LC_ALL: 'C.UTF-8',
    ...credential,
  };
}

function sshCommand({ sshKeyFile, sshKnownHostsFile }: GitAccess): string {
  const options = [
    'BatchMode=yes',
    'StrictHostKeyChecking=yes',
    'ConnectTimeout=20',
    ...(sshKeyFile === undefined ? [] : [`IdentityFile=${sshKeyFile}`, 'IdentitiesOnly=yes']),
    ...(sshKnownHostsFile === undefined ? [] : [`UserKnownHostsFile=${sshKnownHostsFile}`]),
  ];
  return ['ssh', ...options.map((option) => `-o ${quoted(option)}`)].join(' ');
}

/** Remotes and git may repeat the header that they got. */
function masked({ token, user }: GitAccess): (text: string) => string {
  return token === undefined
    ? (text) => text
    : maskerOf([token(), `${user}:${token()}`].map((value) => ({ value, shown: '***' })));
}

/** For the shell that git hands the command to. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function failureOf(error: ExecFileException & { readonly stderr: Buffer }): string {
  if (error.code === 'ENOENT') return 'the program git is not installed';
  if (error.killed === true) return `git did not end within ${timeoutMs / 1000} s, or its output is too long`;
  const said = error.stderr
    .toString('utf8')
    .replace(/[\p{Cc}\p{Cf}]+/gu, ' ')
    .trim();
  return said === '' ? `git ended with ${String(error.code)}` : said.slice(-400);
}
