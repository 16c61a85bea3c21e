import { describe, expect, test } from 'vitest';
import { codesOf, idsOf, sliders } from '../reconcilers/support.ts';
import { applied } from '../support/rig.ts';

const head = 'settings: {prune: true}\n';
const size = sliders;

describe('src/plan/moved-from.ts: a new entry that may be a renamed one', () => {
  test.each([
    ['networks', 'cidr: 10.20.0.0/24'],
    ['isos', 'url: "https://mirror.example.com/a.iso"'],
  ])('of %s, has the name of a resource, which is not deleted before the operator decides', async (section, body) => {
    const { apply, plan, emulator } = await applied(`${head}${section}: {a: {${body}}}\n`);
    const made = emulator.world.executions.length;
    const renamed = (more = '') => `${head}${section}: {b: {${body}, name: a${more}}}\n`;

    const asked = { [`${section}.a`]: 'dependency_blocked', [`${section}.b`]: 'name_exists' };
    const shown = await plan(renamed());
    expect([idsOf(shown), codesOf(shown)]).toEqual([[], asked]);
    expect(codesOf(await apply(renamed()))).toEqual(asked);
    const report = await apply(renamed(`, moved: {from: ${section}.a}`));

    expect([report.outcome, emulator.world.executions.length]).toEqual(['converged', made]);
  });

  test.each([
    '10.20.0.0/24',
    '10.020.0.0/24',
  ])('has the subnet of a network that stays, written as %s, and is not created next to that network', async (cidr) => {
    const file = (name: string, more = '') =>
      `${head}networks: {${name}: {cidr: ${name === 'n' ? '10.20.0.0/24' : cidr}${more}}}\nservers: {web: {${size}, network_interfaces: [${name}]}}\n`;
    const { apply, project } = await applied(file('n'));
    const cards = () => project.servers.map((each) => each.interfaces.length);
    const before = [project.networks.length, cards()];

    expect(codesOf(await apply(file('z')))).toEqual({
      'networks.n': 'network_in_use',
      'networks.z': 'dependency_blocked',
      'servers.web.network_interfaces.z': 'dependency_blocked',
    });
    const report = await apply(file('z', ', moved: {from: networks.n}'));

    expect([report.outcome, project.networks.length, cards()]).toEqual(['converged', ...before]);
  });
});
