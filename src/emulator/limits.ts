import type { Step } from './call.ts';
import { Refusal } from './problem.ts';
import type { Bucket } from './world.ts';

/**
 * Takes one request from the token's budget of this minute. Throws 429 with the
 * real seconds left in the minute when it is spent. `@source API §8` `@assumption A6` `@assumption A7`
 */
export function charge(step: Step): void {
  const { nowMs, readings, settings } = step;
  const { windowMs } = settings.profile.limits;
  const { bucket, sort, limit } = openBucket(step);
  if (bucket.used < limit) {
    bucket.used += 1;
    return;
  }
  if (readings.refusalsCost) bucket.used += 1;
  const leftMs = windowMs - modulo(nowMs - readings.minutePhaseMs, windowMs);
  throw new Refusal(429, 'rate_limit_exceeded', `More than ${limit} ${sort} in this window.`, {
    headers: { 'retry-after': String(settings.clock.realSeconds(leftMs)) },
  });
}

/** Gives one request back: a replay that costs nothing. `@assumption A6` */
export function refund(step: Step): void {
  const { bucket } = openBucket(step);
  bucket.used = Math.max(0, bucket.used - 1);
}

function openBucket({ call, world, token, nowMs, readings, settings }: Step) {
  const { limits } = settings.profile;
  const sort: 'reads' | 'writes' = call.method === 'GET' ? 'reads' : 'writes';
  const limit = limits[sort];
  const window = Math.floor((nowMs - readings.minutePhaseMs) / limits.windowMs);
  world.buckets[token.name] ??= { reads: { window, used: 0 }, writes: { window, used: 0 } };
  const bucket = world.buckets[token.name]?.[sort] as Bucket;
  if (bucket.window !== window) {
    const carried = readings.refusalsCost && bucket.window === window - 1 ? bucket.used - limit : 0;
    bucket.window = window;
    bucket.used = Math.min(limit, Math.max(0, carried));
  }
  return { bucket, sort, limit };
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by;
}
