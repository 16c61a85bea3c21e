import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { saidBy } from '../../support/resolve.ts';
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

  test('a server that was somebody else’s is adopted with its address after all', async () => {
    const played = rig();
    played.emulator.mutate({ do: 'add_server', name: 'web', public: true });
    await played.clock.run(played.engine.ignore(load(head), ['2001']));
    await played.clock.run(played.engine.adopt(load(head + web), 'servers.web' as ResourceKey, '2001'));

    await played.apply(head + web);
    await played.apply(head);

    expect(count(played)).toEqual([0, 0]);
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

  test('what a deletion leaves, and its plan has told as billed, is in nobody’s way', async () => {
    const played = rig();
    const keep = (head + web).replace('replace: allowed', 'keep_ip: true');
    await played.apply(keep);
    await played.apply(head);

    const plan = await played.plan(`${head}ips:\n  one: {}\n`);

    expect(count(played)).toEqual([0, 1]);
    const codes = plan.warnings.map(({ code }) => code);
    expect([plan.blocked, codes]).toEqual([[], ['unused_address', 'address_free']]);
  });

  test('a key is forgotten: what it stood for stays, and is in nobody’s way', async () => {
    const played = rig();
    await played.apply(head + web);
    const forget = (spec: string) =>
      played.clock.run(played.engine.forget(load(spec), 'servers.web' as ResourceKey));

    await expect(forget(head + web)).rejects.toThrow('the next apply would create it again');
    const said = await forget(head);

    expect(saidBy(said)).toContain('Server 2001');
    expect(await played.store.bindings()).toEqual([]);
    const report = await played.apply(head);
    expect([report.outcome, report.plan.warnings]).toEqual(['converged', []]);
    expect(count(played)).toEqual([1, 1]);
    expect((await played.plan((head + web).replace('web:', 'other:'))).blocked).toEqual([]);
  });
});
