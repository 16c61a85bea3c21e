import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { median, soak } from '../../bench/soaking.ts';

describe.runIf(existsSync('/proc/self/status'))('src/daemon/daemon.ts: four hours of life, faster', () => {
  test('memory and files stay limited through faults, edits and drift, and the project converges', async () => {
    const { samples, converged, exitCode, warnings } = await soak({
      reconciliations: 54,
      speed: 3_000,
      servers: 3,
    });
    const third = Math.floor(samples.length / 3);
    const [early, late] = [samples.slice(third, 2 * third), samples.slice(2 * third)];
    // One that every reconciliation leaves open would be 18 more.
    for (const name of ['handles', 'files'] as const) {
      expect(median(late, name), name).toBeLessThanOrEqual(median(early, name) + 10);
    }
    // Room for a collector that takes its time; a week's figures are `npm run soak`'s.
    for (const name of ['rssMb', 'heapMb'] as const) {
      expect(median(late, name), name).toBeLessThan(median(early, name) * 1.5 + 50);
    }
    expect(warnings).toBe('');
    expect([converged, exitCode]).toEqual([true, 0]);
  });
});
