import { describe, expect, test } from 'vitest';
import { type Rig, rig } from '../../support/rig.ts';

const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';
const web = `servers:\n  web: {${size}, public_ipv4: {new: true}}\n`;

const project = ({ emulator }: Rig) => emulator.world.projects[0] ?? expect.fail('no project');
const deletions = (played: Rig) => played.writes().filter(({ method }) => method === 'DELETE');
const bound = async ({ store }: Rig) =>
  Object.fromEntries((await store.bindings()).map(({ key, id }) => [key as string, id]));

describe('src/engine/claims/owner.ts: one resource under two names', () => {
  test.each([
    [
      'a protected server',
      head + web,
      `${head}servers:\n  shop: {id: 2001, protect: true}\n`,
      'servers.shop',
      '2001',
    ],
    [
      'a server not managed',
      head + web,
      `${head}servers:\n  shop: {id: 2001, managed: false}\n`,
      undefined,
      '2001',
    ],
    [
      'a network not managed',
      `${head}networks:\n  a: {cidr: 10.20.0.0/24}\n`,
      `${head}networks:\n  b: {managed: false, name: a}\n`,
      undefined,
      '32',
    ],
    [
      'a network',
      `${head}networks:\n  a: {cidr: 10.20.0.0/24}\n`,
      `${head}networks:\n  b: {id: 32, cidr: 10.20.0.0/24, name: a}\n`,
      'networks.b',
      '32',
    ],
    [
      'an address',
      `${head}ips:\n  a: {}\n`,
      `${head}ips:\n  b: {id: 5001, protect: true}\n`,
      'ips.b',
      '5001',
    ],
  ])('%s that takes another name by its id is not deleted under the old one', async (_what, before, after, key, id) => {
    const played = rig();
    await played.apply(before);

    const plan = await played.plan(after);
    await played.apply(after);
    const report = await played.apply(after);

    expect(plan.operations.filter(({ verb }) => verb === 'delete')).toEqual([]);
    expect(deletions(played)).toEqual([]);
    expect([report.outcome, report.blocked]).toEqual(['converged', []]);
    expect(await bound(played)).toEqual(key === undefined ? {} : { [key]: id });
  });

  describe.each([
    ['protected', '{id: 5001, protect: true}', { 'ips.keep': '5001' }],
    ['not managed', '{id: 5001, managed: false}', {}],
  ])('an address that came with a server and an entry of `ips` names, %s, stays when the server', (_how, entry, kept) => {
    const renewable = web.replace('public', 'replace: allowed, public');
    const larger = renewable.replace('cores: 1', 'cores: 2');
    const addresses = (played: Rig) => project(played).ips.map(({ id }) => id as number);

    test.each([
      ['is replaced later', renewable, larger, false],
      ['is replaced at once', larger, larger, false],
      ['is lost', renewable, renewable, true],
    ])('%s', async (_what, first, then, lost) => {
      const played = rig();
      await played.apply(head + renewable);
      const ips = `ips:\n  keep: ${entry}\n`;
      await played.apply(head + first + ips);
      if (lost) played.emulator.mutate({ do: 'delete_server', id: 2001 });
      played.restart();

      const report = await played.apply(head + then + ips);

      expect(report.outcome).toBe('converged');
      expect(addresses(played)).toContain(5001);
      expect(await bound(played)).toMatchObject({ 'servers.web': '2002', ...kept });
      expect((await played.plan(head + then + ips)).blocked).toEqual([]);
    });
  });
});
