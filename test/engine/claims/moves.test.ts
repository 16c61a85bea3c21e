import { describe, expect, test } from 'vitest';
import { resolving, warnedBy } from '../../support/resolve.ts';
import { applied, load, sliders } from '../../support/rig.ts';

const before = `settings: {prune: true, max_deletions: 9}
networks: {backend: {cidr: 10.20.0.0/24}}
ips: {web: {}}
servers:
  web-1: {${sliders}, public_ipv4: {ip: web}, network_interfaces: [backend], firewall: {enabled: true, policy_in: drop, rules: []}}
`;
const after = `settings: {prune: true, max_deletions: 9}
networks: {back: {cidr: 10.20.0.0/24, moved: {from: networks.backend}}}
ips: {www: {moved: {from: ips.web}}}
servers:
  web: {${sliders}, moved: {from: servers.web-1}, public_ipv4: {ip: www}, network_interfaces: [back], firewall: {enabled: true, policy_in: drop, rules: []}}
`;

describe('src/engine/claims/moves.ts', () => {
  test('an entry that was renamed without `moved` is reported, with the line to write', async () => {
    const world = await applied(before);
    const silent = after.replaceAll(/,? ?moved: \{from: [\w.-]+\}/g, '');

    const { warnings } = await world.plan(silent);

    const told = warnings.filter(({ code }) => code === 'perhaps_renamed');
    expect(told.map((each) => [each.key, /`(moved: .*)`/.exec(warnedBy(each))?.[1]])).toEqual([
      ['ips.www', 'moved: {from: ips.web}'],
      ['networks.back', 'moved: {from: networks.backend}'],
      ['servers.web', 'moved: {from: servers.web-1}'],
    ]);
    const another = before
      .replace('web-1: {', 'web-1: {cores: 2, ')
      .replace('cores: 1, ', '')
      .replace('web-1:', 'db:');
    expect((await world.plan(another)).warnings).toEqual([]);
  });

  test('a retiring server has the name of its entry', async () => {
    const file = (key: string, cores: number) =>
      `settings: {prune: true}\nservers: {${key}: {${sliders.replace('cores: 1', `cores: ${cores}`)}, replace: allowed}}\n`;
    const world = await applied(file('a', 1));
    const refusal = { do: 'answer', status: 403, code: 'insufficient_privileges' } as const;
    world.fail({ path: 'delete_server' }, refusal);
    await world.apply(file('a', 2));
    const { warnings } = await world.plan(file('b', 1));
    expect(warnings.filter(({ code }) => code === 'perhaps_renamed').map(warnedBy)).toEqual([
      expect.stringContaining('moved: {from: servers.a}'),
    ]);
    // The entry is still in the spec, so it was not renamed.
    const both = file('a', 2).replace('servers: {', `servers: {b: {${sliders}, replace: allowed}, `);
    expect((await world.plan(both)).warnings.map(({ code }) => code)).not.toContain('perhaps_renamed');
  });

  test('a renamed ISO is reported, and so is a renamed network with a server on it', async () => {
    const file = (net: string, iso: string) =>
      `settings: {prune: true}\nnetworks: {${net}: {cidr: 10.1.0.0/24}}\nisos: {${iso}: {url: "https://example.com/x.iso"}}\nservers: {x: {${sliders}, network_interfaces: [${net}]}}\n`;
    const world = await applied(file('n', 'r'));

    const { warnings } = await world.plan(file('m', 'q'));

    const told = warnings.filter(({ code }) => code === 'perhaps_renamed');
    expect(told.map(({ key }) => key)).toEqual(['isos.q', 'networks.m']);
  });

  test('an unknown key in `moved` neither buys nor deletes while it may mean another key', async () => {
    const world = await applied(before);
    const typo = after.replace('from: servers.web-1', 'from: servers.web1');

    const { operations, blocked } = await world.plan(typo);

    expect(operations.filter(({ kind }) => kind === 'server')).toEqual([]);
    expect(blocked).toMatchObject([
      {
        key: 'servers.web',
        verb: 'create',
        code: 'moved_from_unknown',
        reason: expect.stringContaining('did you mean servers.web-1?'),
        remedies: resolving(expect.stringContaining('write `moved: {from: servers.web-1}` in servers.web |')),
      },
      { key: 'servers.web-1', verb: 'delete', code: 'moved_from_unknown' },
      ...['firewall', 'network_interfaces.back'].map((part) => ({
        key: `servers.web.${part}`,
        code: 'dependency_blocked',
      })),
    ]);
    await world.apply(typo);
    expect(world.project.servers.map(({ name }) => name)).toEqual(['web-1']);
    expect((await world.apply(after)).outcome).toBe('converged');
    expect(world.project.servers.map(({ name }) => name)).toEqual(['web-1']);
  });

  test.each([
    ['servers: {a: {id: 1, moved: {from: ips.b}}}', 'cannot be an earlier key of servers.a'],
    ['servers: {a: {id: 1, moved: {from: servers.a}}}', 'cannot have moved from itself'],
    ['servers: {a: {id: 1, moved: {from: servers.b}}, b: {id: 2}}', 'servers.b is still in the spec'],
    [
      'servers: {a: {id: 1, moved: {from: servers.c}}, b: {id: 2, moved: {from: servers.c}}}',
      'cannot have become both',
    ],
  ])('%s is refused', (text, message) => {
    expect(() => load(`${text}\n`)).toThrow(message);
  });
});
