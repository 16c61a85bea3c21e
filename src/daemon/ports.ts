import type { Clock, Random } from '../core/clock.ts';
import type { TokenPlace } from '../core/desired.ts';
import type { Plan } from '../core/plan.ts';
import type { ReadPort } from '../core/ports.ts';
import type { ApiProfile } from '../core/profile.ts';
import type { ProgressEvent, RequestCounts } from '../core/progress.ts';
import type { StateStore } from '../core/state.ts';
import type { Engine } from '../engine/engine.ts';
import type { CommandAnswer, OperatorCommand } from './operator-commands/control.ts';

/**
 * The terms of the daemon.
 *
 * - *source*: the place of the specs: files, a folder, a branch. The daemon always reads the whole source.
 * - *trigger*: the reason for a refresh. A trigger carries no other data: the refresh finds the
 *   necessary operations, so triggers may be lost, doubled or late.
 * - *pass*: one reconciliation of one project: a refresh, and the operations of its plan.
 * - *condition*: the state of a project in one word. Each change of the condition is reported once.
 */

/** The methods of a logger that the daemon uses. Messages are constant; values are in the fields. */
export type DaemonLogger = Readonly<
  Record<
    'debug' | 'info' | 'warn' | 'error',
    (fields: Readonly<Record<string, unknown>>, message: string) => void
  >
>;

/** `observe`: refreshes and reports, and never writes. A token with read access is enough. */
export type Mode = 'correct' | 'observe';

/** One project with everything that is needed to work on it, put together by the command line. */
export interface ProjectSession {
  readonly engine: Engine;
  readonly store: StateStore;
  readonly reads: (priority: 'poll' | 'operation' | 'refresh') => ReadPort;
  /** The API's clock: every duration of the client is measured with it. */
  readonly clock: Clock;
  readonly counts: () => RequestCounts;
  readonly profile: ApiProfile;
  /** Changes when the token changes, and does not reveal the token. */
  readonly tokenMark: () => string;
  /** Accepts operator commands from the command line, while this process owns the state, until the session closes. */
  readonly onCommand: (take: (order: OperatorCommand) => Promise<CommandAnswer>) => Promise<void>;
  close(): Promise<void>;
}

export interface OpenProject {
  readonly projectId: number;
  readonly token: TokenPlace | undefined;
  /** Of the client. */
  readonly log: DaemonLogger;
  readonly onEvent: (event: ProgressEvent) => void;
  /** Called once if another process owns the state. The opening continues to wait for the state. */
  readonly onWait: (holder: string) => void;
}

/** The dependencies that every part of the daemon shares. */
export interface DaemonDeps {
  /** Real time: for debouncing, HTTP and shutting down. */
  readonly clock: Clock;
  readonly random: Random;
  readonly log: DaemonLogger;
  readonly open: (project: OpenProject) => Promise<ProjectSession>;
  /**
   * Asks the command of the operator about a plan. Returns why the command refuses the plan. Absent without a command.
   */
  readonly checkPlan?:
    | ((plan: Plan, token: TokenPlace | undefined, halt: AbortSignal) => Promise<string | undefined>)
    | undefined;
  /** The flags that select this project and its files in a command, from any folder of this machine. */
  readonly commandFlags: (projectId: number, files: readonly string[]) => string;
}

/** A log that adds the project to every line, because several projects share one process. */
export function logOf(project: number, log: DaemonLogger): DaemonLogger {
  const at =
    (level: keyof DaemonLogger): DaemonLogger['info'] =>
    (fields, message) =>
      log[level]({ project, ...fields }, message);
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Logs warnings at level debug while their cause has already been reported. */
export function detailsWhile(isReported: () => boolean, log: DaemonLogger): DaemonLogger {
  return { ...log, warn: (fields, message) => log[isReported() ? 'debug' : 'warn'](fields, message) };
}
