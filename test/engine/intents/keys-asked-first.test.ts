import { describe, expect, test } from 'vitest';
import { memoryState } from '../../../src/state/sqlite-driver.ts';
import { rig } from '../../support/rig.ts';
import { virtualClock } from '../../support/virtual-clock.ts';
import { executed } from '../shop.ts';

const slider = 'server_type: sliders-1, image: ubuntu-24.04, memory_mb: 1024, disk_gb: 20';
const head = 'settings: {prune: true, max_deletions: 10}\n';
const server = (name: string, cores = 1, more = '') =>
  `${head}servers:\n  ${name}: {${slider}, cores: ${cores}, replace: allowed${more}}\n`;

describe('src/engine/run/recover.ts: a state that is lost, in a project that shows nothing', () => {
  const fresh = () => memoryState({ createdAt: virtualClock().now(), lineage: 'new' });

  test('finds a server that was renamed under the key of its former name', async () => {
    const played = rig();
    await played.apply(server('old'));
    const renamed = server('new', 1, ', name: old, moved: {from: old}');
    expect((await played.apply(renamed)).outcome).toBe('converged');
    played.restart(fresh());

    const report = await played.apply(renamed);

    expect(executed(played, 'server')).toBe(1);
    expect(report.outcome).toBe('converged');
  });

  test.each([
    1, 2,
  ])('finds a server that was replaced %i times under the key of its incarnation', async (times) => {
    const played = rig();
    for (let cores = 1; cores <= times + 1; cores++)
      expect((await played.apply(server('web', cores))).outcome).toBe('converged');
    played.restart(fresh());

    const report = await played.apply(server('web', times + 1));

    expect(executed(played, 'server')).toBe(times + 1);
    expect(report.outcome).toBe('converged');
  });
});
