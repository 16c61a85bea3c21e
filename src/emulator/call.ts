import type { HttpRequest } from '../core/transport.ts';
import type { FaultAction, FaultRule } from './faults.ts';
import type { Limits } from './limits.ts';
import type { Profile } from './profile.ts';
import type { Readings } from './readings.ts';
import type { Route, RoutedCall } from './router.ts';
import type { EmulatorClock } from './time.ts';
import type { Durations, Project, Token, World } from './world.ts';

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
export interface Step {
  readonly call: Call;
  readonly world: World;
  readonly project: Project;
  readonly token: Token;
  readonly routed: RoutedCall;
  readonly nowMs: number;
  readonly settings: Settings;
}

/** The settings that the emulator gives to the pipeline, in addition to the world. */
export interface Settings {
  readonly routes: readonly Route[];
  readonly readings: Readings;
  readonly faults: readonly FaultRule[];
  readonly profile: Profile;
  readonly limits: Limits;
  readonly durations: Durations;
  readonly clock: EmulatorClock;
  /** The world a read is answered from: an older copy where reads are stale. */
  worldForRead(call: Call, nowMs: number): World;
  /** Until when another request holds this key, or null. */
  keyBusyUntil(projectId: number, key: string, call: Call): number | null;
  holdKey(projectId: number, key: string, call: Call, untilMs: number): void;
}
