import { describe, expect, test } from 'vitest';
import { trafficOf } from '../../src/reconcilers/firewall/traffic.ts';

const rule = { direction: 'in', action: 'accept', enabled: true, protocol: 'tcp', destination_port: '22' };
const filter = (rules: object[], policy_in = 'drop') => ({
  enabled: true,
  policy_in,
  rules: rules as Record<string, unknown>[],
});
const off = { enabled: false, policy_in: 'drop', rules: [] };

describe('src/reconcilers/firewall/traffic.ts', () => {
  test.each([
    ['an action', { ...rule, action: 'ACCEPT' }, 'unknown: tcp 22'],
    ['a direction', { ...rule, direction: 'IN' }, 'unknown: tcp 22'],
    ['a protocol', { ...rule, protocol: '6' }, 'unknown: protocol "6" 22'],
    ['a port', { ...rule, destination_port: 'ssh' }, 'unknown: tcp port "ssh"'],
    ['no action', { ...rule, action: undefined }, 'unknown: tcp 22'],
    ['whether the rule is enabled', { ...rule, enabled: 'yes' }, 'unknown: tcp 22'],
  ])('%s leaves the traffic of the rule unknown', (_what, odd, text) => {
    const { open, opened } = trafficOf(filter([]), filter([odd]));
    expect([open, opened]).toEqual([[text], [text]]);
  });

  test('an unknown policy leaves everything else unknown, and is never closed', () => {
    const after = filter([rule], 'deny');
    expect(trafficOf(off, after)).toEqual({
      opened: [],
      closed: [],
      open: ['tcp 22', 'unknown: everything else'],
    });
  });

  test('a drop that may not act closes nothing', () => {
    const uncertain = { ...rule, action: 'drop', direction: 'inbound' };
    expect(trafficOf(off, filter([uncertain, rule])).open).toEqual(['unknown: tcp 22']);
    const certain = { ...rule, action: 'drop' };
    expect(trafficOf(off, filter([certain, rule])).open).toEqual([]);
  });

  test('a text in a rule cannot end the list of its fields', () => {
    const odd = { ...rule, 'x) everything (y': 'a, b)' };
    expect(trafficOf(off, filter([odd])).open).toEqual(['tcp 22 ("x) everything (y" "a, b)")']);
  });

  test('more rules than can be compared are unknown', () => {
    const many = Array.from({ length: 1001 }, (_, at) => ({ ...rule, destination_port: String(at + 1) }));
    const text = 'unknown: more than 1000 ports and rules';
    expect(trafficOf(off, filter(many))).toEqual({ opened: [text], closed: [], open: [text] });
  });
});
