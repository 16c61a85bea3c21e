import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { load, type Rig, rig } from '../../support/rig.ts';
import { codes, count, head, project, web } from './one-server.ts';

describe('src/engine/claims: an address that is not to come with its server', () => {
  test.each([
    [
      'forgotten',
      async (played: Rig, spec: string) => {
        await played.apply(spec);
        await played.clock.run(played.engine.forget(load(spec), 'servers.web.public_ipv4' as ResourceKey));
      },
    ],
    [
      'said to be somebody else’s',
      async (played: Rig, spec: string) => {
        played.emulator.mutate({ do: 'add_server', name: 'web', public: true });
        await played.clock.run(played.engine.adopt(load(spec), 'servers.web' as ResourceKey, '2001'));
        const address = project(played).ips[0]?.address ?? '';
        await played.clock.run(played.engine.ignore(load(spec), [address]));
      },
    ],
    [
      'said to be somebody else’s before its server was adopted',
      async (played: Rig, spec: string) => {
        played.emulator.mutate({ do: 'add_server', name: 'web', public: true });
        const address = project(played).ips[0]?.address ?? '';
        await played.clock.run(played.engine.ignore(load(spec), [address]));
        await played.clock.run(played.engine.adopt(load(spec), 'servers.web' as ResourceKey, '2001'));
      },
    ],
    [
      'taken as one that was free',
      async (played: Rig, spec: string) => {
        played.emulator.mutate({ do: 'add_ip' });
        const ignoring = spec.replace('prune', 'unmanaged: ignore, prune');
        await played.apply(ignoring.replace('{new: true}', '{reuse: true}'));
      },
    ],
  ])('%s, is not adopted, nor released with it', async (_how, prepare) => {
    const played = rig();
    await prepare(played, head + web);

    const report = await played.apply(head + web);
    await played.apply(head);

    expect(report.results.map(({ key }) => key)).not.toContain('servers.web.public_ipv4');
    expect(count(played)).toEqual([0, 1]);
  });
});

describe('src/engine/claims: what nothing stands for any more', () => {
  test('an address that a failed creation left behind a server error is told', async () => {
    const played = rig({ emulator: { readings: { failedTaskKeepsIp: true } } });
    played.emulator.mutate({ do: 'fail_next_task' });
    played.emulator.setFaults([
      faultRule({ path: 'create_server', nth: 1 }, { do: 'answer', status: 500, effect: 'done' }),
    ]);

    const report = await played.apply(head + web);

    const stray = project(played).ips.find(({ serverId }) => serverId === null);
    expect(stray).toBeDefined();
    const told = JSON.stringify([report.plan.warnings, report.blocked]);
    expect(told).toContain(stray?.address);
    expect(codes(await played.plan(`${head}${web}ips:\n  one: {}\n`))).toEqual({
      'ips.one': 'unmanaged_resources',
    });
  });
});
