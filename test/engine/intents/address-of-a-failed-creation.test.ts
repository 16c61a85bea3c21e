import { describe, expect, test } from 'vitest';
import type { Readings } from '../../../src/emulator/readings.ts';
import { type Rig, rig } from '../../support/rig.ts';
import { codes, count, head, project, web } from '../claims/one-server.ts';

/** The first creation of a server fails in its task, and its address stays. */
function failing(readings: Partial<Readings> = {}): Rig {
  const played = rig({ emulator: { readings: { failedTaskKeepsIp: true, ...readings } } });
  played.emulator.mutate({ do: 'fail_next_task' });
  return played;
}

const isFree = ({ serverId }: { readonly serverId: number | null }) => serverId === null;

describe('src/engine/intents/evidence.ts', () => {
  test.each([
    ['an attended run', {}],
    ['an unattended run', { unattended: true }],
  ])('%s creates the server again, with the address that the answer to the failed creation named', async (_name, options) => {
    const played = failing();

    const report = await played.apply(head + web, options);

    expect([report.outcome, report.blocked]).toEqual(['converged', []]);
    expect(count(played)).toEqual([1, 1]);
    expect(project(played).ips.filter(isFree)).toEqual([]);
    const bound = (await played.store.bindings()).map(({ key, id }) => [key, id]);
    expect(bound).toEqual([
      ['servers.web', '2002'],
      ['servers.web.public_ipv4', '5001'],
    ]);
  });

  test('an address that no answer named is put to the operator', async () => {
    const played = failing({ addressAt: 'taskDone', attachedAt: 'taskDone' });

    const report = await played.apply(head + web);

    expect(codes(report.plan)).toMatchObject({ 'servers.web': 'task_failed' });
    expect(count(played)).toEqual([0, 1]);
  });

  test('an unmanaged address that came at the same time is not released', async () => {
    const played = failing();
    const add = { do: 'add_ip' } as const;
    played.clock.sleep(20_000, new AbortController().signal).then(() => played.emulator.mutate(add));

    const report = await played.apply(head + web);

    const unmanaged = project(played).ips.filter(isFree);
    expect(unmanaged).toHaveLength(1);
    expect(JSON.stringify(report.plan.warnings)).toContain(unmanaged[0]?.address);
  });
});
