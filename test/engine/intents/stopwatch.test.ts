import { describe, expect, test } from 'vitest';
import { createStopwatch } from '../../../src/engine/timing.ts';
import { virtualClock } from '../../support/virtual-clock.ts';

describe('src/engine/timing.ts', () => {
  test('a clock that was set back extends no wait, however often a caller asks for the wait', async () => {
    const clock = virtualClock();
    const due = clock.now() + 25 * 3_600_000;
    const stopwatch = createStopwatch(clock, 1);

    const first = stopwatch.until('intent', 'due', due);
    await clock.run(clock.sleep(first));

    expect(first).toBe(20 * 60_000);
    expect(stopwatch.until('intent', 'due', due)).toBe(0);
  });

  test.each([
    'sent',
    'ended',
    'not_seen',
    'accepted',
  ] as const)('a moment (%s) in the future of a clock that was set back counts from the first question', async (moment) => {
    const clock = virtualClock();
    const ahead = clock.now() + 25 * 3_600_000;
    const stopwatch = createStopwatch(clock, 1);

    const first = stopwatch.since('intent', moment, ahead);
    await clock.run(clock.sleep(60_000));

    expect(first).toBe(0);
    expect(stopwatch.since('intent', moment, ahead)).toBe(60_000);
  });

  test('the moments of an intent that has ended are forgotten', () => {
    const stopwatch = createStopwatch(virtualClock(), 1);
    for (const id of ['open', 'ended']) stopwatch.mark(id, 'due');

    stopwatch.keep(new Set(['open']));

    expect(['open', 'ended'].map((id) => stopwatch.isMarked(id, 'due'))).toEqual([true, false]);
  });
});
