import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import { applied, sliders } from '../support/rig.ts';

const both = `settings: {prune: true}\nservers:
  a: {${sliders}, public_ipv4: {new: true}, keep_ip: true}
  b: {${sliders}}\n`;

describe('src/plan/order.ts: a selection of a plan', () => {
  test('shows nothing of the rest, except that there is a rest', async () => {
    const { plan } = await applied(both);
    const without = `settings: {prune: true}\nservers: {b: {${sliders}}}\n`;
    const part = (targets: string[]) =>
      plan(without, { selection: { targets: targets as ResourceKey[], excludes: [] } });

    const [other, whole] = [await part(['servers.b']), await part([])];

    expect(whole.cost.left_billed.join()).toContain('stays billed: keep_ip');
    expect(other.cost.left_billed).toEqual([]);
    expect(other.warnings.map(({ code }) => code)).toEqual(['left_out']);
  });

  test('counts and warns about no resource outside it', async () => {
    const open = `public_ipv4: {new: true}, firewall: {enabled: true, policy_in: accept, rules: []}`;
    const file = (firewall: string) => `servers:\n  a: {${sliders}, ${firewall}}\n  b: {${sliders}}\n`;
    const { plan } = await applied(`servers:\n  a: {${sliders}, ${open}}\n`);
    const closed = file(open.replace('accept', 'drop'));
    const part = (targets: string[]) =>
      plan(closed, { selection: { targets: targets as ResourceKey[], excludes: [] } });

    const [other, whole] = [await part(['servers.b']), await part([])];

    expect(other.warnings.map(({ code }) => code)).toEqual(['left_out']);
    expect(other.summary).toMatchObject({ create: 1, update: 0, unchanged: 1 });
    expect(whole.warnings.map(({ code }) => code)).toEqual(['firewall_lockout']);
  });

  test('releases no part of a server whose deletion is left out', async () => {
    const one = (rest: string) => `servers: {a: {${sliders}, keep_ip: true, replace: allowed, ${rest}}}\n`;
    const { plan, apply, store } = await applied(one('public_ipv4: {new: true}'));
    const other = `ips: {x: {}}\n${one('public_ipv4: {ip: x}')}`;
    const selection = { targets: [], excludes: ['ips.x' as ResourceKey] };

    const planned = await plan(other, { selection });
    await apply(other, { selection });

    expect(planned.operations).toEqual([]);
    expect(planned.cost.left_billed).toEqual([]);
    expect(planned.warnings.map(({ code }) => code)).not.toContain('released');
    expect((await store.bindings()).map(({ key }) => key)).toContain('servers.a.public_ipv4');
  });

  test.each([
    'allowed',
    '{order: delete_first}',
  ])('replacements wait for each other, and do not need each other: replace: %s', async (replace) => {
    const file = (cores: number) =>
      `servers:\n${['a', 'b', 'c'].map((name) => `  ${name}: {${sliders.replace('cores: 1', `cores: ${cores}`)}, replace: ${replace}}\n`).join('')}`;
    const { plan } = await applied(file(1));
    const part = async (targets: string[], excludes: string[]) => {
      const selection = { targets: targets as ResourceKey[], excludes: excludes as ResourceKey[] };
      const { operations } = await plan(file(2), { selection });
      expect(
        operations.flatMap(({ needs }) => needs).every((id) => operations.some((each) => each.id === id)),
      ).toBe(true);
      return [...new Set(operations.map(({ key }) => key.replace(/~.*/, '')))];
    };

    expect(await part(['servers.b'], [])).toEqual(['servers.b']);
    expect(await part([], ['servers.a'])).toEqual(['servers.b', 'servers.c']);
  });
});
