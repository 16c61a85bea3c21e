import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import type { GitUrl } from './git-url.ts';
import { SourceError } from './source.ts';

/** One call of git may take so long, in real ms, and say so much. */
const timeoutMs = 120_000;
const mostOutputBytes = 4 * 1024 * 1024;

export interface GitAccess {
  readonly url: GitUrl;
  /** For https; read anew for each call. Stands in the child's environment alone, never in argv. */
  readonly token: (() => string) | undefined;
  /** Sent beside the token; most forges take any. */
  readonly user: string;
  /** For ssh: the private key's file, and the known hosts'. The agent's and the user's where left out. */
  readonly sshKeyFile: string | undefined;
  readonly sshKnownHostsFile: string | undefined;
  /** Public keys that may sign, in ssh's `allowed_signers` form; every commit has to be signed then. */
  readonly allowedSignersFile: string | undefined;
  /** The caller's, for PATH, HOME, proxies and certificates; what would steer git is left out. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * The `git` program on one bare repository. Nothing is ever checked out: there is no work
 * tree, so no hook, no filter, no submodule and no symbolic link of the repository has a
 * place to act in. Of the machine's own configuration of git nothing is read.
 */
export class GitProgram {
  readonly #folder: string;
  readonly #access: GitAccess;

  constructor(folder: string, access: GitAccess) {
    this.#folder = folder;
    this.#access = access;
  }

  /** Makes the repository where it is not there yet. */
  async prepare(signal: AbortSignal): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await this.run(['init', '--quiet', '--bare', '--template=', '.'], signal);
  }

  /** Standard output. @throws SourceError with what git said; never what the environment held. */
  async run(args: readonly string[], signal: AbortSignal): Promise<string> {
    return (await this.bytes(args, signal)).toString('utf8');
  }

  bytes(args: readonly string[], signal: AbortSignal): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      execFile(
        'git',
        [...fixedSettings(this.#access), ...args],
        {
          cwd: this.#folder,
          env: environmentOf(this.#access),
          encoding: 'buffer',
          timeout: timeoutMs,
          maxBuffer: mostOutputBytes,
          killSignal: 'SIGKILL',
          signal,
        },
        (error, stdout, stderr) => {
          if (error === null) return resolve(stdout);
          if (signal.aborted) return reject(signal.reason);
          reject(new SourceError(`git ${args[0]}: ${failureOf(error, stderr)}`));
        },
      );
    });
  }
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
    ...(allowedSignersFile === undefined
      ? []
      : ['gpg.format=ssh', `gpg.ssh.allowedSignersFile=${allowedSignersFile}`]),
  ];
  return settings.flatMap((setting) => ['-c', setting]);
}

/** What git and ssh need of the machine, and nothing that would change what git does. */
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

/** For the shell that git hands the command to. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function failureOf(error: Error & { killed?: boolean; code?: unknown }, stderr: Buffer): string {
  if (error.code === 'ENOENT') return 'the program git is not installed';
  if (error.killed === true) return `no end after ${timeoutMs / 1000} s, or too much output`;
  const said = stderr
    .toString('utf8')
    .replace(/[\p{Cc}\p{Cf}]+/gu, ' ')
    .trim();
  return said === '' ? `it ended with ${String(error.code)}` : said.slice(-400);
}
