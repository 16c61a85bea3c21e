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
const ssh = rule('22');
const off = { enabled: false, policy_in: 'drop', rules: [] };

describe('src/reconcilers/firewall/traffic.ts', () => {
  test('an added port is opened, and a removed port is closed', () => {
    expect(trafficOf(filter(rule('22,443')), filter(rule('22'), rule('80')))).toEqual({
      opened: ['tcp 80'],
      closed: ['tcp 443'],
      open: ['tcp 22', 'tcp 80'],
    });
  });

  test('open ports keep the order of the spec', () => {
    const after = filter(rule('22,80,443'));
    const open = ['tcp 22', 'tcp 80', 'tcp 443'];
    expect(trafficOf(filter(rule('22,443')), after).open).toEqual(open);
    expect(trafficOf(off, after).open).toEqual(open);
  });

  test('enabling a firewall closes everything that its rules do not accept', () => {
    expect(trafficOf(off, filter(rule('22')))).toEqual({
      opened: [],
      closed: ['everything else'],
      open: ['tcp 22'],
    });
    expect(trafficOf(filter(rule('22')), off)).toMatchObject({ opened: ['everything else'] });
  });

  test('without rules, a disabled firewall opens everything, and an enabled one closes everything', () => {
    expect(trafficOf(filter(), off)).toEqual({ opened: ['everything'], closed: [], open: ['everything'] });
    expect(trafficOf(off, filter()).closed).toEqual(['everything']);
  });

  test('the first matching rule decides, and a disabled rule never matches', () => {
    const before = filter(
      rule('1000-2000', { action: 'drop' }),
      rule('1500'),
      rule('22', { enabled: false }),
    );
    expect(trafficOf(before, before).open).toEqual([]);
    const swapped = filter(rule('1500'), rule('1000-2000', { action: 'drop' }));
    expect(trafficOf(before, swapped)).toMatchObject({ opened: ['tcp 1500'], closed: [] });
  });

  test('an open port shows its source', () => {
    const office = rule('22', { source: '198.51.100.0/24' });
    expect(trafficOf(filter(rule('22')), filter(office))).toEqual({
      opened: [],
      closed: ['tcp 22'],
      open: ['tcp 22 (source 198.51.100.0/24)'],
    });
    expect(locksOut(filter(rule('22')), filter(office))).toBe(false);
  });

  test.each([
    ['an unknown action', { ...ssh, action: 'ACCEPT' }, 'unknown: tcp 22'],
    ['an unknown direction', { ...ssh, direction: 'IN' }, 'unknown: tcp 22'],
    ['an unknown protocol', { ...ssh, protocol: '6' }, 'unknown: protocol "6" 22'],
    ['an unknown port', { ...ssh, destination_port: 'ssh' }, 'unknown: tcp port "ssh"'],
    ['a missing action', { ...ssh, action: undefined }, 'unknown: tcp 22'],
    ['an unknown `enabled`', { ...ssh, enabled: 'yes' }, 'unknown: tcp 22'],
  ])('%s makes the traffic of the rule unknown', (_what, odd, text) => {
    const { open, opened } = trafficOf(filter(), filter(odd));
    expect([open, opened]).toEqual([[text], [text]]);
  });

  test('an unknown policy makes everything else unknown, and closes nothing', () => {
    const after = { ...filter(ssh), policy_in: 'deny' };
    expect(trafficOf(off, after)).toEqual({
      opened: [],
      closed: [],
      open: ['tcp 22', 'unknown: everything else'],
    });
  });

  test('a drop rule that may not act closes nothing', () => {
    const uncertain = { ...ssh, action: 'drop', direction: 'inbound' };
    expect(trafficOf(off, filter(uncertain, ssh)).open).toEqual(['unknown: tcp 22']);
    const certain = { ...ssh, action: 'drop' };
    expect(trafficOf(off, filter(certain, ssh)).open).toEqual([]);
  });

  test('text in a rule cannot end the list of its fields', () => {
    const odd = { ...ssh, 'x) everything (y': 'a, b)' };
    expect(trafficOf(off, filter(odd)).open).toEqual(['tcp 22 ("x) everything (y" "a, b)")']);
  });

  test('more than 1000 ports and rules are unknown', () => {
    const many = Array.from({ length: 1001 }, (_, at) => ({ ...ssh, destination_port: String(at + 1) }));
    const text = 'unknown: more than 1000 ports and rules';
    expect(trafficOf(off, filter(...many))).toEqual({ opened: [text], closed: [], open: [text] });
  });

  test('rules that never act are found, with any action', () => {
    const rules = [
      rule('20-30'),
      rule('22', { action: 'drop' }),
      rule('22', { protocol: 'udp' }),
      { action: 'accept', enabled: false },
    ];
    expect(shadowedRules(rules)).toEqual([{ rule: 2, by: 1 }]);
    expect(shadowedRules([{ direction: 'in', action: 'drop' }, rule('22')])).toEqual([{ rule: 2, by: 1 }]);
  });

  test('a plan warns before it closes ssh on an existing server, and not on a new one', async () => {
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
