import { statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ConfigError } from '../../core/errors.ts';
import { isLoopbackHost } from '../../core/text.ts';
import { parseDuration } from '../../core/time.ts';
import { whyFolderEphemeral } from '../../daemon/ephemeral.ts';
import { defaultPolicy, type RolloutPolicy } from '../../daemon/fleet/rollout.ts';
import { type Listen, parseListen } from '../../daemon/http/server.ts';
import type { Receiver } from '../../daemon/notifications/notifier.ts';
import type { DaemonDeps, Mode } from '../../daemon/ports.ts';
import { fleetBounds } from '../../daemon/sources/bounds.ts';
import { fileSource, type GivenFile } from '../../daemon/sources/file-source.ts';
import { type GitSettings, gitSource } from '../../daemon/sources/git-source.ts';
import { checkGitNames, parseGitUrl } from '../../daemon/sources/git-url.ts';
import { SourceError, type SpecSource } from '../../daemon/sources/source.ts';
import { scaledClock } from '../../platform/system.ts';
import { createFolder } from '../../state/sqlite-file.ts';
import { usageError } from '../exit.ts';
import { type CommonFlags, defaultSpec, gitDefaults, isUrl, runDefaults } from '../flags.ts';
import { baseUrlOf, profileOf, readText, specFiles, stateLocation } from '../settings/config.ts';
import { loadFleetConfig } from '../settings/fleet-config.ts';
import { guardOf, secretOf } from '../settings/secret.ts';
import { trustOf } from '../settings/spec-source.ts';
import type { Io } from '../terminal.ts';
import { type CommitStatusFlags, statusTargetOf } from './commit-status.ts';

export interface RunFlags extends CommonFlags, CommitStatusFlags {
  readonly interval?: string;
  readonly listen?: string;
  readonly mode?: Mode;
  readonly gitRef?: string;
  readonly gitPath?: readonly string[];
  readonly gitInterval?: string;
  readonly gitAllowInsecure?: boolean;
  readonly gitAllowRewind?: boolean;
  readonly parallel?: number;
  readonly fleetConfig?: string;
  /** A shell command that accepts or refuses each plan. */
  readonly checkCommand?: string;
  readonly keepHistory?: string;
  readonly metricsPerProject?: boolean;
  /** A minimum that no spec can lower. */
  readonly requireApproval?: 'plan';
}

export type DaemonSettings = ReturnType<typeof readDaemonSettings>;

/** Flags and environment of the daemon. All their errors are reported before the daemon opens anything. */
export function readDaemonSettings(flags: RunFlags, io: Io) {
  const mode: Mode = flags.mode ?? 'correct';
  const intervalMs = durationOf('--interval', flags.interval ?? runDefaults.interval);
  // Journal entries that ended longer ago are deleted.
  const keepMs = keepOf(flags.keepHistory ?? runDefaults.keep);
  const listen = listenOf(flags.listen ?? runDefaults.listen);
  if (flags.emulator !== true) baseUrlOf(io);
  const { timeScale } = profileOf(flags, io).profile;
  const git = flags.gitUrl === undefined ? undefined : gitSettings(flags.gitUrl, flags, io);
  const files = git === undefined ? filesOf(flags, io) : [];
  const many =
    git === undefined
      ? files.some(({ path }) => isFolder(path))
      : git.files.some(({ path }) => path.endsWith('/'));
  if (mode !== 'observe') refuseEphemeral(flags, io);
  const receivers = receiversOf(io);
  // The address at which operators reach the status page; ends in a slash.
  const pageUrl = pageUrlOf(io);
  // Of everything that is served but health and webhooks.
  const { secret: token, isShort: hasShortToken } = guardOf('VDCSYNC_HTTP_TOKEN', io, { strict: false });
  const { secret: webhookSecret } = guardOf('VDCSYNC_WEBHOOK_SECRET', io, { strict: true });
  const { secret: approveToken } = guardOf('VDCSYNC_APPROVE_TOKEN', io, { strict: true });
  // `many`: each file is a project of its own, with a state of its own.
  const projects: 'one' | 'many' = many ? 'many' : 'one';
  // The most projects at a time, if several processes share the projects.
  const parallel = flags.parallel ?? runDefaults.parallel;
  // The variables and files of this machine that the specs may use.
  const trust = trustOf(flags, io);
  // The repository whose commits get a status.
  const statusTarget = statusTargetOf(flags, io, pageUrl);
  return {
    ...{ intervalMs, keepMs, mode, listen, projects, files, git, receivers, pageUrl, timeScale, parallel },
    ...{ token, hasShortToken, webhookSecret, approveToken, trust, statusTarget },
    // The limits of the effect that one change of the specs may have on a fleet.
    rollout: rolloutOf(flags, io, timeScale),
    // Whether each project has metrics of its own, or one sum covers all projects.
    metricsPerProject: !many || flags.metricsPerProject === true,
  };
}

function durationOf(flag: string, text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms >= 1_000) return ms;
  throw usageError(`${flag} must be a duration of at least 1 s, such as 5m, not ${JSON.stringify(text)}`);
}

/** Longer than the life of any idempotency key: the records that decide about an open write must not be deleted before it. */
function keepOf(text: string): number {
  const ms = durationOf('--keep-history', text);
  if (ms >= 7 * 24 * 3_600_000) return ms;
  throw usageError(`--keep-history ${text} is too short: keep at least 7d`);
}

function listenOf(text: string): Listen | undefined {
  if (text === 'off') return undefined;
  const listen = parseListen(text);
  if (listen !== undefined) return listen;
  throw usageError(`--listen ${JSON.stringify(text)} must be HOST:PORT, such as 127.0.0.1:9464, or off`);
}

