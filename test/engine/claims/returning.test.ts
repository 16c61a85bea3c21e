import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { expectFixedPoint } from '../../support/invariants.ts';
import { applied, type Rig } from '../../support/rig.ts';

const file = (cores: number, more = 'replace: allowed', name = 'web') =>
  `servers: {${name}: {server_type: sliders-1, image: ubuntu-24.04, cores: ${cores}, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}, firewall: {enabled: true, policy_in: drop}, ${more}}}\n`;

const servers = (played: Rig) => played.project.servers.map(({ id, cores }) => [id, cores]);
const addresses = (played: Rig) => played.project.ips.map(({ id, serverId }) => [id, serverId]);
const purchases = (played: Rig) =>
  played
    .writes()
    .filter(({ method, path, body }) => `${method} ${path}` === 'POST /servers' && !body?.includes('_probe'));
const web = 'servers.web' as ResourceKey;

/** A replaced server whose deletion the API refuses: both servers exist. */
async function both(): Promise<Rig> {
  const played = await applied(file(1));
  const refusal = { do: 'answer', status: 403, code: 'locked', effect: 'none' } as const;
  await played.failing({ path: 'delete_server' }, refusal, file(2));
  played.restart();
  expect(servers(played)).toEqual([
    [2001, 1],
    [2002, 2],
  ]);
  return played;
}

describe('src/engine/claims/line.ts: an edit is reverted while the old and the new server exist', () => {
  test.each([
    ['the replacement is still allowed', 'replace: allowed'],
    ['the whole edit is reverted', 'replace: never'],
    ['the old server gets protection', 'protect: true'],
    ['the entry names the old server', 'id: 2001'],
  ])('%s: the old server takes its key back, and nothing is bought', async (_, more) => {
    const played = await both();

    const plan = await played.plan(file(1, more));
    const report = await played.apply(file(1, more));

    expect(plan.operations.map(({ id }) => id)).toEqual([
      'delete:servers.web~2002',
      'delete:servers.web~2002.public_ipv4',
    ]);
    expect(plan.warnings.find(({ code }) => code === 'replacement_reverted')).toEqual({
      code: 'replacement_reverted',
      key: web,
      message:
        'server 2001, which was retiring, has the values of the spec. It takes servers.web back, so nothing is created',
    });
    expect(report.outcome).toBe('converged');
    expect([servers(played), addresses(played)]).toEqual([[[2001, 1]], [[5001, 2001]]]);
    expect(purchases(played)).toHaveLength(2);
    expectFixedPoint(await played.plan(file(1, more)));
  });

  test('a plan records nothing, and the edit can be made again', async () => {
    const played = await both();
    await played.plan(file(1));

    const plan = await played.plan(file(2));
    await played.apply(file(1, 'moved: {from: servers.web}, name: web', 'shop'));

    expect(plan.operations.map(({ id }) => id)).toEqual([
      'delete:servers.web~2001',
      'delete:servers.web~2001.public_ipv4',
    ]);
    expect(servers(played)).toEqual([[2001, 1]]);
    expect((await played.store.bindings()).map(({ key }) => key)).toEqual([
      'servers.shop',
      'servers.shop.firewall',
      'servers.shop.public_ipv4',
    ]);
  });

  test('`adopt` gives the key back, unless the spec asks for the new server', async () => {
    const played = await both();
    const adopt = (cores: number) => played.adopt(file(cores), web, '2001').then(({ text }) => text);

    await expect(adopt(2)).rejects.toMatchObject({
      message:
        'servers.web is bound to 2002, which has the values of the spec. Server 2001 retires, and has other values.',
      remedies: [{ set: { cores: 1 } }],
    });
    expect(await adopt(3)).toBe(
      'servers.web is bound to 2001 again. Server 2002 retires: the next apply deletes it.',
    );

    expect((await played.apply(file(1))).outcome).toBe('converged');
    expect(servers(played)).toEqual([[2001, 1]]);
  });
});
