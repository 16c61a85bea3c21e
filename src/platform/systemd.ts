import { execFile } from 'node:child_process';
import { pid } from 'node:process';
import { promisify } from 'node:util';
import type { Clock } from '../core/clock.ts';

export interface SystemdOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Real time. */
  readonly clock: Clock;
  /** Called once, if systemd cannot be notified. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Reports to systemd that this process is ready, and after that regularly that the process is alive: READY=1, then
 * WATCHDOG=1 twice in each `WatchdogSec`. Does nothing if systemd did not ask for reports.
 *
 * `NOTIFY_SOCKET` is a Unix datagram socket. Node has no Unix datagram sockets, and an add-on in native code would
 * need a build for each platform. So the program `systemd-notify` sends the messages. The program is a part of
 * systemd, so it exists on every machine with the socket. The program runs as a child of this process, so the unit
 * needs `NotifyAccess=all`.
 */
export async function keepSystemdNotified(
  { environment, clock, onFailure }: SystemdOptions,
  stop: AbortSignal,
): Promise<void> {
  const { NOTIFY_SOCKET: socket, PATH = '' } = environment;
  if (socket === undefined || socket === '') return;
  let failed = false;
  const notify = (message: string) =>
    run('systemd-notify', [message], { env: { PATH, NOTIFY_SOCKET: socket }, timeout: answerMs }).catch(
      (error: unknown) => {
        if (!failed) onFailure(error);
        failed = true;
      },
    );
  await notify('READY=1');
  const everyMs = watchdogMs(environment) / 2;
  while (Number.isFinite(everyMs) && !stop.aborted) {
    await notify('WATCHDOG=1');
    await clock.sleep(everyMs, stop).catch(() => undefined);
  }
  if (stop.aborted) await notify('STOPPING=1');
}

const run = promisify(execFile);
const answerMs = 5_000;

/** `Infinity` if systemd watches no process, or another process. */
function watchdogMs({ WATCHDOG_USEC: usec, WATCHDOG_PID: watched }: SystemdOptions['environment']): number {
  const ms = Number(usec) / 1_000;
  const isForThisProcess = watched === undefined || watched === '' || Number(watched) === pid;
  return isForThisProcess && ms > 0 ? ms : Number.POSITIVE_INFINITY;
}
