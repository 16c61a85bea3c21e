import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { warnedBy } from '../../support/resolve.ts';
import { applied, sliders } from '../../support/rig.ts';

const parts = {
  'servers.web.backup': 'backup: {max_age: 24h, keep: 1}',
  'servers.web.firewall': 'firewall: {enabled: true, policy_in: drop, rules: []}',
  'servers.web.network_interfaces.a': 'network_interfaces: [a]',
};
const file = (...more: readonly string[]) =>
  `settings: {prune: true}\nnetworks: {a: {cidr: 10.1.0.0/24}}\nservers:\n  web: {${[sliders, 'public_ipv4: {new: true}', ...more].join(', ')}}\n`;

describe('src/engine/claims: a part that has left the entry of its server', () => {
  test('stays, and is reported until the command in the message releases it', async () => {
    const played = await applied(file(...Object.values(parts)));
    const bare = file();

    const { warnings, operations, blocked } = await played.plan(bare);
    const told = warnings.filter(({ code }) => code === 'no_longer_declared');
    expect([operations, blocked]).toEqual([[], []]);
    expect(told.map(({ key }) => key)).toEqual(Object.keys(parts));
    for (const each of told) {
      const { key } = each;
      expect(warnedBy(each)).toContain(`vdcsync forget ${key}`);
      await played.forget(bare, `${key}`);
    }

    expect((await played.plan(bare)).warnings).toEqual([]);
  });

  test.each([
    ['backup_policy', '{enabled: false, keep: 3}'],
    ['firewall', '{enabled: false, rules: []}'],
  ])('is reported if it is a %s that was only compared, and never written', async (part, entry) => {
    const bare = file();
    const key = `servers.web.${part}` as ResourceKey;
    const played = await applied(bare, file(`${part}: ${entry}`));

    expect((await played.plan(bare)).warnings).toMatchObject([{ code: 'no_longer_declared', key }]);
    await played.forget(bare, `${key}`);

    expect((await played.plan(bare)).warnings).toEqual([]);
  });

  test('is reported once with its older backups', async () => {
    const all = file(...Object.values(parts));
    const played = await applied(all);
    await played.clock.advance(25 * 3_600_000);
    await played.apply(all);

    const { warnings } = await played.plan(file());

    expect(warnings.filter(({ key }) => key?.startsWith('servers.web.backup'))).toHaveLength(1);
  });

  test('is not reported if its server is deleted or replaced', async () => {
    const played = await applied(file(...Object.values(parts)));

    const gone = await played.plan('settings: {prune: true, max_deletions: 9}\n');
    const anew = await played.plan(file('replace: allowed').replace('cores: 1', 'cores: 2'));

    const codes = [...gone.warnings, ...anew.warnings].map(({ code }) => code);
    expect(anew.summary.replace).toBe(1);
    expect(codes).not.toContain('no_longer_declared');
  });
});
