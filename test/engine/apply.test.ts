import { describe, expect, test } from 'vitest';
import { load, rig } from '../support/rig.ts';
import { converges, executed, shop as small } from './shop.ts';

describe('src/engine/run/apply.ts', () => {
  test('many servers in creation at once are not taken for unmanaged servers', async () => {
    const server = `{server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}, network_interfaces: [n]}`;
    const names = Array.from({ length: 60 }, (_, at) => `  web-${at}: ${server}\n`);

    const { results } = await rig().apply(`networks: {n: {cidr: 10.9.0.0/24}}\nservers:\n${names.join('')}`);

    expect(results.filter(({ outcome }) => outcome !== 'done')).toEqual([]);
  });

  test('two runs at once happen one after the other', async () => {
    const played = rig();

    await played.clock.run(
      Promise.all([
        played.engine.apply(load(small), { approve: async () => true }),
        played.engine.apply(load(small), { approve: async () => true }),
      ]),
    );

    await converges(played, small);
    expect(executed(played, 'ip')).toBe(2);
  });
});
