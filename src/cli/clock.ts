import type { Clock, Random } from '../core/clock.ts';
import { systemClock, systemRandom } from '../platform/system.ts';
import type { Io } from './terminal.ts';

/** The clock of a call. */
export function clockOf({ clock = systemClock }: Pick<Io, 'clock'>): Clock {
  return clock;
}

/** The randomness of a call. */
export function randomOf({ random = systemRandom }: Pick<Io, 'random'>): Random {
  return random;
}
