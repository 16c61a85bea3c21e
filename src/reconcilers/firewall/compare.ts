import equal from 'fast-deep-equal';
import type { Change } from '../../core/plan.ts';
import type { Firewall, FirewallRule } from '../../core/resources.ts';
import { type FirewallEntry, hasUndeclared } from './rules.ts';

/** The declared fields with another live value. Rules are compared in their order. */
export function diffDeclared(entry: FirewallEntry, live: Firewall): Change[] {
  const changes: Change[] = [];
  if (entry.enabled !== undefined && entry.enabled !== live.enabled) {
    changes.push({ path: 'enabled', from: live.enabled, to: entry.enabled });
  }
  if (entry.policy_in !== undefined && entry.policy_in !== live.policy_in) {
    changes.push({ path: 'policy_in', from: live.policy_in, to: entry.policy_in });
  }
  if (entry.rules === undefined) return changes;
  const [wanted, there] = [entry.rules, live.rules];
  const same = wanted.length === there.length && wanted.every((rule, at) => sameRule(rule, there[at] ?? {}));
  // An unchanged rule is shown with the notation of the spec, so that only real differences show.
  const from = there.map(
    (live) => wanted.find((rule) => sameRule(rule, live) && !hasUndeclared(rule, live)) ?? live,
  );
  return same ? changes : [...changes, { path: 'rules', from, to: wanted }];
}

/** Whether the live rule has every field of the declared one. */
export function sameRule(declared: FirewallRule, live: FirewallRule): boolean {
  return Object.entries(declared).every(([field, value]) => equal(normal(value), normal(live[field])));
}

/** Text is trimmed by the API; spaces in a list of ports mean nothing. @source API §4 rule 3 */
function normal(value: unknown): unknown {
  return typeof value === 'string' ? value.trim().replace(/\s*,\s*/g, ',') : value;
}
