import type { EntryIssue } from '../../core/kind-entry.ts';
import { didYouMean } from '../../core/suggest.ts';
import type { FirewallEntry } from './entry.ts';
import { shadowedRules } from './traffic.ts';

/**
 * Common values of firewalls. The API's document shows only some of them and no complete list, so
 * another value is no error; a value that is similar to one of these is most likely a typing error. @source API §2
 */
const usualWords = {
  policy_in: ['drop', 'accept'],
  direction: ['in', 'out'],
  action: ['accept', 'drop'],
  protocol: ['tcp', 'udp', 'icmp', 'icmpv6'],
} as const;
const ruleFields = ['direction', 'action', 'protocol'] as const;

/** The names of these values in other firewalls. */
const foreignWords: Readonly<Record<string, string>> = {
  deny: 'drop',
  block: 'drop',
  allow: 'accept',
  permit: 'accept',
  pass: 'accept',
  ingress: 'in',
  inbound: 'in',
  egress: 'out',
  outbound: 'out',
};

/**
 * Values that are sent unchanged, and that the API will probably refuse while the server is exposed already; and rules
 * without an effect.
 */
export function firewallCautions({ policy_in: policy, rules = [] }: FirewallEntry): EntryIssue[] {
  return [
    ...wordCautions('policy_in', policy, ['policy_in']),
    ...rules.flatMap((rule, at) => {
      const path = ['rules', at];
      if (Object.keys(rule).length === 0) return [{ path, message: 'the rule is empty' }];
      return [
        ...ruleFields.flatMap((field) => wordCautions(field, rule[field], [...path, field])),
        ...rangeCautions(rule.destination_port, [...path, 'destination_port']),
      ];
    }),
    ...shadowedRules(rules).map(({ rule, by }) => ({
      path: ['rules', rule - 1],
      message: `rule ${rule} has no effect: the earlier rule ${by} matches the same traffic`,
    })),
  ];
}

/** @source API §2 Firewall: a single port or a comma-separated list */
function rangeCautions(ports: unknown, path: EntryIssue['path']): EntryIssue[] {
  const range = typeof ports === 'string' ? /\d+\s*[-:]\s*\d+/.exec(ports)?.[0] : undefined;
  if (range === undefined) return [];
  const message = `"${range}" is a range of ports, and the API documents only single ports and lists of them. The API may refuse the firewall after its server is public`;
  return [{ path, message }];
}

function wordCautions(
  field: keyof typeof usualWords,
  value: unknown,
  path: EntryIssue['path'],
): EntryIssue[] {
  const usual: readonly string[] = usualWords[field];
  if (typeof value !== 'string' || usual.includes(value.trim())) return [];
  const meant = foreignWords[value.trim().toLowerCase()] ?? '';
  const hint = usual.includes(meant) ? `; did you mean \`${meant}\`?` : didYouMean(value.trim(), usual);
  return hint === '' ? [] : [{ path, message: `\`${value}\` is an unusual \`${field}\`${hint}` }];
}
