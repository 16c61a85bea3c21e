import { describe, expect, test } from 'vitest';
import type { Transport } from '../../src/core/transport.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import { type Rig, rig } from '../support/rig.ts';
import { codes, head, project, size } from './claims/one-server.ts';

const minute = 60_000;
const executed = ({ emulator }: Rig, kind: string) =>
  emulator.world.executions.filter((each) => each.kind === kind).length;

describe('src/engine/intents/evidence.ts', () => {
  test('a network interface behind a server error, whose task takes 9 minutes, is added once', async () => {
    const durations = { add_card: [9 * minute, 9 * minute] } as const;
    const played = rig({ emulator: { readings: { interfaceAt: 'taskDone' }, durations } });
    const networks = `${head}networks:\n  n: {cidr: 10.1.0.0/24}\n`;
    await played.apply(`${networks}servers:\n  web: {${size}}\n`);
    const hidden = { do: 'answer', status: 500, effect: 'done' } as const;
    played.emulator.setFaults([faultRule({ path: 'add_network_interface', nth: 1 }, hidden)]);

    const report = await played.apply(`${networks}servers:\n  web: {${size}, network_interfaces: [n]}\n`);

    expect(report.outcome).toBe('converged');
    expect(project(played).servers[0]?.cards).toHaveLength(1);
  });
});

describe('src/engine/run/apply.ts', () => {
  test('the run that created a server on an unmanaged address reports the address', async () => {
    const spec = `${head}ips:\n  web: {}\nservers:\n  web: {${size}, public_ipv4: {ip: web}}\n`;
    /** Another client takes the address of the spec, and leaves one of its own, just before the server is created. */
    const exchanging = (inner: Transport): Transport => ({
      ...inner,
      send(request, options) {
        const { emulator } = played;
        if (
          request.method === 'POST' &&
          request.url.endsWith('/servers') &&
          executed(played, 'server') === 0
        ) {
          const [own] = project(played).ips;
          const holder = emulator.world.projects[0]?.servers.length;
          if (holder === 0 && own !== undefined) {
            emulator.mutate({ do: 'add_ip' });
            project(played).ips.reverse();
          }
        }
        return inner.send(request, options);
      },
    });
    const played: Rig = rig({ wrap: exchanging });

    const report = await played.apply(spec);

    const unmanaged = project(played).ips.find(({ serverId }) => serverId !== null)?.address ?? 'none';
    const told = JSON.stringify([report.plan.warnings, report.blocked]);
    expect([executed(played, 'server'), codes(report.plan)]).toEqual([1, {}]);
    expect(told).toContain(unmanaged);
  });
});
