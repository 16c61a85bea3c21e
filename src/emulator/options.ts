import type { Clock, Random } from '../core/clock.ts';
import type { HttpRequest, Transport } from '../core/transport.ts';
import type { Exchange } from './delivery.ts';
import type { FaultRule } from './faults.ts';
import type { Billed, LoggedRequest } from './inspection.ts';
import type { Mutation } from './mutations.ts';
import type { Profile } from './profile.ts';
import type { Readings } from './readings.ts';
import type { ProjectSeed } from './seed.ts';
import type { ProjectTokens } from './tokens.ts';
import type { Durations, World } from './world.ts';

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

export interface HandleOptions {
  /** The address the request came from; control is answered to loopback alone. Absent in process. */
  readonly remote?: string;
  /** The body was cut off because it is too long. */
  readonly tooLarge?: boolean;
}

/** The whole API, in process. No part of it waits for a timer: time passes at each request and each read of the world. */
export interface Emulator {
  /** Answers one request, faults included. */
  handle(request: HttpRequest, options?: HandleOptions): Promise<Exchange>;
  /** A transport whose requests end here. */
  transport(): Transport;
  /** The live world, brought up to now. Read only; changes go through `mutate`. */
  readonly world: World;
  readonly readings: Readings;
  readonly faults: readonly FaultRule[];
  /** The last requests, oldest first. */
  readonly requests: readonly LoggedRequest[];
  /** Everything that costs money now. */
  billed(): Billed[];
  /** Emulator milliseconds since the Unix epoch. */
  now(): number;
  /** The secrets of a project's tokens; of the first project when none is named. */
  tokens(projectId?: number): ProjectTokens;
  /** Changes the world directly, without a request. Throws `EmulatorInputError` for a resource that does not exist. */
  mutate(mutation: Mutation): unknown;
  setFaults(rules: readonly FaultRule[]): void;
  setReadings(readings: Partial<Readings>): void;
  readonly durations: Durations;
  /** The durations of work that begins from now on. A duration that is not named does not change. */
  setDurations(durations: Partial<Durations>): void;
  /** A copy of the world; requests that wait inside the emulator are not in it. */
  snapshot(): World;
  restore(world: World): void;
}
