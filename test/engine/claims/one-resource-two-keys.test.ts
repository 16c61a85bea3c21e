import { describe, expect, test } from 'vitest';
import { applied, type Rig, sliders } from '../../support/rig.ts';

const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';
const web = `servers:\n  web: {${sliders}, public_ipv4: {new: true}}\n`;

const bound = async ({ store }: Rig) =>
  Object.fromEntries((await store.bindings()).map(({ key, id }) => [key as string, id]));

describe('src/engine/claims/claims.ts: one resource under two names', () => {
  describe.each([
    ['protected', '{id: 5001, protect: true}', { 'ips.keep': '5001' }],
    ['not managed', '{id: 5001, managed: false}', {}],
  ])('an address that came with a server and an entry of `ips` names, %s, stays when the server', (_how, entry, kept) => {
    const renewable = web.replace('public', 'replace: allowed, public');
    const larger = renewable.replace('cores: 1', 'cores: 2');
    const addresses = (played: Rig) => played.project.ips.map(({ id }) => id as number);

    test.each([
      ['is replaced later', renewable, larger, false],
      ['is replaced at once', larger, larger, false],
      ['is lost', renewable, renewable, true],
    ])('%s', async (_what, first, then, lost) => {
      const played = await applied(head + renewable);
      const ips = `ips:\n  keep: ${entry}\n`;
      await played.apply(head + first + ips);
      if (lost) played.emulator.mutate({ do: 'delete_server', id: 2001 });
      played.restart();

      expect((await played.apply(head + then + ips)).outcome).toBe('converged');
      expect(addresses(played)).toContain(5001);
      expect(await bound(played)).toMatchObject({ 'servers.web': '2002', ...kept });
      expect((await played.plan(head + then + ips)).blocked).toEqual([]);
    });
  });
});
