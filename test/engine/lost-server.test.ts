import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
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

describe('engine: a server that looks lost', () => {
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

  test('whose address hangs on another server of the file is made again once that address is let go of', async () => {
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
    expect(held?.resolve).toContain(`vdcsync forget ${addressKey}`);
    expect(held?.resolve).not.toContain('back');
    await played.clock.run(played.engine.forget(load(two), addressKey));
    expect((await played.apply(two)).outcome).toBe('converged');
    expect(project.ips).toContain(address);
  });
});
