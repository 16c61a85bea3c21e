import equal from 'fast-deep-equal';
import { type Json, member } from '../core/json.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Diff, ResourceKind, Subject, World } from '../core/kind.ts';
import type { Change, Warning } from '../core/plan.ts';
import { edit, outside, run } from '../core/remedy.ts';
import type { Firewall, FirewallRule, ServerId } from '../core/resources.ts';
import { blocked, fromNothing, observeInside, serverOf, unchanged } from './existence.ts';
import { firewallCautions, firewallErrors } from './firewall/checks.ts';
import { type FirewallEntry, firewallSchema, shownRuleFields } from './firewall/rules.ts';
import { type Filter, locksOut, trafficOf } from './firewall/traffic.ts';

interface FirewallObserved {
  readonly id: string | undefined;
  readonly live: Firewall;
  readonly publicCard: boolean;
  readonly inForce: boolean;
}

export const firewall: ResourceKind<FirewallEntry, FirewallObserved> = {
  name: 'firewall',
  entry: {
    schema: firewallSchema,
    check: firewallErrors,
    cautions: firewallCautions,
  },
  billing: {
    billed: false,
  },
  timing: {
    deadlineMs: 10 * 60_000,
    urgency: Number.POSITIVE_INFINITY,
  },

  setting: true,

  observe: (read, subjects, idOf) =>
    observeInside(subjects, idOf, async (server, { desired }) => {
      const live = desired && (await read.findFirewall(server));
      if (desired === undefined || live === undefined) return undefined;
      const cards = desired.value.enabled === true ? ((await read.findNetworkInterfaces(server)) ?? []) : [];
      const publicCard = cards.some((card) => card.public);
      return { id: String(server), live, publicCard, inForce: live.enabled };
    }),

  diff(subject, observed, world, replaced) {
    const { desired, binding } = subject;
    if (desired === undefined || !desired.managed) return unchanged;
    const entry = desired.value;
    if (observed === undefined) {
      if (entry.enabled === true && !willBePublic(subject, world)) return noPublicCard(subject, world);
      return diffNew(subject, entry, replaced?.live, world);
    }
    const added = addedByServer(entry, observed.live, binding?.applied);
    const live = withoutFields(observed.live, added);
    const changes = diffDeclared(entry, live);
    if (changes.length === 0) return unchanged;
    if (entry.enabled === true && !observed.publicCard) return noPublicCard(subject, world);
    const lost = lostByReplacing(subject.key, entry, live);
    if (lost !== undefined) return lost;
    const pristine = binding === undefined && !live.enabled && live.rules.length === 0;
    const after = filterOf(entry, live);
    const effects = {
      traffic: trafficOf(live, after),
      consequences: [...lockout(subject.key, live, after), ...droppedFields(subject, observed.live, added)],
    };
    if (pristine) return { verdict: { verdict: 'create', changes }, ...effects };
    const cause = binding?.applied == null || isAsLeft(binding.applied, live) ? 'file' : 'drift';
    return { verdict: { verdict: 'update', changes, cause }, ...effects };
  },

  writes: {
    /** `policy_out` is never sent; rules are sent unchanged. @assumption A45 @assumption A46 */
    request({ subject, observed, world }) {
      const entry = subject.desired?.value ?? {};
      const added = observed && addedByServer(entry, observed.live, subject.binding?.applied);
      const live = observed && withoutFields(observed.live, added ?? new Set());
      return {
        name: 'put_firewall',
        path: { server_id: serverOf(subject, world) },
        body: {
          enabled: entry.enabled ?? live?.enabled ?? false,
          policy_in: entry.policy_in ?? live?.policy_in ?? 'drop',
          rules: (entry.rules ?? live?.rules ?? []) as Json,
        },
      };
    },

    stale: ({ path }) => ({ server: path.server_id, inside: ['findFirewall'] }),

    accept: (_answer, request) => ({ id: String(request.path.server_id) }),

    async evidence(intent, read) {
      const id = Number(intent.request.path.server_id) as ServerId;
      const live = await read.findFirewall(id);
      const sent = intent.request.body as unknown as FirewallEntry;
      return live !== undefined && diffDeclared(sent, live).length === 0
        ? { verdict: 'done', id: String(id), certain: true }
        : { verdict: 'not_done' };
    },
  },

  /** A firewall that was only compared was never sent. It may hold fields that only its author can write. */
  bind: ({ request }) => ({ identity: {}, applied: request?.body ?? null, keep: false }),
};

