import type { FaultRule } from './faults.ts';
import type { Limits } from './limits.ts';
import type { Call } from './pipeline.ts';
import type { Profile } from './profile.ts';
import type { Readings } from './readings.ts';
import type { Route } from './router.ts';
import type { EmulatorClock } from './time.ts';
import type { Durations, World } from './world.ts';

/** What the pipeline is told by the emulator, beside the world. */
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
