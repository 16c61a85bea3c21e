/**
 * The only source of time. Production uses the system's clock, tests and the
 * simulation a virtual one, so that nothing in the project waits for real.
 */
export interface Clock {
  /** Wall time, milliseconds since the Unix epoch. May jump. */
  now(): number;
  /** Milliseconds since an arbitrary start. Never goes back; for measuring spans. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/**
 * Runs `clock` `speed` times faster, for an API whose own clock does.
 * Wall time is counted from `originMs`, so that two processes given the same
 * origin agree on the time.
 */
export function scaledClock(clock: Clock, speed: number, originMs: number): Clock {
  if (speed === 1) return clock;
  return {
    now: () => originMs + (clock.now() - originMs) * speed,
    monotonic: () => clock.monotonic() * speed,
    sleep: (ms, signal) => clock.sleep(ms / speed, signal),
  };
}
