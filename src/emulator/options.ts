import type { Clock, Random } from '../core/clock.ts';
import type { FaultRule } from './faults.ts';
import type { Profile } from './profile.ts';
import type { Readings } from './readings.ts';
import type { ProjectSeed } from './seed.ts';
import type { Durations, World } from './world.ts';

/** The world of an emulator, its clock, and its deviations from the default behaviour. */
export interface EmulatorOptions {
  /** The caller's clock, the one that also times the caller's requests. */
  readonly clock: Clock;
  /** Draws the seed when none is given. */
  readonly random?: Random;
  /** The same seed and the same requests at the same times give the same bytes. */
  readonly seed?: string | number;
  /** How many times faster than `clock` the emulator's clock runs. Default 1. */
  readonly speed?: number;
  /** Default: project 4711, "shop". */
  readonly projects?: readonly ProjectSeed[];
  readonly readings?: Partial<Readings>;
  readonly faults?: readonly FaultRule[];
  readonly profile?: Profile;
  /** Replaces how long some work takes. */
  readonly durations?: Partial<Durations>;
  /** Continues from a snapshot; `seed` and `projects` are then not used. */
  readonly world?: World;
}

/** The facts about a request that only its HTTP connection shows. */
export interface HandleOptions {
  /** The address the request came from; control is answered to loopback alone. Absent in process. */
  readonly remote?: string;
  /** The body was cut off because it is too long. */
  readonly tooLarge?: boolean;
}
