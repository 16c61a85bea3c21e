import type { Clock } from '../../core/clock.ts';
import type { Activity } from '../project/activity.ts';
import type { Wake } from './wake.ts';

/** After this time without progress, a reconciliation that only waits may be cut short for a new refresh. */
const quietMs = 30_000;

/**
 * A reconciliation that only waits, for graphics cards or an ISO, must not delay the refresh of the other resources.
 * Returns `true` once the reconciliation may be cut short, and `false` when `done` aborts first.
 */
export async function untilRefreshIsDue(
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
