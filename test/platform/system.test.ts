import { describe, expect, test } from 'vitest';
import { systemClock, systemRandom } from '../../src/platform/system.ts';

describe('src/platform/system.ts', () => {
  test('sleeps at least as long as asked', async () => {
    for (const ms of [0, 1, 7.5, 20]) {
      const startedAt = systemClock.monotonic();
      await systemClock.sleep(ms);
      expect(systemClock.monotonic() - startedAt).toBeGreaterThanOrEqual(ms);
    }
  });

  test('a sleep longer than a timer can hold does not end at once', async () => {
    const stop = new AbortController();
    const sleeping = systemClock.sleep(2 ** 40, stop.signal);
    const first = await Promise.race([
      sleeping.then(() => 'woke'),
      systemClock.sleep(20).then(() => 'slept'),
    ]);
    expect(first).toBe('slept');
    stop.abort(new Error('stopped'));
    await expect(sleeping).rejects.toThrow('stopped');
  });

  test('rejects with the reason of a signal that is aborted already', async () => {
    await expect(systemClock.sleep(10, AbortSignal.abort(new Error('before')))).rejects.toThrow('before');
  });
});

describe('src/platform/system.ts', () => {
  test('returns numbers in [0, 1)', () => {
    const numbers = Array.from({ length: 1_000 }, () => systemRandom.next());
    expect(numbers.every((each) => each >= 0 && each < 1)).toBe(true);
    expect(new Set(numbers).size).toBeGreaterThan(990);
  });
});
