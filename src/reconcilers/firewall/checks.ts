import type { EntryIssue } from '../../core/kind-entry.ts';
import type { FirewallRule } from '../../core/resources.ts';
import { didYouMean, misspelled } from '../../core/suggest.ts';
import { type FirewallEntry, shownRuleFields } from './rules.ts';
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

const lastPort = 65_535;

/**
 * Values that the API refuses by its document. The firewall is sent when its server exists and is exposed, so vdcsync
 * must refuse these values before. Fields that the document does not show pass, unless they are typing errors of a
 * documented one.
 *
 * @source API §2 Firewall, §4 rule 3
 */
export function firewallErrors({ rules = [] }: FirewallEntry): EntryIssue[] {
  return rules.flatMap((rule, at) => [
    ...fieldErrors(rule, ['rules', at]),
    ...portErrors(rule.destination_port).map((message) => ({
      path: ['rules', at, 'destination_port'],
      message,
    })),
  ]);
}

function fieldErrors(rule: FirewallRule, path: EntryIssue['path']): EntryIssue[] {
  const unknown = Object.entries(rule).filter(([field]) => !shownRuleFields.includes(field));
  return unknown.flatMap(([field, value]) => {
    const message = fieldError(field, value);
    return message === undefined ? [] : [{ path: [...path, field], message, named: true as const }];
  });
}

function fieldError(field: string, value: unknown): string | undefined {
  const meant = misspelled(field, shownRuleFields);
  if (meant !== undefined) return `unknown field \`${field}\`; did you mean \`${meant}\`?`;
  // `{destination_port: "22",80}`: in braces a comma ends the value, and the rest is read as a separate field.
  if (value !== null) return undefined;
  const example = /^\d+$/.test(field)
    ? 'several ports are one text: `destination_port: "22,443"`'
    : undefined;
  return `field \`${field}\` has no value; ${example ?? 'a text with commas needs quotes around all of it'}`;
}

/** A port, or several separated by commas; a range passes, as the document does not exclude it. */
function portErrors(ports: unknown): string[] {
  if (typeof ports !== 'string') return [];
  return ports.split(',').flatMap((each) => {
    const text = each.trim();
    const [, first = '', last = first] = /^(\d+)(?:\s*[-:]\s*(\d+))?$/.exec(text) ?? [];
    const [from, to] = [Number(first), Number(last)];
    if (first === '' || from < 1 || Math.max(from, to) > lastPort)
      return [`"${text}" is not a port: write numbers from 1 to ${lastPort}, several separated by commas`];
    return from > to ? [`"${text}" is a range that ends before it begins`] : [];
  });
}
