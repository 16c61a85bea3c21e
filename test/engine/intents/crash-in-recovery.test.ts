import { describe, expect, test } from 'vitest';
import { memoryState } from '../../../src/state/sqlite-driver.ts';
import { crashable } from '../../support/crashable.ts';
import { rig } from '../../support/rig.ts';
import { virtualClock } from '../../support/virtual-clock.ts';

const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
const unattended = { unattended: true } as const;

describe('src/engine/run/recover.ts: a process that dies at any moment of a recovery', () => {
  const fresh = () => memoryState({ createdAt: virtualClock().now(), lineage: 'another' });

  test.each([
    ['servers', `servers: {web: {${size}, public_ipv4: {new: true}}}\n`, ''],
    ['ips', 'ips: {web: {}}\n', ''],
    ['servers', `servers: {web: {${size}, public_ipv4: {new: true}}}\n`, 'settings: {unmanaged: ignore}\n'],
  ] as const)('of %s leaves the resource of the other file', async (map, spec, settings) => {
    for (let moment = 1, alive = false; !alive; moment++) {
      const [death, second] = [crashable(), fresh()];
      const played = rig();
      await played.apply(spec);
      const bought = played.emulator.billed();
      played.restart(death.store(second));
      death.dieAt(moment, 'after');
      alive = await played.apply(`${settings}${spec}`, unattended).then(
        () => true,
        () => false,
      );
      played.restart(second);
      await played.apply(`${settings}${spec}`, unattended);
      await played.apply('settings: {prune: true, max_deletions: 9}\n', unattended);
      expect(played.emulator.billed(), `${map}, moment ${moment}`).toEqual(bought);
    }
  });
});
