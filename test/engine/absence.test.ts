import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { faultRule } from '../../src/emulator/faults.ts';
import { expectInvariants } from '../support/invariants.ts';
import { resolveOf } from '../support/resolve.ts';
import { load, type Rig, rig } from '../support/rig.ts';

const web = `settings: {exclusive: true, max_deletions: 10}
servers:
  web: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}}
`;

const addressKey = 'servers.web.public_ipv4' as ResourceKey;
const problem = JSON.stringify({ status: 404, code: 'server_not_found', title: 'no', request_id: 'r1' });

const missed = {
  status: 404,
  headers: { 'content-type': 'application/problem+json', 'x-request-id': 'r1' },
  body: problem,
};

const minute = 60_000;
const hour = 60 * minute;
const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';

describe('src/engine: a server that looks lost', () => {
  test('keeps its address until a second look misses it as well', async () => {
    let misses = 0;
    const played: Rig = rig({
      wrap: (inner) => ({
        close: () => inner.close(),
        async send(request, options) {
          if (misses === 0 || !request.url.endsWith('/network-interfaces'))
            return inner.send(request, options);
          misses -= 1;
          return missed;
        },
      }),
    });
    await played.apply(web);
    for (const ip of played.emulator.world.projects[0]?.ips ?? []) ip.serverId = null;
    await played.clock.run(played.clock.sleep(120_000));
    misses = 1;

    const { blocked } = await played.apply(web);

    expect(blocked).toEqual([]);
    expect(played.writes().map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /servers']);
  });

  test('whose address hangs on another server of the spec is made again once that address is released', async () => {
    const played = rig();
    const two = `${web}${web.split('\n')[2]?.replace('web', 'db')}\n`;
    await played.apply(two);
    const project = played.emulator.world.projects[0] ?? expect.fail('no project');
    const idOf = (name: string) =>
      project.servers.find((each) => each.name === name)?.id ?? expect.fail(name);
    const address = project.ips.find(({ serverId }) => serverId === idOf('web')) ?? expect.fail('no address');
    played.emulator.mutate({ do: 'delete_server', id: idOf('web') });
    address.serverId = idOf('db');
    await played.clock.run(played.clock.sleep(120_000));

    const { blocked } = await played.apply(two);

    const held = blocked.find(({ key }) => key === addressKey);
    expect(resolveOf(held)).toContain(`vdcsync forget ${addressKey}`);
    expect(resolveOf(held)).not.toContain('back');
    await played.clock.run(played.engine.forget(load(two), addressKey));
    expect((await played.apply(two)).outcome).toBe('converged');
    expect(project.ips).toContain(address);
  });
});

describe('src/engine', () => {
  const server = `${head}servers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}}\n`;

  test('is two looks a minute apart, also where the clock leaps at each of two restarts', async () => {
    const played = rig({ emulator: { readings: { staleReadsMs: 55_000 } } });
    await played.apply(head);
    await played.clock.run(played.clock.sleep(2 * minute));
    played.emulator.setFaults([
      faultRule({ path: 'create_server', nth: 1 }, { do: 'answer', status: 500, effect: 'done' }),
    ]);
    for (let kill = 0; kill < 2; kill++) {
      const halt = new AbortController();
      const run = played.apply(server, { halt: halt.signal }).catch(() => undefined);
      await played.clock.run(played.clock.sleep(2_000).then(() => halt.abort(new Error('killed'))));
      await run;
      played.clock.jump(2 * hour);
      played.restart();
    }

    const report = await played.apply(server);

    expect(report.outcome).toBe('converged');
    expect(played.emulator.world.executions.filter(({ kind }) => kind === 'server')).toHaveLength(1);
    await expectInvariants(played);
  });

  test.each([
    ['a network', 'create_network', 'network', `${head}networks:\n  backend: {cidr: 10.20.0.0/24}\n`, 9],
    ['a server', 'create_server', 'server', server, 25],
    ['an ISO', 'add_iso', 'iso', `${head}isos:\n  r: {url: "https://mirror.example.com/r.iso"}\n`, 14],
  ] as const)('of %s waits until a creation would show, also over a restart', async (_name, path, kind, spec, showsAfter) => {
    const readings = { addressAt: 'taskDone', isoAt: 'taskDone' } as const;
    for (const restarts of [false, true]) {
      const shows = showsAfter * minute;
      const durations = { [path]: [shows, shows] } as const;
      const played = rig({ emulator: { readings, durations } });
      await played.apply(head);
      const hidden = { do: 'answer', status: 500, effect: 'done' } as const;
      played.emulator.setFaults([faultRule({ path, nth: 1 }, hidden)]);
      if (restarts) {
        const halt = new AbortController();
        void played.clock.sleep(4 * minute).then(() => halt.abort(new Error('killed')));
        await played.apply(spec, { halt: halt.signal }).catch(() => undefined);
        played.restart();
      }

      const report = await played.apply(spec);

      expect(report.outcome).toBe('converged');
      expect(played.emulator.world.executions.filter((each) => each.kind === kind)).toHaveLength(1);
      await expectInvariants(played);
    }
  });

  test.each([
    1, 2, 3, 4, 5, 6,
  ])('of a network whose deletion failed is not believed of one short list (the %i.)', async (nth) => {
    const played = rig();
    await played.apply(`${head}networks:\n  backend: {cidr: 10.20.0.0/24}\n`);
    played.emulator.mutate({ do: 'fail_next_task' });
    played.emulator.setFaults([faultRule({ path: 'list_networks', nth }, { do: 'truncate_list', keep: 1 })]);

    const report = await played.apply(head);

    const alive = played.emulator.world.projects[0]?.networks.some(({ name }) => name === 'backend');
    const bound = (await played.store.bindings()).length > 0;
    expect(bound, JSON.stringify(report)).toBe(alive);
    await expectInvariants(played);
  });
});
