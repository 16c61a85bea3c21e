import type { Context, Fields, Reply, Route } from '../call.ts';
import { refuseDeleting, serverIn } from '../context.ts';
import { invalid, Refusal } from '../problem.ts';
import { shows } from '../router.ts';
import { flag, list, object, oneOf, readBody, text } from '../validate.ts';
import { firewallView } from '../views.ts';

/** `@source API §4 /servers/{id}/firewall` */
export const firewallRoutes: readonly Route[] = [
  shows('read_firewall', '/servers/{id}/firewall', (context) =>
    firewallView(serverIn(context).firewall, context.readings),
  ),
  {
    name: 'replace_firewall',
    method: 'PUT',
    path: '/servers/{id}/firewall',
    read: readFirewall,
    handle: replaceFirewall,
  },
];

/** The rule fields that the document shows, and no other. `@source API §2 Firewall` `@assumption A46` */
const RULE = object({
  direction: oneOf('in', 'out'),
  action: oneOf('accept', 'drop', 'reject'),
  enabled: flag.optional(),
  protocol: oneOf('tcp', 'udp', 'icmp').optional(),
  destination_port: text()
    .regex(/^\d{1,5}(,\d{1,5})*$/, 'must be a port or a comma-separated list of ports')
    .optional(),
  description: text().optional(),
});

const policy = oneOf('drop', 'accept', 'reject');
const FIREWALL = object({ enabled: flag, policy_in: policy, rules: list(RULE) });
const WITH_ANY_RULES = FIREWALL.extend({ rules: list(RULE.loose()) });

/** `@assumption A45` `@assumption A46` */
function readFirewall({ body, readings }: Context): Fields {
  const shown = readings.ruleFields === 'any' ? WITH_ANY_RULES : FIREWALL;
  const takesPolicyOut = readings.policyOutOnWrite === 'accepted';
  return readBody(body, takesPolicyOut ? shown.extend({ policy_out: policy.optional() }) : shown);
}

/** Replaces the whole firewall. `@assumption A43` */
function replaceFirewall(context: Context, body: Fields): Reply {
  const { readings } = context;
  const rules = body.rules as Record<string, unknown>[];
  refuseImpossiblePorts(rules);
  const server = serverIn(context);
  refuseDeleting(server);
  if (server.status === 'creating' && readings.firewallWhileCreating === 409) {
    throw new Refusal(409, 'server_not_ready', 'The server is still being created.');
  }
  const enabled = body.enabled as boolean;
  if (enabled && !server.interfaces.some((each) => each.public && !each.hidden)) {
    throw new Refusal(409, 'firewall_no_public_iface', 'The server has no public network interface.');
  }
  server.firewall = {
    enabled,
    policyIn: body.policy_in as string,
    policyOut: (body.policy_out as string | undefined) ?? 'accept',
    rules: rules.map((rule) => ({ enabled: true, ...rule })),
  };
  return { status: 200, data: firewallView(server.firewall, readings), task: null };
}

function refuseImpossiblePorts(rules: readonly Record<string, unknown>[]): void {
  const wrong = rules.flatMap((rule, index) => {
    const ports =
      typeof rule.destination_port === 'string' ? rule.destination_port.split(',').map(Number) : [];
    return ports.every((port) => port >= 1 && port <= 65_535) ? [] : [`rules[${index}].destination_port`];
  });
  if (wrong.length > 0)
    throw invalid(...wrong.map((name) => ({ name, reason: 'must be ports from 1 to 65535' })));
}
