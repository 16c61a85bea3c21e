import { mkdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseDuration } from '../../core/duration.ts';
import { ConfigError } from '../../core/errors.ts';
import { Daemon } from '../../daemon/daemon.ts';
import { whyEphemeral } from '../../daemon/ephemeral.ts';
import { createApp } from '../../daemon/http/app.ts';
import { isLoopback, type Listen, parseListen } from '../../daemon/http/listen.ts';
import { startServer } from '../../daemon/http/server.ts';
import type { DaemonDeps, DaemonLogger, OpenProject, ProjectSession } from '../../daemon/ports.ts';
import { fileSource } from '../../daemon/sources/file-source.ts';
import type { SpecSource } from '../../daemon/sources/source.ts';
import { createLogger } from '../../platform/logger.ts';
import { systemClock } from '../../platform/system-clock.ts';
import { systemRandom } from '../../platform/system-random.ts';
import { openSession } from '../compose.ts';
import { baseUrlOf, type CommonFlags, logSettings, profileOf, specFiles, stateLocation } from '../config.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { secretOf } from '../secret.ts';
import { listenForDaemonSignals } from '../signals.ts';
import type { Io } from '../terminal.ts';
import { version } from '../version.ts';

export interface RunFlags extends CommonFlags {
  readonly interval?: string;
  readonly listen?: string;
  readonly mode?: 'correct' | 'observe';
  readonly gitUrl?: string;
  readonly gitRef?: string;
  readonly gitPath?: string;
  readonly gitInterval?: string;
  readonly gitAllowInsecure?: boolean;
}

/** The daemon: keeps projects as their files say, until it is told to stop. */
export async function run(flags: RunFlags, io: Io): Promise<ExitCode> {
  const settings = settingsOf(flags, io);
  const log = daemonLogger(io);
  const deps: DaemonDeps = {
    clock: systemClock,
    random: systemRandom,
    log,
    environment: io.env,
    open: (project) => openProject(flags, io, settings, log, project),
  };
  const { source, projects } = sourceOf(flags, io, deps);
  const daemon = new Daemon({
    ...{ deps, source, projects, mode: settings.mode, intervalMs: settings.intervalMs },
    onNotice: () => {},
    onChange: () => {},
    onEvent: () => {},
    onPass: () => {},
  });
  const signals = listenForDaemonSignals(log, () => daemon.nudge('signal'));
  try {
    const server = await serve(settings, daemon, deps, io);
    log.info({ version, source: source.name, address: server?.address, port: server?.port }, 'vdcsync runs');
    try {
      await daemon.run(signals.stop);
    } finally {
      await server?.close();
    }
    log.info({ version }, 'vdcsync has stopped');
    return exitCodes.done;
  } finally {
    signals.dispose();
  }
}

interface Settings {
  readonly intervalMs: number;
  readonly mode: 'correct' | 'observe';
  readonly listen: Listen | undefined;
  readonly many: boolean;
}

/** Everything that can be wrong with the call is said before anything is opened. */
function settingsOf(flags: RunFlags, io: Io): Settings {
  const intervalMs = durationOf('--interval', flags.interval ?? '5m', 1_000);
  const listen = listenOf(flags.listen ?? '127.0.0.1:9464');
  if (flags.emulator !== true) baseUrlOf(io);
  profileOf(flags, io);
  const many = flags.gitUrl === undefined && isFolder(flags, io);
  refuseEphemeral(flags, io);
  return { intervalMs, listen, mode: flags.mode ?? 'correct', many };
}

function durationOf(flag: string, text: string, leastMs: number): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms >= leastMs) return ms;
  throw new ConfigError(
    `${flag} ${JSON.stringify(text)} is no duration of at least ${leastMs} ms: write 5m or 1h30m`,
    true,
  );
}

function listenOf(text: string): Listen | undefined {
  if (text === 'off') return undefined;
  const listen = parseListen(text);
  if (listen !== undefined) return listen;
  throw new ConfigError(
    `--listen ${JSON.stringify(text)} is no HOST:PORT, such as 127.0.0.1:9464; off turns it off`,
    true,
  );
}