function filesOf(flags: RunFlags, io: Io): readonly GivenFile[] {
  const files = specFiles(flags, io).map((name) => ({ name, path: resolve(io.cwd, name) }));
  if (files.some(({ name }) => name === '-')) {
    throw usageError('run watches its file, so it cannot be standard input');
  }
  if (files.length > 1 && files.some(({ path }) => isFolder(path))) {
    throw usageError('-f takes one folder of projects, or the files of one project, not both');
  }
  const overlays = (flags.overlay ?? []).map((name) => ({
    name,
    path: resolve(io.cwd, name),
    overlay: true,
  }));
  return [...files, ...overlays];
}

/** The durations of the spec count API time, like those of the flags. */
function rolloutOf(flags: RunFlags, io: Io, timeScale: number): RolloutPolicy {
  const file = flags.fleetConfig ?? io.env.VDCSYNC_FLEET_CONFIG ?? '';
  const policy = file === '' ? defaultPolicy : loadFleetConfig(readText(file, 'the fleet file', io), file);
  return {
    ...policy,
    stayMs: policy.stayMs / timeScale,
    deadlineMs: policy.deadlineMs / timeScale,
    supersedeMs: policy.supersedeMs / timeScale,
  };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function gitSettings(url: string, flags: RunFlags, io: Io): GitSettings {
  if (flags.file !== undefined)
    throw usageError('-f and --git-url cannot be used together: give one of them');
  const { env } = io;
  const ref = flags.gitRef ?? gitDefaults.ref;
  const files = [
    ...(flags.gitPath ?? [defaultSpec]).map((path) => ({ path })),
    ...(flags.overlay ?? []).map((path) => ({ path, overlay: true as const })),
  ];
  const location = stateLocation(flags, io);
  const pathOf = (name: string) => (env[name] ? resolve(io.cwd, env[name]) : undefined);
  asConfigured(() => checkGitNames(ref, files), { misuse: true });
  return {
    access: {
      url: asConfigured(() => parseGitUrl(url, flags.gitAllowInsecure === true), { misuse: false }),
      token: secretOf('VDCSYNC_GIT_TOKEN', io),
      user: env.VDCSYNC_GIT_USER || gitDefaults.user,
      sshKeyFile: pathOf('VDCSYNC_GIT_SSH_KEY_FILE'),
      sshKnownHostsFile: pathOf('VDCSYNC_GIT_KNOWN_HOSTS_FILE'),
      allowedSignersFile: pathOf('VDCSYNC_GIT_ALLOWED_SIGNERS_FILE'),
      environment: env,
    },
    ...{ ref, files, allowRewind: flags.gitAllowRewind === true },
    folder: join(isUrl(location) ? resolve(io.cwd, '.vdcsync') : dirname(location), 'git'),
    intervalMs: durationOf('--git-interval', flags.gitInterval ?? gitDefaults.interval),
  };
}

function asConfigured<T>(check: () => T, { misuse }: { readonly misuse: boolean }): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof SourceError) throw new ConfigError(error.message, misuse);
    throw error;
  }
}

/** The address in the links of notifications. The address that the daemon listens on is seldom the address that operators use. */
function pageUrlOf({ env }: Io): string | undefined {
  const text = env.VDCSYNC_PUBLIC_URL;
  if (!text) return undefined;
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== '' || url.username !== '') {
    throw new ConfigError(
      `VDCSYNC_PUBLIC_URL ${JSON.stringify(text)} is not the address of the status page, such as https://vdcsync.example.com/`,
    );
  }
  return url.href.endsWith('/') ? url.href : `${url.href}/`;
}

function receiversOf(io: Io): Receiver[] {
  const variables = [
    ['json', 'VDCSYNC_NOTIFY_URL'],
    ['slack', 'VDCSYNC_SLACK_URL'],
  ] as const;
  return variables.flatMap(([form, name]) => {
    const url = secretOf(name, io);
    if (url === undefined) return [];
    const parsed = URL.parse(url());
    const isSafe = parsed?.protocol === 'https:' || (parsed !== null && isLoopbackHost(parsed.hostname));
    // The URL is a secret in itself, so that the message does not repeat it.
    if (!isSafe) throw new ConfigError(`${name} must be an https URL`);
    return [{ form, url }];
  });
}

/** @throws ConfigError where the state's folder would not outlive this container. */
function refuseEphemeral(flags: CommonFlags, io: Io): void {
  if (io.env.VDCSYNC_ALLOW_EPHEMERAL_STATE === '1') return;
  const location = stateLocation(flags, io);
  if (isUrl(location)) return;
  try {
    createFolder(location);
  } catch {
    // Opening the state reports the error.
    return;
  }
  const why = whyFolderEphemeral(dirname(location));
  if (why === undefined) return;
  throw new ConfigError(
    `the state ${location} would be lost: ${why}. Then vdcsync no longer knows its resources. ` +
      'Name a folder on a volume with --state, or set VDCSYNC_ALLOW_EPHEMERAL_STATE=1 for a trial.',
  );
}

/** Where the specs come from, as the settings say. */
export function sourceOf(
  { git, files, projects, timeScale }: DaemonSettings,
  deps: DaemonDeps,
  isFleet: boolean,
): SpecSource {
  const { clock, random, log } = deps;
  const bounds = isFleet ? { most: fleetBounds } : {};
  if (git === undefined) return fileSource({ files, folder: projects === 'many', clock, log, ...bounds });
  // Durations in flags run at the API's pace.
  return gitSource({ ...git, clock: scaledClock(clock, timeScale, clock.now()), random, log, ...bounds });
}
