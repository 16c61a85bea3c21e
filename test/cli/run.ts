import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { main } from '../../src/cli/program.ts';
import type { Io } from '../../src/cli/terminal.ts';
import { type RunningEmulator, type ServeOptions, startEmulator } from '../../src/emulator/http-server.ts';
import { builtCommand } from '../support/built.ts';
import { newFolder } from '../support/folders.ts';
import { programEnv } from '../support/program-env.ts';

/** The source file of the command. */
export const mainFile = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Call {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** The main file of another release. */
  readonly program?: string | undefined;
  /** Somebody sits there, who types `input`. */
  readonly terminal?: boolean;
}

/** Starts the real command line, with nothing of the tests' own environment that it would read. */
export function start(
  args: readonly string[],
  { cwd, env = {}, program = builtCommand() }: Call,
): ChildProcess {
  const { HOME = '' } = process.env;
  return spawn(process.execPath, [program, ...args], {
    ...{ cwd, stdio: 'pipe' },
    env: { ...programEnv(), HOME, ...env },
  });
}

/** The same program without a process of its own: half a second quicker, for what needs no more. */
export async function inProcess(
  args: readonly string[],
  { cwd, env = {}, input = '', terminal = false }: Call,
): Promise<Ended> {
  const [stdin, stdout, stderr] = [Readable.from([input]), new PassThrough(), new PassThrough()];
  Object.assign(stdin, { isTTY: terminal });
  const io = { stdin, stdout, stderr, env, cwd } as unknown as Io;
  const texts = [text(stdout), text(stderr)] as const;
  const code = await main(args, io);
  stdout.end();
  stderr.end();
  const [out, err] = await Promise.all(texts);
  return { code, stdout: out, stderr: err };
}

/** Runs it to its end. */
export async function vdcsync(args: readonly string[], call: Call): Promise<Ended> {
  const child = start(args, call);
  child.stdin?.end(call.input ?? '');
  return ended(child);
}

export async function ended(child: ChildProcess): Promise<Ended> {
  const code = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (child.stdout === null || child.stderr === null) throw new Error('the child has no pipes');
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await code, stdout, stderr };
}

/** A served emulator, with the variables that commands need for its first project, and the profile with its speed. */
export interface Served extends RunningEmulator {
  readonly env: Readonly<Record<string, string>>;
  /** With the token that may only read. */
  readonly readEnv: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
}

/** The caller closes it. */
export async function serve(options: ServeOptions = {}): Promise<Served> {
  const running = await startEmulator(options);
  const { readWrite = '', read = '' } = running.projects[0]?.tokens ?? {};
  const { speed = 1 } = options;
  const common = {
    VDC_BASE_URL: running.baseUrl,
    ...(speed === 1 ? {} : { VDCSYNC_API_PROFILE: 'profile.yaml' }),
  };
  return {
    ...running,
    env: { ...common, VDC_TOKEN: readWrite },
    readEnv: { ...common, VDC_TOKEN: read },
    files: { 'profile.yaml': `time_scale: ${speed}\n` },
  };
}

/** The same until the test has ended. */
export async function served(options: ServeOptions = {}): Promise<Served> {
  const api = await serve(options);
  onTestFinished(() => api.close());
  return api;
}

/** A folder of the test's own with these files in it. */
export function folderWith(files: Readonly<Record<string, string>> = {}): string {
  const folder = newFolder('vdcsync-test-');
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

/** Everything in a folder: names, contents and times of change. */
export function contentsOf(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  return Object.fromEntries(
    names.map((name) => {
      const path = join(folder, name);
      const { mtimeMs } = statSync(path);
      return [name, statSync(path).isFile() ? `${mtimeMs} ${readFileSync(path, 'base64')}` : 'folder'];
    }),
  );
}

/** A small spec of one project: a network, an address and a server with a firewall. */
export const shop = `version: 1
project: { id: 4711 }
settings: { max_deletions: 9 }
networks:
  backend: { cidr: 10.20.0.0/24 }
ips:
  web: {}
servers:
  web-1:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 2
    memory_mb: 4096
    disk_gb: 40
    ssh_keys: [101]
    public_ipv4: { ip: web }
    network_interfaces: [backend]
    firewall: { enabled: true, policy_in: drop, rules: [] }
`;

/** A spec that one quick write fulfils. */
export const oneNetwork = `version: 1
project: { id: 4711 }
networks:
  backend: { cidr: 10.20.0.0/24 }
`;