function isFolder(flags: RunFlags, io: Io): boolean {
  const files = specFiles(flags, io);
  const folders = files.filter((file) => isDirectory(resolve(io.cwd, file)));
  if (folders.length === 0) return false;
  if (files.length === 1) return true;
  throw new ConfigError('-f takes one folder, or files of one project, not both', true);
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function sourceOf(
  flags: RunFlags,
  io: Io,
  deps: DaemonDeps,
): { source: SpecSource; projects: 'one' | 'many' } {
  const folder = isFolder(flags, io);
  const files = specFiles(flags, io);
  if (files.includes('-'))
    throw new ConfigError('run watches its file, so it cannot be standard input', true);
  const named = files.map((name) => ({ path: resolve(io.cwd, name), name }));
  return {
    source: fileSource({ files: named, folder, clock: deps.clock, log: deps.log }),
    projects: folder ? 'many' : 'one',
  };
}

async function openProject(
  flags: RunFlags,
  io: Io,
  { mode, many }: Settings,
  log: DaemonLogger,
  { projectId, token, onEvent, onWait }: OpenProject,
): Promise<ProjectSession> {
  const own = many ? { ...flags, state: ownState(stateLocation(flags, io), projectId) } : flags;
  const session = await openSession(own, io, {
    mode: mode === 'observe' ? 'read' : 'write',
    ...{ projectId, token, onEvent, logger: log },
    ...(mode === 'observe' ? {} : { onWait }),
  });
  const { engine, store, readsAs: reads, clock, counts, profile, tokenMark, close } = session;
  return { engine, store, reads, clock, counts, profile, tokenMark, close };
}

/** One folder a project: state, lock and an emulator's world stand beside each other there. */
function ownState(location: string, projectId: number): string {
  if (location === ':memory:' || /^\w+:\/\//.test(location)) return location;
  return join(dirname(location), String(projectId), 'state.db');
}

/** @throws ConfigError where the state's folder would not outlive this container. */
function refuseEphemeral(flags: RunFlags, io: Io): void {
  if (flags.mode === 'observe' || io.env.VDCSYNC_ALLOW_EPHEMERAL_STATE === '1') return;
  const location = stateLocation(flags, io);
  if (/^\w+:\/\//.test(location)) return;
  const why = location === ':memory:' ? 'it is kept in memory' : whyFolderEphemeral(dirname(location));
  if (why === undefined) return;
  throw new ConfigError(
    `the state ${location} would not survive: ${why}. What vdcsync knows of what it made would be lost with it. ` +
      'Name a folder on a volume with --state, or set VDCSYNC_ALLOW_EPHEMERAL_STATE=1 for a trial.',
  );
}

function whyFolderEphemeral(folder: string): string | undefined {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return whyEphemeral(readFileSync('/proc/self/mountinfo', 'utf8'), realpathSync(folder));
  } catch {
    // Not Linux, or a folder that cannot be made: the state says what is wrong with it.
    return undefined;
  }
}

/** JSON where a machine reads, text where a person does, unless `LOG_FORMAT` says otherwise. */
function daemonLogger(io: Io): DaemonLogger & { fatal(fields: object, message: string): void } {
  const { level, format } = logSettings(io);
  const chosen = io.env.LOG_FORMAT ? format : io.stderr.isTTY ? 'text' : 'json';
  return createLogger({ level, format: chosen, write: (line) => void io.stderr.write(line) });
}

async function serve({ listen }: Settings, daemon: Daemon, deps: DaemonDeps, io: Io) {
  if (listen === undefined) return undefined;
  const token = secretOf('VDCSYNC_HTTP_TOKEN', io);
  if (!isLoopback(listen) && token === undefined) {
    deps.log.warn({ address: listen.host }, 'status and metrics are open to whoever reaches this address');
  }
  try {
    return await startServer(createApp({ daemon, deps, version, token }), listen);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    if (code === 'EADDRINUSE')
      throw new ConfigError(`--listen ${listen.host}:${listen.port} is taken: name another, or off`);
    if (code === 'EACCES' || code === 'EADDRNOTAVAIL') {
      throw new ConfigError(`--listen ${listen.host}:${listen.port} cannot be used: ${String(code)}`);
    }
    throw error;
  }
}
