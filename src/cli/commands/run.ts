import type { Desired, TokenPlace } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { CommitStatuses } from '../../daemon/commit-status/commit-statuses.ts';
import { commitStatusesOf } from '../../daemon/commit-status/result.ts';
import { Daemon } from '../../daemon/daemon.ts';
import { fleetSource } from '../../daemon/fleet/fleet-source.ts';
import { createApp } from '../../daemon/http/app.ts';
import { Changes } from '../../daemon/http/changes.ts';
import { Metrics } from '../../daemon/http/metrics.ts';
import { isLoopback, startServer } from '../../daemon/http/server.ts';
import { Notifier } from '../../daemon/notifications/notifier.ts';
import type { DaemonDeps, DaemonLogger } from '../../daemon/ports.ts';
import { Intake } from '../../daemon/sources/intake.ts';
import type { SpecSource } from '../../daemon/sources/source.ts';
import { createLogger } from '../../platform/logger.ts';
import { systemClock, systemRandom } from '../../platform/system.ts';
import { keepSystemdNotified } from '../../platform/systemd.ts';
import { undiciTransport } from '../../platform/undici-transport.ts';
import { planCheck } from '../check-command.ts';
import { isShared, type OpenFleet, openFleet, replicaName } from '../daemon/fleet.ts';
import { deletionsNow, openProject, projectFlags } from '../daemon/projects.ts';
import { type DaemonSettings, type RunFlags, readDaemonSettings, sourceOf } from '../daemon/settings.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { callFlags } from '../flags.ts';
import { logSettings, tokenSource } from '../settings/config.ts';
import { type Io, listenForDaemonSignals, version } from '../terminal.ts';

/** The number of specs that a replica keeps, of the projects that it has reconciled. */
const mostReconciledSpecs = 1_000;

/** The daemon: makes each project match its spec, until a signal stops the daemon. */
export async function runDaemon(flags: RunFlags, io: Io): Promise<ExitCode> {
  const settings = readDaemonSettings(flags, io);
  const { listen, token, webhookSecret, approveToken } = settings;
  const log = daemonLogger(io);
  /** Projects whose own states are known to be theirs. */
  const settled = new Set<number>();
  const deps: DaemonDeps = {
    clock: systemClock,
    random: systemRandom,
    log,
    open: (project) =>
      openProject(flags, io, settings, project, {
        ...{ replica: shared?.replica, inspection: shared?.inspection, settled },
      }),
    checkPlan: planCheck(flags.checkCommand, io, tokenPrefixOf(settings)),
    commandFlags: (projectId, named) =>
      callFlags(projectFlags(projectId, named, flags, io, settings), io.env),
  };
  const metrics = new Metrics(version, { perProject: settings.metricsPerProject });
  const changes = new Changes(systemClock);
  const transport = undiciTransport();
  const notifier: Notifier = new Notifier({
    ...{ receivers: settings.receivers, transport, clock: systemClock, log },
    onResult: (result) => metrics.countNotification(result),
    nameOf: (id) =>
      daemon
        .projects()
        .find((project) => project.id === id)
        ?.summary().name,
    pageUrl: settings.pageUrl,
  });
  const statuses =
    settings.statusTarget === undefined
      ? undefined
      : new CommitStatuses({
          ...{ target: settings.statusTarget, transport, clock: systemClock, log },
          current: () => commitStatusesOf(daemon),
        });
  const deletions = (desired: Desired) => deletionsNow(flags, io, desired, log);
  const shared = isShared(settings, flags, io)
    ? await openFleet(settings, flags, io, log, notifier, deletions)
    : undefined;
  const own = sourceOf(settings, deps, shared !== undefined);
  const reading = {
    ...{ environment: io.env, trust: settings.trust, clock: systemClock },
    ...(flags.requireApproval === undefined ? {} : { requireApproval: flags.requireApproval }),
    checkToken: (place: TokenPlace | undefined) => checkToken(place, settings, flags, io),
  };
  const intake = new Intake(reading);
  const shareSource = (source: SpecSource, { fleet, queue, releases }: OpenFleet) => {
    const { board } = fleet;
    const intervalMs = settings.intervalMs / settings.timeScale;
    const led = fleetSource({
      ...{ source, board, releases, intake, intervalMs, clock: systemClock, log },
      queue: {
        add: (...wanted) => queue.add(...wanted),
        ask: (...wanted) => fleet.ask(...wanted),
        hints: () => queue.hints(),
      },
    });
    const reconciledSpecs = new Intake({ ...reading, keeps: mostReconciledSpecs });
    return {
      source: led,
      fleet: { fleet, intake: reconciledSpecs, lead: (over: AbortSignal) => led.lead(over) },
    };
  };
  const daemon: Daemon = new Daemon({
    ...{ deps, mode: settings.mode, intervalMs: settings.intervalMs, projects: settings.projects },
    keepMs: settings.keepMs,
    worker: { replica: replicaName(), notified: notifier, now: () => (shared?.clock ?? systemClock).now() },
    ...{ intake, trusted: isNamed(settings) },
    ...(shared === undefined ? { source: own } : shareSource(own, shared)),
    onNotification: (notification) => notifier.notify(notification),
    onChange: () => {
      changes.changed();
      statuses?.update();
    },
    onEvent: (project, event) => metrics.countEvent(project, event),
    onReconciliation: (project, pass) => metrics.countReconciliation(project, pass),
  });
  const app = createApp({
    ...{ daemon, deps, metrics, changes, version },
    ...{ token, webhookSecret, approveToken },
    loopback: listen !== undefined && isLoopback(listen),
  });
  const signals = listenForDaemonSignals(log, () => daemon.nudge('signal'));
  try {
    const server = await serve(settings, app, log);
    log.info(
      { version, source: daemon.specs.state().name, address: server?.address, port: server?.port },
      'vdcsync runs',
    );
    const notified = new AbortController();
    const notifying = keepSystemdNotified(
      {
        ...{ environment: io.env, clock: systemClock },
        onFailure: (error) => log.warn({ error }, 'systemd could not be notified'),
      },
      notified.signal,
    );
    try {
      await daemon.run(signals.stop);
    } finally {
      notified.abort();
      await notifying;
      await server?.close();
      await transport.close();
    }
    log.info({ version }, 'vdcsync has stopped');
    return exitCodes.done;
  } finally {
    signals.dispose();
  }
}

