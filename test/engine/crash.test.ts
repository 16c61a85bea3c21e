import { describe, expect, test } from 'vitest';
import type { Project } from '../../src/emulator/world.ts';
import { memoryState } from '../../src/state/sqlite-driver.ts';
import { crashable } from '../support/crashable.ts';
import { expectFixedPoint } from '../support/invariants.ts';
import { rig } from '../support/rig.ts';
import { virtualClock } from '../support/virtual-clock.ts';

function stage() {
  const death = crashable();
  const store = memoryState({ createdAt: virtualClock().now(), lineage: 'test' });
  const played = rig({ store: death.store(store), wrap: death.transport });
  return { death, played };
}

/** How many moments there are to die at, when nothing goes wrong. */
async function momentsOf(before: string, spec: string): Promise<number> {
  const { played, death } = stage();
  await played.apply(before);
  death.dieAt(undefined, 'before');
  await played.apply(spec);
  return death.moments;
}

const web = (address: string, replace: string) => (cores: number) =>
  `
networks:
  backend: {cidr: 10.20.0.0/24}
ips:
  web: {}
servers:
  web:
    {server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, public_ipv4: ${address},
     network_interfaces: [backend], firewall: {enabled: true, policy_in: drop}, replace: ${replace}}
`;

describe('src/engine: a crash at any moment', () => {
  test.each([
    ['the new one first', web('{new: true}', 'allowed'), 2],
    ['the old one first', web('{new: true}', '{order: delete_first}'), 2],
    ['the old one first, for its address', web('{ip: web}', 'allowed'), 1],
  ])(
    'while a server is replaced, %s: the next run ends with one server and its address',
    async (_name, file, addresses) => {
      const moments = await momentsOf(file(1), file(2));
      expect(moments).toBeGreaterThan(15);
      // Between two moments nothing changes, so a crash before the second one is a crash after the first one.
      for (let moment = 1; moment <= moments; moment++) {
        const { played, death } = stage();
        await played.apply(file(1));
        death.dieAt(moment, 'after');
        await expect(played.apply(file(2))).rejects.toThrow(/process/);
        death.dieAt(undefined, 'after');
        played.restart();
        const where = `after moment ${moment} of ${moments}`;
        const { outcome, blocked } = await played.apply(file(2));
        expect({ outcome, blocked }, where).toEqual({ outcome: 'converged', blocked: [] });
        const [{ servers, ips }] = played.emulator.world.projects as [Project];
        expect(servers, where).toMatchObject([{ cores: 2, firewall: { enabled: true } }]);
        expect(ips, where).toHaveLength(addresses);
        expect(ips, where).toContainEqual(expect.objectContaining({ serverId: servers[0]?.id }));
        expectFixedPoint(await played.plan(file(2)));
      }
    },
    60_000,
  );
});
