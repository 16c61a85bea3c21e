import { describe, expect, test } from 'vitest';
import { resolveText } from '../../src/core/remedy.ts';
import { codesOf, idsOf, projectOf, sliders } from '../reconcilers/support.ts';
import { resolveOf, resolving } from '../support/resolve.ts';
import { applied, load, rig } from '../support/rig.ts';
import { catalogue, planOf, worldOf } from './support.ts';

const web = `servers: {web: {${sliders}, public_ipv4: {new: true}, firewall: {enabled: true}}}\n`;

/** A rig in which the creation of a server failed and left the server. */
async function tainted() {
  const world = rig({ emulator: { readings: { firewallWhileCreating: 409 } } });
  world.fail('create_server', { do: 'task', outcome: 'fail', leaves: 'everything' });
  await world.apply(web);
  return world;
}

describe('src/plan/objections.ts: blocked resources', () => {
  test('a server of a failed task is tainted: it keeps its address, and gets no parts', async () => {
    const { plan, store } = await tainted();
    expect((await store.bindings()).map(({ key, identity }) => [key, identity])).toEqual([
      ['servers.web', { ipv4: '203.0.113.10' }],
      ['servers.web.public_ipv4', { address: '203.0.113.10' }],
    ]);

    const planned = await plan(web);

    expect(idsOf(planned)).toEqual([]);
    expect(codesOf(planned)).toEqual({
      'servers.web': 'tainted',
      'servers.web.firewall': 'dependency_blocked',
    });
    expect(resolveOf(planned.blocked[0])).toBe(
      'vdcsync adopt servers.web 2001 (if server 2001 works) | delete server 2001 in the client area',
    );
  });

  test('the command in the message binds a key again whose resource is now another one', async () => {
    const text = 'networks: {a: {cidr: 10.1.0.0/24}}\n';
    const { apply, plan, adopt, emulator } = await applied(text);
    const [, live] = projectOf(emulator).networks;
    if (live !== undefined) live.cidr = '10.2.0.0/24';

    const planned = await plan(text);
    expect(planned.blocked).toMatchObject([
      {
        code: 'identity_changed',
        remedies: resolving(
          expect.stringContaining(
            `vdcsync adopt networks.a ${live?.id} (if this is still the same resource)`,
          ),
        ),
      },
    ]);
    await adopt(text, 'networks.a', String(live?.id));

    expect((await plan(text)).summary).toMatchObject({ replace: 1, blocked: 0 });
    expect((await apply(text)).outcome).toBe('converged');
  });

  test('an ambiguous image name is reported with the ids', () => {
    const desired = load(`servers: {web: {${sliders}}}\n`);
    const twice = [1, 2].map((id) => ({ id: `os-${id}`, name: 'ubuntu-24.04', type: 'os' }));
    const images = new Map([[3, twice]]);

    const plan = planOf(worldOf(desired, { catalogue: { ...catalogue, images } }));

    expect(plan.blocked).toMatchObject([
      {
        code: 'image_ambiguous',
        remedies: resolving('write `image: os-1` in servers.web | write `image: os-2` in servers.web'),
      },
    ]);
    const chosen = load(`servers: {web: {${sliders.replace('ubuntu-24.04', 'os-2')}}}\n`);
    expect(idsOf(planOf(worldOf(chosen, { catalogue: { ...catalogue, images } })))).toEqual([
      'create:servers.web',
    ]);
  });

  test('every blocked entry names a remedy, and its key has no operation', async () => {
    const { apply, plan, emulator } = rig();
    await apply(`networks: {a: {cidr: 10.1.0.0/24}, b: {cidr: 10.2.0.0/24}}\nips: {x: {}}\n${web}`);
    emulator.mutate({ do: 'add_network', name: 'c', cidr: '10.3.0.0/24' });
    emulator.mutate({ do: 'add_ip' });
    const texts = [
      '',
      'settings: {prune: true, max_deletions: 0}\n',
      `networks: {c: {cidr: 10.3.0.0/24}, d: {managed: false}}\nips: {y: {}}\n${web.replace('cores: 1', 'cores: 2')}`,
      `settings: {suspend: {reason: x}}\nips: {x: {server_type_id: 3}}\nservers: {new: {${sliders}, public_ipv4: {ip: x}}}\n`,
      `ips: {x: {}}\nservers: {new: {${sliders}, public_ipv4: {ip: x}}, other: {id: 9, managed: false}}\n`,
    ];
    for (const text of texts) {
      const { blocked, operations } = await plan(text);
      expect(blocked.length).toBeGreaterThan(0);
      for (const { key, code, reason, remedies } of blocked) {
        expect(code).toMatch(/^[a-z_]+$/);
        expect(Math.min(reason.length, resolveText(remedies).length), code).toBeGreaterThan(10);
        expect(operations.filter((each) => each.key === key)).toEqual([]);
      }
    }
  });
});
