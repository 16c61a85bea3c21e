import { describe, expect, test } from 'vitest';
import { faultRule } from '../../../src/emulator/faults.ts';
import { expectFixedPoint, expectInvariants } from '../../support/invariants.ts';
import { type Rig, rig } from '../../support/rig.ts';
import { executed, gpu, head, ips } from '../shop.ts';

/** Another user deletes what was created, before the first read of it. */
function losing(read: string, remove: (played: Rig) => void, times = 1): Rig {
  let left = times;
  const played: Rig = rig({
    wrap: (inner) => ({
      ...inner,
      send(request, options) {
        const isRead = request.method === 'GET' && new RegExp(read).test(request.url);
        if (isRead && left-- > 0) remove(played);
        return inner.send(request, options);
      },
    }),
  });
  return played;
}

const project = (played: Rig) => played.emulator.world.projects[0];

function removeIp(played: Rig): void {
  for (const { id } of project(played)?.ips ?? []) played.emulator.mutate({ do: 'delete_ip', id });
}

function removeServer(played: Rig): void {
  for (const { id } of project(played)?.servers ?? []) played.emulator.mutate({ do: 'delete_server', id });
}

describe('src/engine/intents/not-there.ts: a creation that succeeded and that no read shows', () => {
  test.each([
    ['ip', ips('web'), '/ips/\\d+$', removeIp],
    ['server', gpu, '/network-interfaces$', removeServer],
  ] as const)('is gone if its own read (%s) answers 404 twice: the next one is created', async (kind, spec, read, remove) => {
    const played = losing(read, remove);

    const report = await played.apply(spec);

    expect(report.blocked).toEqual([]);
    expect(report.outcome).toBe('converged');
    expect(executed(played, kind)).toBe(2);
    expect(project(played)?.[`${kind}s`]).toHaveLength(1);
    await expectInvariants(played);
    expectFixedPoint(await played.plan(spec));
  });

  test.each([
    ['ip', ips('web'), 'read_ip'],
    ['iso', `${head}isos: {rescue: {url: "https://mirror.example.com/a.iso"}}\n`, 'read_iso'],
  ] as const)('is not gone if its own read (%s) is late once and answers a false 404 once', async (kind, spec, path) => {
    const played = rig({ emulator: { readings: { staleReadsMs: 30_000, isoCreate: 'sync' } } });
    played.emulator.setFaults([
      faultRule({ path, nth: 2 }, { do: 'answer', status: 404, code: 'not_found' }),
    ]);

    const report = await played.apply(spec);

    expect(report.outcome).toBe('converged');
    expect(executed(played, kind)).toBe(1);
    await expectInvariants(played);
  });

  test('asks the operator if the second one is gone as well, because the reads may be wrong', async () => {
    const played = losing('/ips/\\d+$', removeIp, Number.POSITIVE_INFINITY);

    const { blocked } = await played.apply(ips('web'));

    expect(blocked).toMatchObject([{ key: 'ips.web', code: 'not_there' }]);
    expect(executed(played, 'ip')).toBe(2);
  });

  test('asks about a network, as a list may end early, and settles it once the list shows the network', async () => {
    const played = rig();
    const network = `${head}networks:\n  backend: {cidr: 10.20.0.0/24}\n`;
    await played.plan(network);
    played.emulator.setFaults([faultRule({ path: 'list_networks' }, { do: 'truncate_list', keep: 1 })]);
    expect((await played.apply(network)).blocked).toMatchObject([{ code: 'not_there' }]);
    played.emulator.setFaults([]);

    const report = await played.apply(network);

    expect(report.outcome).toBe('converged');
    expect(executed(played, 'network')).toBe(1);
  });

  test('is not taken as gone while no task has told its end: it is bought once', async () => {
    const played = rig({ emulator: { readings: { omitTaskField: true, isoAt: 'taskDone' } } });
    const spec = `${head}isos: {rescue: {url: "https://mirror.example.com/a.iso"}}\n`;
    played.emulator.setFaults([faultRule({ path: 'add_iso', nth: 1 }, { do: 'task', ms: 7 * 3_600_000 })]);

    expect((await played.apply(spec)).blocked).toMatchObject([{ key: 'isos.rescue', code: 'stuck' }]);
    await played.clock.run(played.clock.sleep(2 * 3_600_000));

    expect((await played.apply(spec)).outcome).toBe('converged');
    expect(executed(played, 'iso')).toBe(1);
  });

  test('a deletion that had no effect is sent again under another key', async () => {
    let left = 1;
    const played = rig({
      wrap: (inner) => ({
        ...inner,
        async send(request, options) {
          if (request.method !== 'DELETE' || left-- <= 0) return inner.send(request, options);
          const headers = { 'content-type': 'application/json', 'x-request-id': 'req_1' };
          return { status: 200, headers, body: JSON.stringify({ data: { deleted: 5001 }, task: null }) };
        },
      }),
    });
    await played.apply(ips('web'));

    const report = await played.apply(head);

    expect(report.blocked).toEqual([]);
    expect(project(played)?.ips).toEqual([]);
  });
});
