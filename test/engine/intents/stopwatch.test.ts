import { expect, test } from 'vitest';
import { createStopwatch } from '../../../src/engine/intents/stopwatch.ts';
import { virtualClock } from '../../support/virtual-clock.ts';

test('engine/intents/stopwatch: a clock that was set back makes a wait no longer, however often it is asked for', async () => {
  const clock = virtualClock();
  const due = clock.now() + 25 * 3_600_000;
  const stopwatch = createStopwatch(clock, 1);

  const first = stopwatch.until('intent', 'due', due);
  await clock.run(clock.sleep(first));

  expect(first).toBe(20 * 60_000);
  expect(stopwatch.until('intent', 'due', due)).toBe(0);
});
