import type { EntryIssue } from '../../core/kind.ts';
import { didYouMean } from '../../core/suggest.ts';
import type { FirewallEntry } from './entry.ts';

/**
 * Words that stand in firewalls. The API's document shows only some of them and no whole list, so that
 * another word is no error; one that is nearly one of these is most likely a slip. @source API §2
 */
const usualWords = {
  policy_in: ['drop', 'accept'],
  direction: ['in', 'out'],
  action: ['accept', 'drop'],
  protocol: ['tcp', 'udp', 'icmp', 'icmpv6'],
} as const;
const ruleFields = ['direction', 'action', 'protocol'] as const;

/** What other firewalls call them. */
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

/** What is sent as it stands, and will probably be refused, when the server is there and open already. */
export function firewallDoubts({ policy_in: policy, rules = [] }: FirewallEntry): EntryIssue[] {
  return [
    ...wordDoubts('policy_in', policy, ['policy_in']),
    ...rules.flatMap((rule, at) => {
      const path = ['rules', at];
      if (Object.keys(rule).length === 0) return [{ path, message: 'the rule is empty' }];
      return ruleFields.flatMap((field) => wordDoubts(field, rule[field], [...path, field]));
    }),
  ];
}

function wordDoubts(field: keyof typeof usualWords, value: unknown, path: EntryIssue['path']): EntryIssue[] {
  const usual: readonly string[] = usualWords[field];
  if (typeof value !== 'string' || usual.includes(value.trim())) return [];
  const meant = foreignWords[value.trim().toLowerCase()] ?? '';
  const hint = usual.includes(meant) ? `; did you mean \`${meant}\`?` : didYouMean(value.trim(), usual);
  return hint === '' ? [] : [{ path, message: `\`${value}\` is an unusual \`${field}\`${hint}` }];
}
