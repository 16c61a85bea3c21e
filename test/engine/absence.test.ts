import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { expectInvariants } from '../support/invariants.ts';
import { type Rig, rig } from '../support/rig.ts';

const web = `settings: {exclusive: true, max_deletions: 10}
servers:
  web: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}}
`;
const problem = JSON.stringify({ status: 404, code: 'server_not_found', title: 'no', request_id: 'r1' });

const missed = {
  status: 404,
  headers: { 'content-type': 'application/problem+json', 'x-request-id': 'r1' },
  body: problem,
};

const minute = 60_000;
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
});

describe('src/engine', () => {
  const server = `${head}servers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}}\n`;

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
});
