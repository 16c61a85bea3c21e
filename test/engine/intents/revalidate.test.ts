import { describe, expect, test } from 'vitest';
import { rig } from '../../support/rig.ts';

const network = 'networks: {a: {cidr: 10.1.0.0/24}}\n';

describe('src/engine/intents/revalidate.ts', () => {
  test('an unmanaged address that appears after the plan stops the purchase of one', async () => {
    const played = rig();
    await played.apply(network);

    const report = await played.apply(`${network}ips: {web: {}}\n`, {
      approve: async () => {
        played.emulator.mutate({ do: 'add_ip' });
        await played.clock.sleep(600_000);
        return true;
      },
    });

    expect(report.results).toMatchObject([{ key: 'ips.web', outcome: 'failed', code: 'overtaken' }]);
    expect(report.blocked).toMatchObject([{ key: 'ips.web', code: 'unmanaged_resources' }]);
    expect(played.emulator.world.projects[0]?.ips).toHaveLength(1);
  });
});

const size =
  'server_type: sliders-1, image: ubuntu-24.04, memory_mb: 1024, disk_gb: 20, replace: {order: delete_first}';
const server = (cores: number) => `servers: {web: {${size}, cores: ${cores}}}\n`;

describe('src/engine/intents/revalidate.ts: the world changes between the plan and the write', () => {
  test.each([
    [
      'an address that may be the purchase of another copy of the state appears: none is bought',
      ['ips: {a: {}}\n', 'ips: {a: {}, b: {}}\n'],
      { do: 'add_ip' },
      'unmanaged_resources',
    ],
    [
      'the project stops: a server that could not be created again is not deleted',
      [server(1), server(2)],
      { do: 'set_standing', standing: 'suspended' },
      'project_not_active',
    ],
  ] as const)('%s', async (_what, [before, after], change, code) => {
    const played = rig();
    await played.apply(before);
    const from = played.writes().length;
    let asked = 0;

    const report = await played.apply(after, {
      approve: async ({ operations }) => {
        expect(operations).not.toEqual([]);
        if (asked++ === 0) played.emulator.mutate(change);
        // Until then, the reads of the plan are fresh enough for the write.
        await played.clock.sleep(90_000);
        return true;
      },
    });

    expect(asked).toBe(1);
    expect(played.writes().slice(from)).toEqual([]);
    expect(report.blocked.map((each) => each.code)).toContain(code);
  });
});
