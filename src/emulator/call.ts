import type { HttpRequest } from '../core/transport.ts';
import type { FaultAction, FaultRule } from './faults.ts';
import type { Profile } from './profile.ts';
import type { Readings } from './readings.ts';
import type { EmulatorClock } from './time.ts';
import type { Durations, Project, Task, Token, World } from './world.ts';

/** One request in progress, with the values that must survive a wait inside it. */
export interface Call {
  readonly request: HttpRequest;
  readonly method: string;
  /** The path after `/v1`; null for a path outside it. */
  readonly path: string | null;
  readonly query: URLSearchParams;
  readonly requestId: string;
  readonly operation: string | null;
  readonly fault: FaultAction | null;
  /** Its client is long gone; it costs no budget and waits for no other late request. */
  readonly late: boolean;
  charged: boolean;
  libraryDeadlineMs: number | null;
  /** The values that the log shows of the request. */
  readonly trace: { project: number | null; token: string | null; key: string | null; replayed: boolean };
}

/** A request that has found its token, project and operation. */
export interface Step extends RoutedCall {
  readonly call: Call;
  readonly world: World;
  readonly project: Project;
  readonly token: Token;
  readonly nowMs: number;
  readonly settings: Settings;
  readonly readings: Readings;
}

/** The input of one operation. A stale read gets an older copy of the world. */
export interface Context extends Step {
  readonly key: string | null;
  /** The parsed body; undefined when there was none. */
  readonly body: unknown;
}

/** The answer of an operation. `task` undefined: the answer has no `task` field. */
export interface Reply {
  readonly status: number;
  readonly data: unknown;
  readonly task?: Task | null;
  readonly location?: string;
}

/** One operation: its path and its handler. */
export interface Route {
  /** The operation's name, as fault rules and member tokens use it. */
  readonly name: string;
  readonly method: string;
  /** A path after `/v1`, with `{name}` for one segment. */
  readonly path: string;
  /** Query parameters it knows. */
  readonly query?: readonly string[];
  /** Reads the body, and nothing else. Throws for unknown fields or wrong types. Without it, a body with members is refused. */
  readonly read?: (context: Context) => Fields;
  /** Is it new spending, independent of its body? `@source API §1.6` */
  readonly spends?: (readings: Readings) => boolean;
  readonly handle: (context: Context, fields: Fields) => Reply;
}

/** The fields of a body that has been read. */
export type Fields = Readonly<Record<string, unknown>>;

/** The operation that a method and path name, and the texts of the placeholders in its path. */
export interface RoutedCall {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** The settings that the emulator gives to the pipeline, in addition to the world. */
export interface Settings {
  readonly routes: readonly Route[];
  readonly readings: Readings;
  readonly faults: readonly FaultRule[];
  readonly profile: Profile;
  readonly durations: Durations;
  readonly clock: EmulatorClock;
  /** The world a read is answered from: an older copy where reads are stale. */
  worldForRead(call: Call, nowMs: number): World;
  /** Until when another request holds this key, or null. */
  keyBusyUntil(projectId: number, key: string, call: Call): number | null;
  holdKey(projectId: number, key: string, call: Call, untilMs: number): void;
}
