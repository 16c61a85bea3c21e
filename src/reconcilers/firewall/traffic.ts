import equal from 'fast-deep-equal';
import type { Traffic } from '../../core/plan.ts';
import type { FirewallRule } from '../../core/resources.ts';
import { shownRuleFields } from './entry.ts';

/** The parts of a firewall that decide about incoming traffic; a disabled firewall accepts everything. */
export interface Filter {
  readonly enabled: boolean;
  readonly policy_in: string;
  readonly rules: readonly FirewallRule[];
}

/** Traffic that rules can distinguish. `port`: one element of a list; `undefined` is every port. */
interface Flow {
  readonly protocol: string | undefined;
  readonly port: string | undefined;
  /** Further fields of a rule, such as the source of the traffic. */
  readonly from: Readonly<Record<string, unknown>>;
}

const everything: Flow = { protocol: undefined, port: undefined, from: {} };

/** The traffic that a change opens and closes, by the first rule that matches. @source API §2 */
export function trafficOf(before: Filter, after: Filter): Traffic {
  const flows = [
    ...new Map(
      [...after.rules, ...before.rules].flatMap(flowsOf).map((flow) => [textOf(flow), flow]),
    ).values(),
  ];
  const opened = flows.filter((flow) => !accepts(before, flow) && accepts(after, flow));
  const closed = flows.filter((flow) => accepts(before, flow) && !accepts(after, flow));
  const [was, is] = [accepts(before, everything), accepts(after, everything)];
  const rest = flows.length === 0 ? 'everything' : 'everything else';
  return {
    opened: [...opened.map(textOf), ...(is && !was ? [rest] : [])],
    closed: [...closed.map(textOf), ...(was && !is ? [rest] : [])],
    open: [...flows.filter((flow) => accepts(after, flow)).map(textOf), ...(is ? [rest] : [])],
  };
}

/** Whether ssh was open before the change, and is closed for every source afterwards. */
export function locksOut(before: Filter, after: Filter): boolean {
  const ssh: Flow = { protocol: 'tcp', port: '22', from: {} };
  const ways = (filter: Filter) => [ssh, ...filter.rules.flatMap(flowsOf).filter((flow) => meets(flow, ssh))];
  return (
    ways(before).some((flow) => accepts(before, flow)) && !ways(after).some((flow) => accepts(after, flow))
  );
}

/** Rules that never act, because an earlier rule matches all their traffic; counted from 1. */
export function shadowedRules(
  rules: readonly FirewallRule[],
): readonly { readonly rule: number; readonly by: number }[] {
  return rules.flatMap((rule, at) => {
    if (!acts(rule)) return [];
    const by = rules.findIndex(
      (other, earlier) => earlier < at && acts(other) && flowsOf(rule).every((flow) => covers(other, flow)),
    );
    return by === -1 ? [] : [{ rule: at + 1, by: by + 1 }];
  });
}

/** The rule is enabled, and is about incoming traffic or has no direction. */
function acts({ enabled, direction }: FirewallRule): boolean {
  return enabled !== false && (direction === undefined || direction === 'in');
}

const plainFields = new Set(shownRuleFields);

function flowsOf(rule: FirewallRule): Flow[] {
  if (!acts(rule)) return [];
  const protocol =
    typeof rule.protocol === 'string' && !/^(any|all)?$/i.test(rule.protocol)
      ? rule.protocol.toLowerCase()
      : undefined;
  const from = Object.fromEntries(
    Object.entries(rule).filter(
      ([field, value]) => !plainFields.has(field) && field !== 'id' && value !== null && value !== '',
    ),
  );
  return (portsOf(rule) ?? [undefined]).map((port) => ({ protocol, port, from }));
}

function portsOf({ destination_port: port }: FirewallRule): string[] | undefined {
  const ports =
    port === undefined || port === null
      ? []
      : String(port)
          .split(',')
          .map((each) => each.trim())
          .filter(Boolean);
  return ports.length === 0 ? undefined : ports;
}

function accepts({ enabled, policy_in, rules }: Filter, flow: Flow): boolean {
  if (!enabled) return true;
  const rule = rules.find((each) => acts(each) && covers(each, flow));
  return (rule === undefined ? policy_in : rule.action) === 'accept';
}

/** Whether the rule matches all of the flow. */
function covers(rule: FirewallRule, flow: Flow): boolean {
  return flowsOf(rule).some(
    ({ protocol, port, from }) =>
      (protocol === undefined || protocol === flow.protocol) &&
      (port === undefined || (flow.port !== undefined && within(flow.port, port))) &&
      Object.entries(from).every(([field, value]) => equal(value, flow.from[field])),
  );
}

/** Whether the flow is part of the other one, or differs from it only in the source of the traffic. */
function meets(flow: Flow, { protocol, port = '' }: Flow): boolean {
  return (
    (flow.protocol === undefined || flow.protocol === protocol) &&
    (flow.port === undefined || within(port, flow.port))
  );
}

function within(inner: string, outer: string): boolean {
  const [one, other] = [range(inner), range(outer)];
  if (one === undefined || other === undefined) return inner === outer;
  return one[0] >= other[0] && one[1] <= other[1];
}

/** `22`, `1000-2000` or `1000:2000`. */
function range(port: string): readonly [number, number] | undefined {
  const parts = /^(\d+)(?:\s*[-:]\s*(\d+))?$/.exec(port);
  return parts === null ? undefined : [Number(parts[1]), Number(parts[2] ?? parts[1])];
}

function textOf({ protocol, port, from }: Flow): string {
  const where = Object.entries(from).map(
    ([field, value]) => `${field} ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const what = [protocol ?? 'any protocol', ...(port === undefined ? ['every port'] : [port])].join(' ');
  return where.length === 0 ? what : `${what} (${where.join(', ')})`;
}