/** The prefix of the variables that hold tokens. Empty if the specs may name no variable. */
function tokenPrefixOf({ trust }: DaemonSettings): string {
  return trust.tokens === 'any' ? '' : (trust.tokens.prefix ?? '');
}

/** Whether the call names the files of the project, so that no other user chooses the project. */
function isNamed({ git, projects }: DaemonSettings): boolean {
  return git === undefined && projects === 'one';
}

/** Checks that there is a token for a spec that other users may push. For other specs, opening the project reports the error. */
function checkToken(
  place: TokenPlace | undefined,
  settings: DaemonSettings,
  { emulator }: RunFlags,
  io: Io,
): void {
  if (emulator === true || (place === undefined && isNamed(settings))) return;
  tokenSource(io, place);
}

async function serve(
  { listen, token, hasShortToken }: DaemonSettings,
  app: ReturnType<typeof createApp>,
  log: DaemonLogger,
) {
  if (listen === undefined) return undefined;
  if (hasShortToken) {
    const source = 'VDCSYNC_HTTP_TOKEN';
    log.warn({ source }, 'a secret of less than 16 characters is easy to guess: use a longer one');
  }
  if (!isLoopback(listen) && token === undefined) {
    log.warn(
      { address: listen.host },
      'every user who reaches this address can read status and metrics: set VDCSYNC_HTTP_TOKEN to require a token',
    );
  }
  try {
    return await startServer(app, listen);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    const address = `--listen ${listen.host}:${listen.port}`;
    if (code === 'EADDRINUSE')
      throw new ConfigError(
        `the port ${address} of --listen is in use: name another one, or write --listen off`,
      );
    if (code === 'EACCES' || code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
      throw new ConfigError(`${address} cannot be used: ${code}`);
    }
    throw error;
  }
}

/** The log is text on a terminal, and JSON elsewhere, unless `LOG_FORMAT` sets its format. */
function daemonLogger(io: Io): DaemonLogger & { fatal(fields: object, message: string): void } {
  const { level, format } = logSettings(io);
  const chosen = io.env.LOG_FORMAT ? format : io.stderr.isTTY ? 'text' : 'json';
  return createLogger({
    ...{ level, format: chosen, write: (line) => void io.stderr.write(line) },
  });
}
