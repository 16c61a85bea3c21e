import type { Clock } from '../../core/clock.ts';
import type { Activity } from '../project/activity.ts';
import type { Wake } from './wake.ts';

/** A pass in which nothing but waiting has happened for so long may be cut short for another look. */
const quietMs = 30_000;

/**
 * A pass that only waits, for cards or an ISO, must not keep the rest of the project from being
 * looked at. Gives `true` once it may be cut short for that, `false` when `done` aborts first.
 */
export async function untilLookIsDue(
  activity: Activity,
  wake: Wake,
  clock: Clock,
  intervalMs: number,
  done: AbortSignal,
): Promise<boolean> {
  const startedAt = clock.now();
  while (!done.aborted) {
    await clock.sleep(Math.min(quietMs, intervalMs) / 3, done).catch(() => undefined);
    const now = clock.now();
    const due = wake.pending() || now - startedAt > intervalMs;
    if (done.aborted || !due || !activity.isQuietSince(now - quietMs)) continue;
    wake.nudge('timer');
    return true;
  }
  return false;
}
