import { describe, expect, test } from 'vitest';
import type { ApplyReport } from '../../../src/core/progress.ts';
import { faultRule } from '../../../src/emulator/faults.ts';
import { isProbe } from '../../support/invariants.ts';
import { load, type Rig, rig } from '../../support/rig.ts';
import { executed, gpu, ips } from '../shop.ts';

describe('src/engine/operator: an operator decides', () => {
  test('a live resource of one key cannot be adopted for another', async () => {
    const played = rig();
    await played.apply(ips('one'));
    const [made] = played.emulator.world.projects[0]?.ips ?? [];

    const said = played.clock.run(
      played.engine.adopt(load(ips('one', 'two')), 'ips.two' as never, String(made?.id)),
    );

    await expect(said).rejects.toMatchObject({
      message: expect.stringContaining('already bound to ips.one'),
      remedies: [
        {
          path: 'settings',
          set: { prune: false },
          next: [
            { path: 'ips.one', entry: 'remove' },
            { command: 'forget', args: ['ips.one'] },
          ],
        },
      ],
    });

    await played.clock.run(played.engine.forget(load(ips('two')), 'ips.one' as never));
    const adopted = await played.clock.run(
      played.engine.adopt(load(ips('two')), 'ips.two' as never, String(made?.id)),
    );
    expect(adopted.text).toContain(`ips.two is bound to ${made?.id}`);
  });

  const blind = gpu
    .replace('[l40s-2, l40s-1]', 'l40s-1')
    .replace('exclusive: true', 'exclusive: true, unconfirmed_servers: ask');

  async function blocked(
    effect: 'none' | 'done',
  ): Promise<{ readonly played: Rig; readonly report: ApplyReport }> {
    const played = rig();
    played.emulator.setFaults([
      faultRule({ path: 'create_server', nth: 1 }, { do: 'reset', effect, stored: false }),
    ]);
    const report = await played.apply(blind);
    expect(report.blocked).toMatchObject([{ key: 'servers.gpu', code: 'outcome_unknown' }]);
    return { played, report };
  }

  const resolve = (played: Rig, resolution: Parameters<Rig['engine']['resolve']>[2]) =>
    played.clock.run(played.engine.resolve(load(blind), 'servers.gpu' as never, resolution));

  test('--adopt: bound, and bought once', async () => {
    const { played } = await blocked('done');

    await resolve(played, { type: 'adopt', id: '2001' });

    expect((await played.apply(blind)).outcome).toBe('converged');
    expect(executed(played, 'server')).toBe(1);
  });

  test('--adopt of what is not there is refused', async () => {
    const { played } = await blocked('none');

    await expect(resolve(played, { type: 'adopt', id: '2001' })).rejects.toThrow('no server 2001');
  });

  test.each(['absent', 'abandon'] as const)('--%s: the next run makes it under a new key', async (type) => {
    const { played } = await blocked('none');

    await resolve(played, { type });

    expect((await played.apply(blind)).outcome).toBe('converged');
    const requests = played.writes().filter((each) => !isProbe(each));
    expect(new Set(requests.map(({ key }) => key)).size).toBe(2);
    expect(executed(played, 'server')).toBe(1);
  });

  test('adopt: binds what somebody else made, and the next run makes no other', async () => {
    const played = rig();
    const made = played.emulator.mutate({ do: 'add_ip' }) as { readonly id: number };

    await played.clock.run(played.engine.adopt(load(ips('web')), 'ips.web' as never, String(made.id)));

    expect((await played.apply(ips('web'))).outcome).toBe('converged');
    expect(played.writes()).toEqual([]);
  });
});
