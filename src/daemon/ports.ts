import type { Clock } from '../core/clock.ts';
import type { TokenPlace } from '../core/desired.ts';
import type { ReadPort } from '../core/ports.ts';
import type { ApiProfile } from '../core/profile.ts';
import type { ProgressEvent, RequestCounts } from '../core/progress.ts';
import type { Random } from '../core/random.ts';
import type { StateStore } from '../core/state.ts';
import type { Engine } from '../engine/engine.ts';
import type { Answer, Order } from './orders/control.ts';

/**
 * What the daemon's words mean.
 *
 * - *source*: where specs come from: files, a folder, a branch. It is read whole, each time.
 * - *trigger*: why somebody should look again. It carries nothing else: what is to be done
 *   is what a fresh look says, so triggers may be lost, doubled or late.
 * - *pass*: one look at one project, and what that look asks for, carried out.
 * - *condition*: what an operator would call how a project stands; its change is told once.
 */
export type Trigger =
  | 'start'
  | 'file'
  | 'git'
  | 'webhook'
  | 'timer'
  | 'refresh'
  | 'back-off'
  | 'token'
  | 'order'
  | 'fleet'
  | 'signal';

/** What the daemon needs of a logger. Messages are constant; values stand in the fields. */
export interface DaemonLogger {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** `observe`: looks and reports, and never writes; a token that may only read is enough. */
export type Mode = 'correct' | 'observe';

/** One project with everything it takes to work on it, put together by the command line. */
export interface ProjectSession {
  readonly engine: Engine;
  readonly store: StateStore;
  readonly reads: (priority: 'poll' | 'operation' | 'refresh') => ReadPort;
  /** The API's pace: every duration of the client runs on it. */
  readonly clock: Clock;
  readonly counts: () => RequestCounts;
  readonly profile: ApiProfile;
  /** Changes when the token does, and tells nothing about it. */
  readonly tokenMark: () => string;
  /** Takes orders from the command line, while this process owns the state, until the session closes. */
  readonly onOrder: (take: (order: Order) => Promise<Answer>) => Promise<void>;
  close(): Promise<void>;
}

export interface OpenProject {
  readonly projectId: number;
  readonly token: TokenPlace | undefined;
  /** Of the client. */
  readonly log: DaemonLogger;
  readonly onEvent: (event: ProgressEvent) => void;
  /** Called once, where another process owns the state; opening goes on waiting for it. */
  readonly onWait: (holder: string) => void;
}

/** What every part of the daemon shares. */
export interface DaemonDeps {
  /** Real time: for debouncing, HTTP and shutting down. */
  readonly clock: Clock;
  readonly random: Random;
  readonly log: DaemonLogger;
  readonly open: (project: OpenProject) => Promise<ProjectSession>;
  /** The flags with which a command means this project, with its files, run from anywhere on this machine. */
  readonly commandFlags: (projectId: number, files: readonly string[]) => string;
}
