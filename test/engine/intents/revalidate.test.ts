import { describe, expect, test } from 'vitest';
import { faultRule } from '../../../src/emulator/faults.ts';
import { type Rig, rig } from '../../support/rig.ts';

const network = 'networks: {a: {cidr: 10.1.0.0/24}}\n';
const pruning = 'settings: {prune: true}\n';

/** The API was busy when it got the deletion of the network, and the process ended while the deletion waited. */
async function waiting(): Promise<Rig> {
  const played = rig();
  await played.apply(network);
  const busy = { do: 'answer', status: 409, code: 'server_busy', retryAfter: 60 } as const;
  played.emulator.setFaults([faultRule({ path: 'delete_network', nth: 1 }, busy)]);
  const halt = new AbortController();
  void played.clock.sleep(20_000).then(() => halt.abort(new Error('halted')));
  await played.apply(pruning, { halt: halt.signal });
  expect(await played.store.openIntents()).toMatchObject([{ verb: 'delete' }]);
  return played;
}

const networks = ({ emulator }: Rig) =>
  emulator.world.projects[0]?.networks.flatMap(({ cidr }) => (cidr === '10.1.0.0/24' ? [cidr] : []));

describe('src/engine/intents/revalidate.ts', () => {
  test.each([
    ['prune_disabled', ''],
    ['suspended', 'settings: {prune: true, suspend: {reason: maintenance}}\n'],
  ])('a deletion that waits to be sent again is not sent after the file forbids it: %s', async (code, file) => {
    const played = await waiting();

    const report = await played.apply(file);

    expect(networks(played)).toEqual(['10.1.0.0/24']);
    expect(report.blocked).toMatchObject([{ key: 'networks.a', code }]);
    expect(await played.store.openIntents()).toEqual([]);
  });

  test('a deletion that waits is sent again while the spec asks for it', async () => {
    const played = await waiting();

    expect((await played.apply(pruning)).outcome).toBe('converged');

    expect(networks(played)).toEqual([]);
  });

  test('an operation is done without a write if the resource already has the declared values', async () => {
    const played = rig();
    const fields = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';

    const report = await played.apply(
      `servers: {web: {${fields}, public_ipv4: {new: true}, firewall: {enabled: false}}}\n`,
    );

    expect(report.outcome).toBe('converged');
    expect(report.results.map(({ key, outcome }) => `${key} ${outcome}`)).toEqual([
      'servers.web done',
      'servers.web.firewall done',
    ]);
    expect((await played.store.intents({ limit: 9 })).map(({ key }) => key)).toEqual(['servers.web']);
  });

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
