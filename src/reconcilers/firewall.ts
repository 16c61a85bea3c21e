import { namedAddress } from '../core/desired.ts';
import type { Json } from '../core/json.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Diff, ResourceKind, Subject, World } from '../core/kind.ts';
import type { Warning } from '../core/plan.ts';
import type { WriteRequest } from '../core/ports.ts';
import { command, edit, outside } from '../core/remedy.ts';
import type { Firewall, ServerId } from '../core/resources.ts';
import type { Binding } from '../core/state.ts';
import { firewallCautions, firewallErrors } from './firewall/checks.ts';
import { diffDeclared, type FirewallEntry, firewallSchema } from './firewall/rules.ts';
import { type Filter, locksOut, trafficOf } from './firewall/traffic.ts';
import {
  type AppliedFirewall,
  type ReturnedFields,
  returnedFields,
  sendable,
  shownFirewall,
  type UndocumentedFields,
  undocumentedFields,
} from './firewall/undocumented.ts';
import { blocking, done, fromNothing, notDone, observeInside, serverOf, unchanged } from './verdicts.ts';

interface FirewallObserved {
  readonly id: string | undefined;
  readonly live: Firewall;
  readonly hasPublicInterface: boolean;
  readonly inForce: boolean;
}

export const firewall: ResourceKind<FirewallEntry, FirewallObserved> = {
  name: 'firewall',
  entry: {
    schema: firewallSchema,
    check: firewallErrors,
    cautions: firewallCautions,
  },
  billing: { billed: false },
  timing: { deadlineMs: 10 * 60_000, urgency: Number.POSITIVE_INFINITY },

  setting: true,

  observe: (read, subjects, idOf) =>
    observeInside(subjects, idOf, async (server, { desired }) => {
      const live = desired && (await read.findFirewall(server));
      if (desired === undefined || live === undefined) return undefined;
      const interfaces =
        desired.value.enabled === true ? ((await read.findNetworkInterfaces(server)) ?? []) : [];
      const hasPublicInterface = interfaces.some((one) => one.public);
      return { id: String(server), live, hasPublicInterface, inForce: live.enabled };
    }),

  diff(subject, observed, world, replaced) {
    const { desired, binding } = subject;
    if (desired === undefined || !desired.managed) return unchanged;
    const entry = desired.value;
    if (observed === undefined) {
      if (entry.enabled === true && !willBePublic(subject, world)) return noPublicInterface(subject, world);
      return diffNew(subject, entry, replaced?.live, world);
    }
    const fields = undocumentedFields(entry, observed.live, appliedOf(binding));
    const live = shownFirewall(observed.live, fields);
    const changes = diffDeclared(entry, live);
    if (changes.length === 0) return unchanged;
    if (entry.enabled === true && !observed.hasPublicInterface) return noPublicInterface(subject, world);
    const lost = lostByReplacing(subject.key, live, fields);
    if (lost !== undefined) return lost;
    const pristine = binding === undefined && !live.enabled && live.rules.length === 0;
    const after = filterOf(entry, live);
    const effects = {
      traffic: trafficOf(live, after),
      consequences: [...lockout(subject.key, live, after), ...droppedFields(subject.key, fields)],
    };
    if (pristine) return { verdict: { verdict: 'create', changes }, ...effects };
    const cause = isAsLeft(appliedOf(binding), observed.live) ? 'file' : 'drift';
    return { verdict: { verdict: 'update', changes, cause }, ...effects };
  },

  writes: {
    /** `policy_out` is never sent; rules are sent unchanged. @assumption A45 @assumption A46 */
    request({ subject, observed, world }) {
      const entry = subject.desired?.value ?? {};
      const live =
        observed &&
        sendable(observed.live, undocumentedFields(entry, observed.live, appliedOf(subject.binding)));
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
      if (live === undefined || diffDeclared(sent, live).length > 0) return notDone;
      return { ...done(id), facts: { ruleFields: returnedFields(sent, live) } };
    },
  },

  /** A firewall that was only compared was never sent. It may hold fields that only its author can write. */
  bind: ({ request, facts }) => ({
    identity: {},
    applied: request === undefined ? null : appliedBy(request, facts?.ruleFields),
    keep: false,
  }),
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
  const fields = undocumentedFields(entry, replaced, appliedOf(subject.binding));
  const old = shownFirewall(replaced, fields);
  const fromOld = changes.map((change) => ({ ...change, from: old[change.path as keyof Firewall] ?? null }));
  const lost = lockout(subject.key, old, after).map((warning) => ({
    ...warning,
    message: `${warning.message}; ${addressAfter(subject, world)}`,
  }));
  return {
    verdict: { verdict: 'create', changes: fromOld },
    traffic: trafficOf(old, after),
    consequences: [...lost, ...droppedFields(subject.key, fields), ...leftBehind(subject.key, fields)],
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
  return namedAddress((parent && world.subjects.get(parent))?.desired?.value) === undefined
    ? 'the server is replaced, and may get another address'
    : 'the server is replaced, and keeps its address';
}

/** The public network interface is created with the address that the server asks for. @assumption A28 */
function willBePublic(subject: Subject, world: World): boolean {
  const server = subject.parent && world.subjects.get(subject.parent)?.desired;
  return server === undefined || server.value.public_ipv4 !== undefined;
}

/** @source API §3.4 */
function noPublicInterface(subject: Subject, world: World): Diff {
  const { key, parent = key } = subject;
  const isExpected = willBePublic(subject, world);
  const why = isExpected
    ? ' yet: its creation has not ended, or it lacks the `public_ipv4` of its entry'
    : '';
  const reason = `a firewall filters only the public network interface, and the API refuses to enable it without one. The server has none${why}`;
  const ended = { when: 'if its creation has ended', next: [command('apply')] };
  return blocking('update', 'firewall_no_public_iface', reason, [
    ...(isExpected
      ? [
          command('apply', [], { when: `once the creation of ${parent} has ended` }),
          outside(`attach an address to ${parent} in the client area`, ended),
        ]
      : [edit(parent, { choose: { public_ipv4: [] } })]),
    edit(key, { set: { enabled: false } }),
  ]);
}

/** Only rules that were read back show the fields that the API adds. */
function appliedBy({ body }: WriteRequest, ruleFields: ReturnedFields | undefined): Json {
  const sent = body as unknown as FirewallEntry;
  const isShown = ruleFields !== undefined && (sent.rules ?? []).length > 0;
  return { ...sent, ...(isShown && { ruleFields }) } as Json;
}

function appliedOf(binding: Pick<Binding, 'applied'> | undefined): AppliedFirewall | undefined {
  return (binding?.applied ?? undefined) as unknown as AppliedFirewall | undefined;
}

/** No other user has changed the firewall since the last write. @assumption A32 */
function isAsLeft(applied: AppliedFirewall | undefined, live: Firewall): boolean {
  return applied === undefined || diffDeclared(applied, live).length === 0;
}

/** An operator may have set a field that the API seems to add. The write drops that field. */
function droppedFields(key: ResourceKey, { unclear }: UndocumentedFields): Warning[] {
  if (unclear.size === 0) return [];
  const fields = [...unclear].map(([field, value]) => `${field} (${JSON.stringify(value)})`).join(', ');
  const message = `live rules have ${fields}, an undocumented field. vdcsync assumes that the API adds the field itself, and does not send it. If you set the field, write it in the rules of the spec`;
  return [{ code: 'firewall_field_dropped', key, message }];
}

/** The firewall of a replaced server has a field that was set outside vdcsync. The new firewall does not have it. */
function leftBehind(key: ResourceKey, { foreign }: UndocumentedFields): Warning[] {
  if (foreign === undefined) return [];
  const [field, value] = foreign;
  const message = `a rule of the replaced server has the undocumented field ${field} (${JSON.stringify(value)}), and the rules of the new server do not. If you need the field, write it in the rules of the spec`;
  return [{ code: 'firewall_field_dropped', key, message }];
}

/** Fields that other users set on their rules, and that the spec does not have. @assumption A32 */
function lostByReplacing(
  key: ResourceKey,
  live: Firewall,
  { foreign }: UndocumentedFields,
): Diff | undefined {
  if (live.policy_out !== null && live.policy_out !== 'accept') {
    const reason = `the live firewall has policy_out ${live.policy_out}. The API does not document how to set it, so a change could reset it`;
    const ways = [outside('set policy_out to accept in the client area'), edit(key, { entry: 'remove' })];
    return blocking('update', 'firewall_would_lose', reason, ways);
  }
  if (foreign === undefined) return undefined;
  const [field, value] = foreign;
  const reason = `a live rule has the undocumented field ${field}: ${JSON.stringify(value)}. New rules would lose that field`;
  return blocking('update', 'firewall_would_lose', reason, [
    edit(key, { choose: { [`rules.${field}`]: [] } }),
    outside('remove those rules in the client area'),
  ]);
}
