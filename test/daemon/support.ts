import { spawn } from 'node:child_process';
import { chmodSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { onTestFailed, onTestFinished } from 'vitest';
import type * as z from 'zod';
import { type RunningEmulator, type ServeOptions, startEmulator } from '../../src/emulator/http-server.ts';
import type { ProjectView } from '../../src/view/project-view.ts';
import { daemonStatusSchema } from '../../tools/daemon-status-schema.ts';
import { ended, folderWith, start } from '../cli/run.ts';
import { builtCommand } from '../support/built.ts';
import { receiver } from '../support/receiver.ts';

/** A minute of the API in a second: fast, and slow enough for a busy machine to follow. */
export const speed = 60;

/** The real emulator over HTTP, until the test ends. */
export async function emulate(options: ServeOptions = {}): Promise<RunningEmulator> {
  const running = await startEmulator({ speed, ...options });
  onTestFinished(() => running.close());
  return running;
}

export interface Project extends ProjectView {
  /** Of the daemon, which is always there. */
  readonly daemon: NonNullable<ProjectView['daemon']>;
}

export interface Status extends Pick<z.infer<typeof daemonStatusSchema>, 'ready' | 'not_ready' | 'source'> {
  readonly projects: readonly Project[];
}

/** The body of a notification, as far as tests read it. */
export interface Notified {
  readonly project: number;
  readonly event: string;
  readonly condition?: string;
  readonly detail: string;
  readonly resolve?: readonly string[];
}

export type RunningDaemon = Awaited<ReturnType<typeof startDaemon>>;

export interface DaemonOptions {
  readonly spec?: string;
  readonly folder?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The speed of the emulator, where it is another one. */
  readonly speed?: number;
  /** The main file of another release. */
  readonly program?: string;
}

/** The real command line as a process of its own, until the test ends. */
export async function startDaemon(api: RunningEmulator, options: DaemonOptions = {}) {
  const folder = options.folder ?? folderWith();
  const file = join(folder, 'vdcsync.yaml');
  if (options.spec !== undefined) writeFileSync(file, options.spec);
  writeFileSync(join(folder, 'profile.yaml'), `time_scale: ${options.speed ?? speed}\n`);
  const notifications = await receiver<Notified>();
  const args = ['run', '--listen', '127.0.0.1:0', '--interval', '2m', ...(options.args ?? [])];
  const child = start(args, {
    ...{ cwd: folder, program: options.program },
    env: {
      VDC_BASE_URL: api.baseUrl,
      VDC_TOKEN: api.projects[0]?.tokens.readWrite ?? '',
      VDCSYNC_API_PROFILE: 'profile.yaml',
      VDCSYNC_ALLOW_EPHEMERAL_STATE: '1',
      VDCSYNC_TOKEN_ENV_PREFIX: 'TOKEN_',
      VDCSYNC_NOTIFY_URL: notifications.url,
      LOG_FORMAT: 'json',
      ...options.env,
    },
  });
  let text = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  onTestFailed(() => void process.stderr.write(`The last log lines in ${folder}:\n${text.slice(-3_000)}\n`));
  /** Everything it has logged so far, one object a line. */
  const log = () =>
    text
      .split('\n')
      .slice(0, -1)
      .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Record<string, unknown>] : []));
  const serving = await until(
    async () => {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${text}`);
      return log().find(({ msg }) => msg === 'vdcsync runs');
    },
    (line) => line !== undefined,
  );
  const url = `http://127.0.0.1:${String(serving?.port)}`;
  const httpToken = options.env?.VDCSYNC_HTTP_TOKEN;
  const headers = {
    // A kept connection may end while a busy machine sends the next request on it.
    connection: 'close',
    ...(httpToken === undefined ? {} : { authorization: `Bearer ${httpToken}` }),
  };
  const get = (path: string) => fetch(`${url}${path}`, { headers });
  /** Throws if the answer does not fit its schema. */
  const status = async (): Promise<Status> => {
    const answer = await (await get('/status')).json();
    return daemonStatusSchema.parse(answer) as Status;
  };
  /** The first project of the first status that `wanted` likes. */
  const untilWanted = async (wanted: (project: Project, status: Status) => boolean | null) => {
    const found = await until(
      status,
      (each) => each.projects[0] !== undefined && wanted(each.projects[0], each) === true,
      longestMs,
      wanted,
    );
    return found.projects[0] as Project;
  };
  return {
    ...{ folder, child, url, log, status, until: untilWanted },
    /** The notifications that it has sent so far. */
    notified: notifications.bodies,
    metrics: async () => (await get('/metrics')).text(),
    /** Whether `/readyz` answers 200. */
    ready: async () => (await get('/readyz')).ok,
    /** The first project after so many further reconciliations. */
    async reconciled(times: number) {
      const before = (await untilWanted(() => true)).daemon.reconciliations;
      return untilWanted(({ daemon }) => daemon.reconciliations >= before + times);
    },
    write(spec: string) {
      // At once, as editors save: a file that is written in place can be read while it is empty.
      writeFileSync(`${file}.new`, spec);
      renameSync(`${file}.new`, file);
    },
    /** Sends a signal and gives the exit code. */
    async end(signal: NodeJS.Signals = 'SIGTERM') {
      child.kill(signal);
      return exited;
    },
  };
}

/** An emulator, and a daemon that has made its project equal to the spec. */
export async function startConverged(
  spec: string,
  { faults = [], ...options }: Omit<DaemonOptions, 'spec'> & Pick<ServeOptions, 'faults'> = {},
) {
  const api = await emulate({ faults });
  const daemon = await startDaemon(api, { spec, ...options });
  await daemon.until(({ converged }) => converged);
  return { api, daemon };
}

/** No machine is so busy that what is to come takes longer. Real ms. */
const longestMs = 90_000;

/** Asks again and again until it is as wanted, and gives it; says what it was instead. */
export async function until<Value>(
  ask: () => Promise<Value>,
  isWanted: (value: Value) => boolean,
  withinMs = longestMs,
  /** For the message. */
  wanted: unknown = isWanted,
): Promise<Value> {
  let last: Value | undefined;
  for (const endsAt = performance.now() + withinMs; performance.now() < endsAt; ) {
    last = await ask();
    if (isWanted(last)) return last;
    await pause(100);
  }
  const found = JSON.stringify(last)?.slice(0, 3_000);
  throw new Error(`not so within ${withinMs / 1_000} s: ${String(wanted)}; it is ${found}`);
}

/** Runs a program to its end in a folder, with this input. A program may end before it has read its input. */
export async function program(
  name: string,
  args: readonly string[],
  cwd: string,
  input = '',
): Promise<string> {
  const child = spawn(name, args, { cwd, env: { ...process.env, ...gitIdentity } });
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const { code, stdout, stderr } = await ended(child);
  if (code !== 0) throw new Error(`${name} ${args.join(' ')} ended with ${String(code)}: ${stderr}`);
  return stdout.trim();
}

/** The programs of a job in CI, as a folder for its PATH: this command at the speed of the emulator, and these scripts. */
export function toolsOfJob(scripts: Readonly<Record<string, string>> = {}): string {
  const all = { vdcsync: `exec "${process.execPath}" "${builtCommand()}" "$@"`, npm: 'exit 0', ...scripts };
  const files = Object.entries(all).map(([name, script]) => [name, `#!/bin/sh\n${script}\n`]);
  const folder = folderWith({ ...Object.fromEntries(files), 'profile.yaml': `time_scale: ${speed}\n` });
  for (const name of Object.keys(all)) chmodSync(join(folder, name), 0o755);
  return folder;
}

const gitIdentity = {
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@example.com',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@example.com',
  GIT_CONFIG_GLOBAL: '/dev/null',
};

/** The live servers, networks and addresses of the emulated project. */
export function live({ emulator }: RunningEmulator) {
  const [project] = emulator.world.projects;
  if (project === undefined) throw new Error('the emulator has no project');
  return project;
}
