import { describe, expect, test } from 'vitest';
import { locksOut, shadowedRules, trafficOf } from '../../src/reconcilers/firewall/traffic.ts';
import { rig } from '../support/rig.ts';
import { sliders, warningsOf } from './support.ts';

const rule = (destination_port: string, more: object = {}) => ({
  direction: 'in',
  action: 'accept',
  enabled: true,
  protocol: 'tcp',
  destination_port,
  ...more,
});
const filter = (...rules: object[]) => ({
  enabled: true,
  policy_in: 'drop',
  rules: rules as Record<string, unknown>[],
});
const off = { enabled: false, policy_in: 'drop', rules: [] };

describe('src/reconcilers/firewall/traffic.ts', () => {
  test('a port more, a port less', () => {
    expect(trafficOf(filter(rule('22,443')), filter(rule('22'), rule('80')))).toEqual({
      opened: ['tcp 80'],
      closed: ['tcp 443'],
      open: ['tcp 22', 'tcp 80'],
    });
  });

  test('what is let in stands in the order of the spec', () => {
    const after = filter(rule('22,80,443'));
    const open = ['tcp 22', 'tcp 80', 'tcp 443'];
    expect(trafficOf(filter(rule('22,443')), after).open).toEqual(open);
    expect(trafficOf(off, after).open).toEqual(open);
  });

  test('switched on it closes all but what its rules let in', () => {
    expect(trafficOf(off, filter(rule('22')))).toEqual({
      opened: [],
      closed: ['everything else'],
      open: ['tcp 22'],
    });
    expect(trafficOf(filter(rule('22')), off)).toMatchObject({ opened: ['everything else'] });
  });

  test('where no rule says anything, it is everything, and else than nothing', () => {
    expect(trafficOf(filter(), off)).toEqual({ opened: ['everything'], closed: [], open: ['everything'] });
    expect(trafficOf(off, filter()).closed).toEqual(['everything']);
  });

  test('the first rule that matches decides; a disabled one does not', () => {
    const before = filter(
      rule('1000-2000', { action: 'drop' }),
      rule('1500'),
      rule('22', { enabled: false }),
    );
    expect(trafficOf(before, before).open).toEqual([]);
    const swapped = filter(rule('1500'), rule('1000-2000', { action: 'drop' }));
    expect(trafficOf(before, swapped)).toMatchObject({ opened: ['tcp 1500'], closed: [] });
  });

  test('where it comes from is told', () => {
    const office = rule('22', { source: '198.51.100.0/24' });
    expect(trafficOf(filter(rule('22')), filter(office))).toEqual({
      opened: [],
      closed: ['tcp 22'],
      open: ['tcp 22 (source 198.51.100.0/24)'],
    });
    expect(locksOut(filter(rule('22')), filter(office))).toBe(false);
  });

  test('rules that never act are found, whatever they would do', () => {
    const rules = [
      rule('20-30'),
      rule('22', { action: 'drop' }),
      rule('22', { protocol: 'udp' }),
      { action: 'accept', enabled: false },
    ];
    expect(shadowedRules(rules)).toEqual([{ rule: 2, by: 1 }]);
    expect(shadowedRules([{ direction: 'in', action: 'drop' }, rule('22')])).toEqual([{ rule: 2, by: 1 }]);
  });

  test('closing ssh on a server that is there is warned of; on one that is made it is not', async () => {
    const world = rig();
    const spec = (rules: string) =>
      `servers: {one: {${sliders}, public_ipv4: {new: true}, firewall: {enabled: true, policy_in: drop, rules: ${rules}}}}\n`;
    expect(warningsOf(await world.plan(spec('[]')))).toEqual([]);
    await world.apply(
      spec('[{direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "22"}]'),
    );
    const plan = await world.plan(spec('[]'));
    expect(warningsOf(plan)).toEqual(['firewall_lockout']);
    expect(plan.operations[0]?.traffic).toEqual({ opened: [], closed: ['tcp 22'], open: [] });
  });
});