/**
 * A new server has no firewall at first. If the server replaces another one, the diff shows the difference from that
 * server, as its users see it.
 */
function diffNew(
  subject: Subject<FirewallEntry>,
  entry: FirewallEntry,
  replaced: Firewall | undefined,
  world: World,
): Diff {
  const changes = fromNothing({ ...entry });
  const after = filterOf(entry, unfiltered);
  if (replaced === undefined)
    return { verdict: { verdict: 'create', changes }, traffic: trafficOf(unfiltered, after) };
  const old: Firewall = withoutFields(replaced, addedByServer(entry, replaced, subject.binding?.applied));
  const fromOld = changes.map((change) => ({ ...change, from: old[change.path as keyof Firewall] ?? null }));
  const lost = lockout(subject.key, old, after).map((warning) => ({
    ...warning,
    message: `${warning.message}; ${addressAfter(subject, world)}`,
  }));
  return {
    verdict: { verdict: 'create', changes: fromOld },
    traffic: trafficOf(old, after),
    consequences: lost,
  };
}

/** The firewall of a new server. */
const unfiltered: Filter = { enabled: false, policy_in: 'drop', rules: [] };

function filterOf({ enabled, policy_in, rules }: FirewallEntry, live: Filter): Filter {
  return {
    enabled: enabled ?? live.enabled,
    policy_in: policy_in ?? live.policy_in,
    rules: rules ?? live.rules,
  };
}

function lockout(key: ResourceKey, before: Filter, after: Filter): Warning[] {
  if (!locksOut(before, after)) return [];
  const message =
    'applying the spec closes ssh (tcp 22). First make sure that you have another way to log in';
  return [{ code: 'firewall_lockout', key, message }];
}

function addressAfter({ parent }: Subject, world: World): string {
  const entry = parent && world.subjects.get(parent)?.desired?.value;
  return member(member(entry, 'public_ipv4'), 'ip') === undefined
    ? 'the server is replaced, and may get another address'
    : 'the server is replaced, and keeps its address';
}

/** The public network interface is created with the address that the server asks for. @assumption A28 */
function willBePublic(subject: Subject, world: World): boolean {
  const server = subject.parent && world.subjects.get(subject.parent)?.desired;
  return server === undefined || member(server.value, 'public_ipv4') !== undefined;
}

/** @source API §3.4 */
function noPublicCard(subject: Subject, world: World): Diff {
  const { key, parent = key } = subject;
  const isExpected = willBePublic(subject, world);
  const why = isExpected
    ? ' yet: its creation has not ended, or it lacks the `public_ipv4` of its entry'
    : '';
  return blocked(
    'update',
    'firewall_no_public_iface',
    `a firewall filters only the public network interface, and the API refuses to enable it without one. The server has none${why}`,
    [
      ...(isExpected
        ? [
            run('apply', [], { when: `once the creation of ${parent} has ended` }),
            outside(`resolve ${parent} first`, { when: 'if the server has no public address' }),
          ]
        : [edit(parent, { choose: { public_ipv4: [] } })]),
      edit(key, { set: { enabled: false } }),
    ],
  );
}

function diffDeclared(entry: FirewallEntry, live: Firewall): Change[] {
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
  const from = there.map((live) => wanted.find((rule) => sameRule(rule, live)) ?? live);
  return same ? changes : [...changes, { path: 'rules', from, to: wanted }];
}

function sameRule(declared: FirewallRule, live: FirewallRule): boolean {
  return Object.entries(declared).every(([field, value]) => equal(normal(value), normal(live[field])));
}

