import equal from 'fast-deep-equal';
import { z } from 'zod';
import type { Change } from '../../core/plan.ts';
import type { Firewall, FirewallRule } from '../../core/resources.ts';

/**
 * A server's firewall, replaced as a whole. Declared fields are compared, rules in their
 * order. If a replacement would lose fields that vdcsync cannot send back, the replacement is blocked.
 */
export type FirewallEntry = {
  readonly enabled?: boolean | undefined;
  readonly policy_in?: string | undefined;
  readonly rules?: readonly FirewallRule[] | undefined;
};

const flag = z.boolean().optional();
const text = z.string().optional();

const ruleSchema = z.looseObject({
  direction: text.meta({ description: 'Direction of the traffic, such as in.', examples: ['in'] }),
  action: text.meta({ description: 'accept or drop.', examples: ['accept', 'drop'] }),
  enabled: flag.describe('Whether the rule is used.'),
  protocol: text.meta({ description: 'The protocol, such as tcp.', examples: ['tcp'] }),
  destination_port: text.meta({
    description: 'A port, or several with commas, as text.',
    examples: ['80,443'],
  }),
  description: text.describe('A note.'),
});

/** Fields of a rule that the document shows. @source API §2 */
export const shownRuleFields: readonly string[] = Object.keys(ruleSchema.shape);

/** Whether the value of a rule's field says anything. */
export function hasValue(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

/** Whether the live rule has an undocumented field with a value, and the declared rule does not have that field. */
function hasUndeclared(declared: FirewallRule, live: FirewallRule): boolean {
  return Object.entries(live).some(
    ([field, value]) =>
      !shownRuleFields.includes(field) && !Object.hasOwn(declared, field) && hasValue(value),
  );
}

export const firewallSchema = z
  .strictObject({
    enabled: flag.describe(
      'Whether the firewall filters traffic. true requires a public network interface on the server.',
    ),
    policy_in: z
      .string()
      .trim()
      .min(1)
      .optional()
      .meta({
        description:
          "Action for traffic that no rule matches. The API's document shows `drop` and `accept`, but no complete list, so any other value is sent unchanged.",
        examples: ['drop', 'accept'],
      }),
    rules: z
      .array(ruleSchema)
      .optional()
      .describe('The first rule that matches decides. vdcsync sends unknown fields of a rule unchanged.'),
  })
  .describe('The firewall of the server. Without this field, vdcsync does not change the firewall.');

/** Each flow is compared with each rule. A firewall with more is not analysed. */
export const mostFlows = 1_000;

/** `unknown`: a value that the API's document does not show. */
export type Action = 'accept' | 'drop' | 'unknown';

/** Traffic that rules can distinguish. */
export interface Flow {
  /** Left out: every protocol. */
  readonly protocol: string | undefined;
  /** One element of a list of ports. Left out: every port. */
  readonly port: string | undefined;
  readonly first: number;
  readonly last: number;
  /** Whether the protocol and the port are usual values. */
  readonly isUnderstood: boolean;
  /** Further fields of a rule, such as the source of the traffic, with their values as JSON. */
  readonly from: ReadonlyMap<string, string>;
  /** `tcp 22`, `tcp 22 (source 198.51.100.0/24)`, `any protocol every port`. */
  readonly text: string;
}

/** A rule that is enabled and may be about incoming traffic. */
export interface CompiledRule {
  /** Counted from 1. */
  readonly number: number;
  readonly flows: readonly Flow[];
  readonly action: Action;
  /** Whether the rule filters incoming traffic for certain. A direction that the rule leaves out may be another one. */
  readonly isCertain: boolean;
}

/** The protocols that a rule names in the usual way. The API's document shows `tcp` alone, and no complete list. */
const usualProtocols: ReadonlySet<string> = new Set(['tcp', 'udp', 'icmp', 'icmpv6']);
const plainFields: ReadonlySet<string> = new Set([...shownRuleFields, 'id']);

/** The rules that may filter incoming traffic, in their order. */
export function compile(rules: readonly FirewallRule[]): readonly CompiledRule[] {
  return rules.flatMap((rule, at) => {
    const [direction, action] = [trimmed(rule.direction), trimmed(rule.action)];
    if (rule.enabled === false || direction === 'out') return [];
    const isAccept = action === 'accept';
    return {
      number: at + 1,
      flows: flowsOf(rule),
      action: isAccept || action === 'drop' ? action : 'unknown',
      // A rule without a direction opens traffic in the worst case, and closes none.
      isCertain:
        (direction === 'in' || (isAccept && direction === undefined)) &&
        (rule.enabled === true || rule.enabled === undefined),
    };
  });
}

/** `22`, `1000-2000` or `1000:2000`. */
export function portRange(port: string): readonly [number, number] | undefined {
  const parts = /^(\d+)(?:\s*[-:]\s*(\d+))?$/.exec(port);
  return parts === null ? undefined : [Number(parts[1]), Number(parts[2] ?? parts[1])];
}

function flowsOf(rule: FirewallRule): readonly Flow[] {
  const written = trimmed(rule.protocol);
  const isAny = written === undefined || written === null || written === '';
  const protocol = isAny ? undefined : typeof written === 'string' ? written : JSON.stringify(written);
  const isUsual = protocol === undefined || usualProtocols.has(protocol);
  const from = new Map(
    Object.entries(rule)
      .filter(([field, value]) => !plainFields.has(field) && hasValue(value))
      .map(([field, value]) => [field, JSON.stringify(value) ?? '']),
  );
  const where = [...from]
    .map(([field, value]) => `${plain(JSON.stringify(field))} ${plain(value)}`)
    .join(', ');
  const ports: readonly (string | undefined)[] = portsOf(rule) ?? [undefined];
  return ports.map((port) => {
    const range = port === undefined ? undefined : portRange(port);
    const [first, last] =
      port === undefined ? [0, Number.POSITIVE_INFINITY] : (range ?? [Number.NaN, Number.NaN]);
    const words = [
      protocol === undefined ? 'any protocol' : isUsual ? protocol : `protocol ${JSON.stringify(protocol)}`,
      port === undefined ? 'every port' : range === undefined ? `port ${JSON.stringify(port)}` : port,
    ].join(' ');
    return {
      ...{ protocol, port, first, last, from },
      isUnderstood: isUsual && (port === undefined || range !== undefined),
      text: where === '' ? words : `${words} (${where})`,
    };
  });
}

function portsOf({ destination_port: port }: FirewallRule): readonly string[] | undefined {
  if (port === undefined || port === null) return undefined;
  const ports = String(port)
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');
  return ports.length === 0 ? undefined : ports;
}

/** The API trims text. @source API §4 rule 3 */
function trimmed(value: unknown): unknown {
  return typeof value === 'string' ? value.trim() : (value ?? undefined);
}

/** A value without quotes, where the value cannot be read as another part of the text. */
function plain(text: string): string {
  const inner = text.startsWith('"') ? text.slice(1, -1) : text;
  return /^[\w.:/-]+$/.test(inner) ? inner : text;
}

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
