import { describe, expect, test } from 'vitest';
import { expectFixedPoint, expectInvariants } from '../../support/invariants.ts';
import { type Rig, rig } from '../../support/rig.ts';
import { executed, gpu, ips } from '../shop.ts';

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

  test('asks the operator if the second one is gone as well, because the reads may be wrong', async () => {
    const played = losing('/ips/\\d+$', removeIp, Number.POSITIVE_INFINITY);

    const { blocked } = await played.apply(ips('web'));

    expect(blocked).toMatchObject([{ key: 'ips.web', code: 'not_there' }]);
    expect(executed(played, 'ip')).toBe(2);
  });
});