/** Text is trimmed by the API; spaces in a list of ports mean nothing. @source API §4 rule 3 */
function normal(value: unknown): unknown {
  return typeof value === 'string' ? value.trim().replace(/\s*,\s*/g, ',') : value;
}

/** No other user has changed the firewall since the last write. @assumption A32 */
function isAsLeft(applied: Json | undefined, live: Firewall): boolean {
  return applied != null && diffDeclared(applied as unknown as FirewallEntry, live).length === 0;
}

/**
 * Fields of live rules that neither the document nor the spec's rules have, with the rules that carry a value in them.
 */
function unknownFields(
  entry: FirewallEntry,
  { rules }: Firewall,
): ReadonlyMap<string, readonly FirewallRule[]> {
  const known = new Set([...shownRuleFields, ...(entry.rules ?? []).flatMap(Object.keys)]);
  const fields = new Set(rules.flatMap(Object.keys).filter((field) => !known.has(field)));
  return new Map([...fields].map((field) => [field, rules.filter((rule) => rule[field] != null)]));
}

/**
 * Unknown fields that the server adds to rules by itself, such as a position: every live rule carries them, or rules
 * that this spec sent came back with them. Fields without a value carry nothing. @source API §9.3 @assumption A32
 */
function addedByServer(entry: FirewallEntry, live: Firewall, applied: Json | undefined): ReadonlySet<string> {
  const isSent = sentBefore(applied);
  const added = [...unknownFields(entry, live)].filter(
    ([, carriers]) => carriers.length === 0 || carriers.length === live.rules.length || carriers.some(isSent),
  );
  return new Set(added.map(([field]) => field));
}

function sentBefore(applied: Json | undefined): (rule: FirewallRule) => boolean {
  const { rules = [] } = (applied ?? {}) as unknown as FirewallEntry;
  return (live) => rules.some((rule) => sameRule(rule, live));
}

function withoutFields(live: Firewall, fields: ReadonlySet<string>): Firewall {
  const strip = (rule: FirewallRule) =>
    Object.fromEntries(Object.entries(rule).filter(([field]) => !fields.has(field)));
  return fields.size === 0 ? live : { ...live, rules: live.rules.map(strip) };
}

/** A field of rules that this spec never sent may have been set by an operator, and the replacement drops it. */
function droppedFields({ key, binding }: Subject, live: Firewall, added: ReadonlySet<string>): Warning[] {
  const isSent = sentBefore(binding?.applied);
  const dropped = [...added].flatMap((field) => {
    const carriers = live.rules.filter((rule) => rule[field] != null);
    const [rule] = carriers;
    return rule === undefined || carriers.some(isSent) ? [] : [`${field} (${JSON.stringify(rule[field])})`];
  });
  if (dropped.length === 0) return [];
  const message = `every live rule has ${dropped.join(', ')}, an undocumented field. vdcsync assumes that the API adds the field itself, and does not send it. If you set the field, write it in the rules of the spec`;
  return [{ code: 'firewall_field_dropped', key, message }];
}

/** Fields that other users set on their rules, and that the spec does not have. @assumption A32 */
function lostByReplacing(key: ResourceKey, entry: FirewallEntry, live: Firewall): Diff | undefined {
  if (live.policy_out !== null && live.policy_out !== 'accept') {
    return blocked(
      'update',
      'firewall_would_lose',
      `the live firewall has policy_out ${live.policy_out}. The API does not document how to set it, so a change could reset it`,
      [outside('set policy_out to accept in the client area'), edit(key, { entry: 'remove' })],
    );
  }
  const [first] = unknownFields(entry, live);
  if (first === undefined) return undefined;
  const [field, [rule = {}]] = first;
  return blocked(
    'update',
    'firewall_would_lose',
    `a live rule has the undocumented field ${field}: ${JSON.stringify(rule[field])}. New rules would lose that field`,
    [edit(key, { choose: { [`rules.${field}`]: [] } }), outside('remove those rules in the client area')],
  );
}
