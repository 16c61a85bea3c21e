import { describe, expect, test } from 'vitest';
import type { ProgressEvent } from '../../../src/core/progress.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { rig } from '../../support/rig.ts';

const file = (image: string) => `
networks: {n: {cidr: 10.9.0.0/24}}
servers:
  web: {server_type: sliders-1, image: ${image}, cores: 1, memory_mb: 1024, disk_gb: 20, replace: {order: delete_first}}
`;

describe('src/engine/intents/replacement.ts: a replacement whose deletion has been given up on, in a run that goes on', () => {
  test('buys nothing beside what is there', async () => {
    let losses = 5;
    const lose = () =>
      void project().networks.splice(
        project().networks.findIndex(({ name }) => name === 'n'),
        1,
      );
    // Somebody takes the network away each time that it is made, so that each round gets something done.
    const onEvent = (event: ProgressEvent) => {
      if (event.type !== 'ended' || event.result.key !== 'networks.n' || losses === 0) return;
      losses -= 1;
      lose();
    };
    const played = rig({ onEvent });
    const project = () => played.emulator.world.projects[0] ?? expect.fail('no project');
    losses = 0;
    await played.apply(file('ubuntu-24.04'));
    losses = 5;
    lose();
    const refusal = { do: 'answer', status: 403, code: 'insufficient_privileges', effect: 'none' } as const;
    played.emulator.setFaults([faultRule({ path: 'delete_server' }, refusal)]);

    const report = await played.apply(file('debian-13'));

    const tries = report.results.filter(({ key }) => key === 'servers.web');
    expect(tries.map(({ verb, code }) => [verb, code])).toEqual(
      Array(3).fill(['delete', 'insufficient_privileges']),
    );
    expect(project().servers.map(({ id }) => id)).toEqual([2001]);
    expect(report.outcome).toBe('blocked');

    played.emulator.setFaults([]);
    expect((await played.apply(file('debian-13'))).outcome).toBe('converged');
    expect(project().servers.map(({ id }) => id)).toEqual([2002]);
  });
});
