import { Refusal } from './problem.ts';
import type { Readings } from './readings.ts';
import type { EmulatorClock } from './time.ts';
import type { Bucket, Token, World } from './world.ts';

/** Requests per window and token. `@source API §8` */
export interface Limits {
  readonly windowMs: number;
  readonly reads: number;
  readonly writes: number;
}

export const DOCUMENTED_LIMITS: Limits = { windowMs: 60_000, reads: 60, writes: 20 };

type Deps = { limits: Limits; readings: Readings; clock: EmulatorClock };

/**
 * Takes one request from the token's budget of this minute. Throws 429 with the
 * real seconds left in the minute when it is spent. `@source API §8` `@assumption A6` `@assumption A7`
 */
export function charge(world: World, token: Token, method: string, nowMs: number, deps: Deps): void {
  const { limits, readings, clock } = deps;
  const bucket = openBucket(world, token, method, nowMs, deps);
  const limit = method === 'GET' ? limits.reads : limits.writes;
  if (bucket.used < limit) {
    bucket.used += 1;
    return;
  }
  if (readings.refusalsCost) bucket.used += 1;
  const leftMs = limits.windowMs - modulo(nowMs - readings.minutePhaseMs, limits.windowMs);
  throw new Refusal(
    429,
    'rate_limit_exceeded',
    `More than ${limit} ${method === 'GET' ? 'reads' : 'writes'} in this window.`,
    { headers: { 'retry-after': String(clock.realSeconds(leftMs)) } },
  );
}

/** Gives one request back: a replay that costs nothing. `@assumption A6` */
export function refund(world: World, token: Token, method: string, nowMs: number, deps: Deps): void {
  const bucket = openBucket(world, token, method, nowMs, deps);
  bucket.used = Math.max(0, bucket.used - 1);
}

function openBucket(world: World, token: Token, method: string, nowMs: number, deps: Deps): Bucket {
  const { limits, readings } = deps;
  const window = Math.floor((nowMs - readings.minutePhaseMs) / limits.windowMs);
  world.buckets[token.name] ??= { reads: { window, used: 0 }, writes: { window, used: 0 } };
  const buckets = world.buckets[token.name] as { reads: Bucket; writes: Bucket };
  const bucket = method === 'GET' ? buckets.reads : buckets.writes;
  if (bucket.window !== window) {
    const limit = method === 'GET' ? limits.reads : limits.writes;
    const carried = readings.refusalsCost && bucket.window === window - 1 ? bucket.used - limit : 0;
    bucket.window = window;
    bucket.used = Math.min(limit, Math.max(0, carried));
  }
  return bucket;
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by;
}
