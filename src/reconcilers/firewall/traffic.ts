import type { Traffic } from '../../core/plan.ts';
import type { FirewallRule } from '../../core/resources.ts';
import { type Action, type CompiledRule, compile, type Flow, mostFlows, portRange } from './rules.ts';

/** The parts of a firewall that decide about incoming traffic; a disabled firewall accepts everything. */
export interface Filter {
  readonly enabled: boolean;
  readonly policy_in: string;
  readonly rules: readonly FirewallRule[];
}

/** `unknown`: a value decides that the API's document does not show, so the traffic may pass. */
type FlowVerdict = 'closed' | 'unknown' | 'open';
const ranks: Readonly<Record<FlowVerdict, number>> = { closed: 0, unknown: 1, open: 2 };

/** A filter whose rules are read once, because each flow is compared with each of them. */
interface CompiledFilter {
  readonly enabled: boolean;
  readonly policy: Action;
  readonly rules: readonly CompiledRule[];
}

const everything: Flow = {
  ...{ protocol: undefined, port: undefined, first: 0, last: Number.POSITIVE_INFINITY },
  ...{ isUnderstood: true, from: new Map(), text: 'everything' },
};

/**
 * The traffic that a change opens and closes, by the first rule that matches. Traffic counts as closed only if
 * documented values close it. @source API §2
 */
export function trafficOf(before: Filter, after: Filter): Traffic {
  const [was, is] = [compiled(before), compiled(after)];
  const all = [...is.rules, ...was.rules].flatMap(({ flows }) => flows);
  if (all.length > mostFlows) {
    const unknown = [`unknown: more than ${mostFlows} ports and rules`];
    return { opened: unknown, closed: [], open: unknown };
  }
  const flows = [...new Map(all.map((flow) => [flow.text, flow])).values()];
  const rest = { ...everything, text: flows.length === 0 ? 'everything' : 'everything else' };
  const verdicts = [...flows, rest].map((flow) => ({
    flow,
    before: verdictOf(was, flow),
    after: verdictOf(is, flow),
  }));
  const listed = (which: (change: (typeof verdicts)[number]) => boolean) =>
    verdicts.filter(which).map(({ flow, after }) => `${after === 'unknown' ? 'unknown: ' : ''}${flow.text}`);
  return {
    opened: listed(({ before, after }) => ranks[after] > ranks[before]),
    closed: listed(({ before, after }) => before !== 'closed' && after === 'closed'),
    open: listed(({ after }) => after !== 'closed'),
  };
}

/** Whether ssh was open before the change, and is no longer open to any source afterwards. */
export function locksOut(before: Filter, after: Filter): boolean {
  const ssh: Flow = { ...everything, protocol: 'tcp', port: '22', first: 22, last: 22, text: 'tcp 22' };
  const isOpen = (filter: CompiledFilter) =>
    [ssh, ...filter.rules.flatMap(({ flows }) => flows).filter((flow) => meets(flow, ssh))]
      .slice(0, mostFlows)
      .some((flow) => verdictOf(filter, flow) === 'open');
  return isOpen(compiled(before)) && !isOpen(compiled(after));
}

/** Rules that never act, because an earlier rule matches all their traffic; counted from 1. */
export function shadowedRules(
  rules: readonly FirewallRule[],
): readonly { readonly rule: number; readonly by: number }[] {
  const acting = compile(rules);
  if (acting.reduce((sum, { flows }) => sum + flows.length, 0) > mostFlows) return [];
  return acting.flatMap((rule, at) => {
    const by = acting.find(
      (other, earlier) => earlier < at && other.isCertain && rule.flows.every((flow) => covers(other, flow)),
    );
    return by === undefined ? [] : [{ rule: rule.number, by: by.number }];
  });
}

export function compiled({ enabled, policy_in, rules }: Filter): CompiledFilter {
  const policy = policy_in.trim();
  return {
    // A disabled firewall has no rules that act.
    ...{ enabled, rules: enabled ? compile(rules) : [] },
    policy: policy === 'accept' || policy === 'drop' ? policy : 'unknown',
  };
}

function verdictOf({ enabled, policy, rules }: CompiledFilter, flow: Flow): FlowVerdict {
  if (!enabled) return 'open';
  let [mayAccept, mayDrop] = [false, false];
  const decided = (action: 'accept' | 'drop'): FlowVerdict => {
    if (action === 'drop') return mayAccept ? 'unknown' : 'closed';
    return mayDrop || !flow.isUnderstood ? 'unknown' : 'open';
  };
  for (const rule of rules) {
    if (!covers(rule, flow)) continue;
    const { action, isCertain } = rule;
    if (isCertain && action !== 'unknown') return decided(action);
    mayAccept ||= action !== 'drop';
    mayDrop ||= action !== 'accept';
  }
  return policy === 'unknown' ? 'unknown' : decided(policy);
}

/** Whether the rule matches all of the flow. */
function covers({ flows }: CompiledRule, flow: Flow): boolean {
  for (const each of flows) {
    const isProtocol = each.protocol === undefined || each.protocol === flow.protocol;
    if (isProtocol && isWithin(flow, each) && isFrom(flow, each)) return true;
  }
  return false;
}

function isWithin(inner: Flow, outer: Flow): boolean {
  if (outer.port === undefined || inner.port === outer.port) return true;
  return inner.port !== undefined && inner.first >= outer.first && inner.last <= outer.last;
}

function isFrom(inner: Flow, outer: Flow): boolean {
  for (const [field, value] of outer.from) if (inner.from.get(field) !== value) return false;
  return true;
}

/** Whether the flow is part of the other one, or differs from it only in the source of the traffic. */
function meets(flow: Flow, { protocol, first, last }: Flow): boolean {
  if (flow.protocol !== undefined && flow.protocol !== protocol) return false;
  return (
    flow.port === undefined ||
    (portRange(flow.port) !== undefined && flow.first <= first && last <= flow.last)
  );
}
