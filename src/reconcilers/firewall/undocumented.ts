import equal from 'fast-deep-equal';
import type { Json } from '../../core/json.ts';
import type { Firewall, FirewallRule } from '../../core/resources.ts';
import { diffDeclared, type FirewallEntry, hasValue, sameRule, shownRuleFields } from './rules.ts';

/** The undocumented fields that rules came back with after a PUT, and that the PUT did not send, with their values. */
export type ReturnedFields = Readonly<Record<string, readonly Json[]>>;

/** The body of the last PUT. `ruleFields`: left out if no read has shown its rules. */
export type AppliedFirewall = FirewallEntry & { readonly ruleFields?: ReturnedFields };

/** The undocumented fields of live rules that the spec does not declare. @source API §9.3 @assumption A32 */
export interface UndocumentedFields {
  /** Fields that the API adds to rules by itself, such as a position, and fields without a value. They are not sent. */
  readonly added: ReadonlySet<string>;
  /** Those of `added` that an operator may have set outside vdcsync, with one of the values. */
  readonly unclear: ReadonlyMap<string, unknown>;
  /** The first field that was set outside vdcsync, with its value. */
  readonly foreign?: readonly [field: string, value: unknown];
}

/**
 * The API adds a field if rules of an earlier PUT came back with that field, or if every live rule carries the field.
 * If the rules came back without the field, and the firewall has been changed outside vdcsync since then, the field is
 * part of that change.
 */
export function undocumentedFields(
  entry: FirewallEntry,
  live: Firewall,
  applied: AppliedFirewall | undefined,
): UndocumentedFields {
  const known = new Set([...shownRuleFields, ...(entry.rules ?? []).flatMap(Object.keys)]);
  const fields = new Set(live.rules.flatMap(Object.keys).filter((field) => !known.has(field)));
  const returned = applied?.ruleFields;
  const isEdited = applied !== undefined && returned !== undefined && diffDeclared(applied, live).length > 0;
  const added = new Set<string>();
  const unclear = new Map<string, unknown>();
  let foreign: UndocumentedFields['foreign'];
  for (const field of fields) {
    // The spec declared the field before.
    const sent = (applied?.rules ?? []).filter((rule) => hasValue(rule[field]));
    const carriers = live.rules.filter((rule) => hasValue(rule[field]));
    const values = carriers
      .filter((rule) => !sent.some((each) => sameRule(each, rule)))
      .map((rule) => rule[field]);
    const before = returned !== undefined && Object.hasOwn(returned, field) ? returned[field] : undefined;
    if (values.length === 0) {
      if (carriers.length === 0) added.add(field);
    } else if (before !== undefined) {
      added.add(field);
      const other = values.find((value) => !isNumbering(value) && !before.some((each) => equal(each, value)));
      if (other !== undefined) unclear.set(field, other);
    } else if (values.length === live.rules.length && !isEdited) {
      added.add(field);
      unclear.set(field, values.find((value) => !isNumbering(value)) ?? values[0]);
    } else foreign ??= [field, values[0]];
  }
  return { added, unclear, ...(foreign && { foreign }) };
}

/** A position or a number of the rule filters no traffic. Other users' changes renumber the rules. */
function isNumbering(value: unknown): boolean {
  return typeof value === 'number';
}

/** The live firewall as a PUT can send it. */
export function sendable(live: Firewall, { added }: UndocumentedFields): Firewall {
  return withoutFields(live, added);
}

/** The live firewall as a plan shows it. A field that an operator may have set is shown, because it may filter traffic. */
export function shownFirewall(live: Firewall, { added, unclear }: UndocumentedFields): Firewall {
  const isHidden = (field: string) => !unclear.has(field) || isNumbering(unclear.get(field));
  return withoutFields(live, new Set([...added].filter(isHidden)));
}

function withoutFields(live: Firewall, fields: ReadonlySet<string>): Firewall {
  const strip = (rule: FirewallRule) =>
    Object.fromEntries(Object.entries(rule).filter(([field]) => !fields.has(field)));
  return fields.size === 0 ? live : { ...live, rules: live.rules.map(strip) };
}

/** @param live the firewall after a PUT with these rules took effect */
export function returnedFields({ rules = [] }: FirewallEntry, live: Firewall): ReturnedFields {
  const returned = new Map<string, Json[]>();
  for (const [at, rule] of live.rules.entries()) {
    for (const [field, value] of Object.entries(rule)) {
      if (shownRuleFields.includes(field) || Object.hasOwn(rules[at] ?? {}, field) || !hasValue(value))
        continue;
      const values = returned.get(field) ?? [];
      returned.set(field, values);
      if (!values.some((each) => equal(each, value))) values.push(value as Json);
    }
  }
  return Object.fromEntries(returned);
}
