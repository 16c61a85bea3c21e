import type { Clock } from '../core/clock.ts';
import type { World } from './world.ts';

/**
 * The offset of the timestamps inside resources. Not zero on purpose: the
 * document promises "a real UTC offset", and a client that reads the digits
 * without it must be found out. `@source API §2`
 */
const OFFSET_MINUTES = 120;

/** RFC 3339 with a real UTC offset, whole seconds. `@source API §2` */
export function timestamp(ms: number): string {
  return new Date(ms + OFFSET_MINUTES * 60_000).toISOString().replace(/\.\d+Z$/, '+02:00');
}

/** RFC 3339 in UTC, whole seconds: the form of a backup's id. `@source API §2` */
export function utcTimestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** The emulator's clock: it belongs to the world, so that a restart with another speed does not turn it back. */
export interface EmulatorClock {
  /** Emulator milliseconds since the Unix epoch. */
  now(): number;
  /** Waits for emulator milliseconds. */
  sleep(ms: number): Promise<void>;
  /** Real seconds, rounded up and at least one, that `ms` emulator milliseconds last. */
  realSeconds(ms: number): number;
}

/** `clock` is the clock of the caller. From the anchor of the world on, the emulator's clock runs `speed` times faster. */
export function emulatorClock(clock: Clock, speed: number, world: () => World): EmulatorClock {
  return {
    now: () => {
      const anchor = world().clock;
      return Math.floor(anchor.emulatorMs + (clock.now() - anchor.callerMs) * speed);
    },
    sleep: (ms) => clock.sleep(ms / speed),
    realSeconds: (ms) => Math.max(1, Math.ceil(ms / speed / 1000)),
  };
}

/** With another speed or after a restart, the clock continues from its last time. It does not jump to the time of a new start. */
export function reanchor(world: World, clock: Clock, speed: number): void {
  const saved = world.clock;
  const callerMs = clock.now();
  const ranFor = Math.max(0, callerMs - saved.callerMs);
  const emulatorMs = saved.emulatorMs + Math.floor(ranFor * (saved.speed ?? speed));
  world.clock = { callerMs, emulatorMs, speed };
}
