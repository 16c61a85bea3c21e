import type { EntryIssue } from '../../core/kind-entry.ts';
import type { FirewallRule } from '../../core/resources.ts';
import { misspelled } from '../../core/suggest.ts';
import { type FirewallEntry, shownRuleFields } from './entry.ts';

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
