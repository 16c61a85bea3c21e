import { getRandomValues } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import type { Clock, Random } from '../core/clock.ts';

/** The longest span one timer can hold; longer ones are slept in parts. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * The machine's clock. A sleep never ends early, however the timer rounds, and leaves
 * no timer behind when it is aborted.
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep,
};

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const end = performance.now() + ms;
    let timer: NodeJS.Timeout;
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const arm = () => {
      const left = end - performance.now();
      if (left <= 0) {
        signal?.removeEventListener('abort', abort);
        return resolve();
      }
      timer = setTimeout(arm, Math.min(Math.ceil(left), longestTimerMs));
    };
    signal?.addEventListener('abort', abort, { once: true });
    arm();
  });
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

/** The machine's randomness, for jitter. No seed reproduces it. */
export const systemRandom: Random = {
  next: () => (getRandomValues(new Uint32Array(1))[0] ?? 0) / 2 ** 32,
};

/**
 * Keeps the current size of the heap for new objects, in this thread and in threads that start later. Otherwise a
 * burst of work, such as reading a large spec, lets this heap grow up to 48 MiB, and a process that then waits for
 * hours returns almost none of that memory. Collections become more frequent, and each is shorter.
 */
export function keepYoungHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}
