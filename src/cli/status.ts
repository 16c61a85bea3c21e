import { serversShown } from '../core/attribute.ts';
import type { Claim } from '../core/claims.ts';
import { money, part } from '../core/decimal.ts';
import type { DesiredResource } from '../core/desired.ts';
import { partsOf } from '../core/intent.ts';
import { type KeyStatus, keyStatusesOf } from '../core/key-status.ts';
import type { ResourceKey } from '../core/keys.ts';
import { factsOf, isAddress, type KindName } from '../core/kind-facts.ts';
import {
  type Blocked,
  type MonthlyCost,
  type Plan,
  tellsDifference,
  type Verb,
  type Warning,
} from '../core/plan.ts';
import type { PriceList } from '../core/profile.ts';
import type { Ip } from '../core/resources.ts';
import type { Binding, Intent, JournalEntry, StateInfo } from '../core/state.ts';
import { leftBackups } from '../engine/claims/left-backups.ts';
import {
  addressHolders,
  type IgnoredObject,
  ignoredObjects,
  unattached,
} from '../engine/claims/unattached.ts';
import type { Finding } from '../engine/run/recorded-findings.ts';
import { waysOut } from '../plan/open-writes.ts';

/** The public JSON of `vdcsync status`. */
export interface StatusView {
  readonly format_version: 1;
  readonly project_id: number | null;
  readonly state: {
    readonly location: string;
    readonly exists: boolean;
    readonly lineage: string;
    readonly serial: number;
    /** The last line of the journal, or null. */
    readonly changed_at: string | null;
  };
  /** When the API was read, or why it was not. */
  readonly observed_at: string | null;
  readonly offline: string | null;
  readonly converged: boolean | null;
  readonly resources: readonly {
    readonly key: ResourceKey;
    readonly kind: KindName;
    readonly id: string;
    readonly standing: KeyStatus;
    readonly protect: boolean;
    readonly identity: Readonly<Record<string, string>>;
    /** The public addresses that the resource has; those of the last run if the API was not read. */
    readonly addresses: readonly string[];
    readonly bound_at: string;
    /** The time of the read that the status rests on; null if it rests on the state alone. */
    readonly observed_at: string | null;
  }[];
  /** The exposed servers; null if the API was not read. */
  readonly exposed: readonly ResourceKey[] | null;
  readonly missing: readonly { readonly key: ResourceKey; readonly verb: Verb }[];
  readonly in_flight: readonly {
    readonly key: ResourceKey;
    readonly verb: Verb;
    readonly phase: string;
    readonly since: string;
    readonly request_id: string | null;
    readonly task_id: string | null;
  }[];
  readonly blocked: readonly Blocked[];
  /** The warnings of the plan; none if the API was not read. */
  readonly warnings: readonly Warning[];
  /** The resources that cost money: from the API if it was read, else from the state. */
  readonly billed: readonly Billed[];
  /** The monthly cost of the managed resources, as far as prices are known; null if the API was not read. */
  readonly monthly: MonthlyCost | null;
  /** Billed but unused now, without the ignored resources; null if the API was not read. */
  readonly idle: readonly Billed[] | null;
  /** The monthly cost of the idle resources; null if there is no price for an address. */
  readonly idle_monthly: { readonly currency: string | null; readonly known: string } | null;
  /** Billed, unattached, and possibly bought by the open write of its key; null if the API was not read. */
  readonly unconfirmed: readonly Billed[] | null;
  /** Creations without a known id whose outcome is not known: each may have bought a resource. */
  readonly unconfirmed_creations: readonly ResourceKey[];
  /** The ignored resources: billed as long as they exist, and no reason to block an operation. */
  readonly ignored: readonly IgnoredObject[];
  /** Backups of deleted servers: billed, and shown by no documented read. From the state. */
  readonly left_backups: readonly {
    readonly server_id: string;
    readonly key: ResourceKey;
    readonly backups: readonly string[];
    readonly since: string;
  }[];
}

/** `since`: when this state first recorded the condition; null if it did not record it. */
interface Billed {
  readonly id: string;
  readonly what: string;
  readonly key: ResourceKey | null;
  readonly since: string | null;
}

export interface StatusFacts {
  readonly location: string;
  readonly exists: boolean;
  readonly info: StateInfo;
  readonly bindings: readonly Binding[];
  readonly intents: readonly Intent[];
  /** Writes that have ended, newest first. */
  readonly past?: readonly Intent[];
  /** The blocks of the last run that no later write has ended. */
  readonly findings?: readonly Finding[];
  readonly claims: readonly Claim[];
  readonly last: JournalEntry | undefined;
  readonly offline?: string;
  readonly plan?: Plan;
  /** The resources that the file declares. */
  readonly desired?: readonly DesiredResource[];
  readonly prices?: PriceList | undefined;
  readonly ips?: readonly Ip[];
  readonly at?: number;
}

/** Combines the state and, if there was one, the refresh of the API. Pure. */
export function statusOf(facts: StatusFacts): StatusView {
  const { info, bindings, intents, last, plan, ips, at } = facts;
  const observedAt = at === undefined ? null : time(at);
  const blocked = (plan?.blocked ?? blockedByState(facts)).map((each) => dated(each, intents));
  const statusOfKey = keyStatusesOf({ ...facts, blocked });
  const bound = new Set(bindings.map(({ key }) => key));
  const free = ips && unattached(ips, facts);
  return {
    format_version: 1,
    project_id: info.projectId ?? plan?.project.id ?? null,
    state: {
      location: facts.location,
      exists: facts.exists,
      lineage: info.lineage,
      serial: info.serial,
      changed_at: last === undefined ? null : time(last.at),
    },
    observed_at: observedAt,
    offline: facts.offline ?? null,
    converged:
      plan === undefined
        ? null
        : plan.operations.length + blocked.length + intents.length === 0 &&
          !plan.warnings.some(tellsDifference),
    resources: bindings.map((binding) => ({
      key: binding.key,
      kind: binding.kind,
      id: binding.id,
      standing: statusOfKey(binding.key),
      protect: binding.protect,
      identity: binding.identity,
      addresses: addressesOf(binding, ips),
      bound_at: time(binding.boundAt),
      observed_at: observedAt,
    })),
    exposed:
      plan?.warnings.flatMap(({ code, key }) => (code === 'exposed' && key !== null ? [key] : [])) ?? null,
    missing: (plan?.operations ?? [])
      .filter(({ key }) => !bound.has(key))
      .map(({ key, verb }) => ({ key, verb })),
    in_flight: intents
      .filter(({ phase }) => phase !== 'blocked')
      .map((intent) => ({
        key: intent.key,
        verb: intent.verb,
        phase: intent.phase,
        since: time(intent.createdAt),
        request_id: intent.requestId ?? null,
        task_id: partsOf(intent).answer?.taskId ?? null,
      })),
    blocked,
    warnings: plan?.warnings ?? [],
    billed: billedOf(facts),
    monthly: plan?.cost.monthly ?? null,
    idle: free?.idle.map(({ ip }) => ({ ...address(ip, facts), since: idleSince(ip, facts) })) ?? null,
    idle_monthly: free === undefined ? null : addressesMonthly(free.idle.length, facts.prices),
    unconfirmed: free?.unconfirmed.map(({ ip }) => address(ip, facts)) ?? null,
    unconfirmed_creations: intents.filter(mayHaveBought).map(({ key }) => key),
    ignored: ignoredObjects(facts.claims, ips),
    left_backups: leftBackups(facts.claims).map(({ server, key, backups, at: since }) => ({
      server_id: server,
      key,
      backups,
      since: time(since),
    })),
  };
}

/** A creation of a billed resource that was sent, and whose effect is neither known nor excluded. */
function mayHaveBought(intent: Intent): boolean {
  const { verb, kind, phase } = intent;
  const { answer, unconfirmed } = partsOf(intent);
  const { counted, bought } = factsOf(kind);
  if (verb !== 'create' || (counted ?? bought) === undefined || answer?.id !== undefined) return false;
  return unconfirmed !== undefined || answer !== undefined || phase === 'sending';
}

function addressesOf({ kind, id, identity }: Binding, ips: readonly Ip[] | undefined): readonly string[] {
  if (factsOf(kind).container) {
    const held = ips?.filter(({ server_id }) => String(server_id) === id).map(({ address }) => address);
    return held ?? [identity.ipv4 ?? []].flat();
  }
  return isAddress(kind) ? [identity.address ?? []].flat() : [];
}

/** Without a plan: open writes that wait for the operator, and the findings of the last run. */
function blockedByState({ intents, findings = [] }: StatusFacts): readonly Blocked[] {
  const found = findings.map(({ key, verb, code, reason, remedies, since }) => ({
    ...{ key, verb, code, reason, remedies },
    ...(since === undefined ? {} : { since }),
  }));
  return [...intents.flatMap(blockedIntent), ...found];
}

/** A write that is blocked since a run that did not end was last sent at that time. */
function dated(each: Blocked, intents: readonly Intent[]): Blocked {
  const open = intents.find(({ key, phase }) => key === each.key && phase === 'blocked');
  return each.since !== undefined || open === undefined ? each : { ...each, since: time(open.lastSentAt) };
}

function blockedIntent(intent: Intent): Blocked[] {
  if (intent.phase !== 'blocked') return [];
  const { key, verb, blocked } = intent;
  return [{ key, verb, code: blocked.code, reason: blocked.reason, remedies: waysOut(intent) }];
}

/**
 * Includes unsettled creations, resources that wait for adoption, and the servers of others, because they may cost money
 * already.
 */
function billedOf(facts: StatusFacts): StatusView['billed'] {
  const { bindings, ips, intents, claims } = facts;
  const arriving = intents.flatMap((intent) => {
    const { key, kind, verb, createdAt } = intent;
    const id = partsOf(intent).answer?.id;
    return verb === 'create' && id !== undefined ? [{ key, kind, id, boundAt: createdAt }] : [];
  });
  const adopted = new Set(bindings.map(({ key }) => key));
  const adopting = (facts.plan?.operations ?? []).flatMap(({ key, kind, verb, target: id }) =>
    verb === 'adopt' && id !== undefined && !adopted.has(key) ? [{ key, kind, id, boundAt: null }] : [],
  );
  const bought = [...bindings, ...arriving, ...adopting]
    .filter(({ kind }) => factsOf(kind).counted)
    .map(({ id, kind, key, boundAt }) => {
      const since = boundAt === null ? null : time(boundAt);
      return { id, what: `${kind.replace('_', ' ')} ${id}`, key, since };
    });
  const addresses =
    ips === undefined
      ? bindings
          .filter(({ kind }) => isAddress(kind))
          .map(({ id, key, identity, boundAt }) => ({
            id,
            what: `address ${identity.address ?? id}`,
            key,
            since: time(boundAt),
          }))
      : ips.map((ip) => address(ip, facts));
  const known = new Set(bought.map(({ what }) => what));
  const others = [...serversShown({ ips: ips ?? [] })]
    .map((id) => ({ id: String(id), what: `server ${id}`, key: null, since: null }))
    .filter(({ what }) => !known.has(what));
  const backups = leftBackups(claims).flatMap(({ server, key, backups: ids, at }) =>
    ids.map((id) => ({ id, what: `backup ${id} of server ${server}`, key, since: time(at) })),
  );
  return [...bought, ...others, ...addresses, ...backups];
}

function address(ip: Ip, facts: StatusFacts): StatusView['billed'][number] {
  const id = String(ip.id);
  const binding = facts.bindings.find((each) => isAddress(each.kind) && each.id === id);
  const holder = addressHolders([{ ...ip, server_id: null }], facts).address(ip);
  const key = binding?.key ?? (holder.is === 'pending' ? holder.key : namedBy(facts, id)) ?? null;
  return {
    id: String(ip.id),
    what: `address ${ip.address}`,
    key,
    since: binding === undefined ? null : time(binding.boundAt),
  };
}

/** An entry that names the address's id, or plans to adopt the address, owns it before it is bound. */
function namedBy({ desired = [], plan }: StatusFacts, id: string): ResourceKey | undefined {
  const entry = desired.find((each) => isAddress(each.kind) && each.id === id);
  return entry?.key ?? plan?.operations.find(({ kind, target }) => isAddress(kind) && target === id)?.key;
}

function addressesMonthly(count: number, prices: PriceList | undefined): StatusView['idle_monthly'] {
  if (prices?.address === undefined) return null;
  return { currency: prices.currency ?? null, known: money(part(prices.address, count)) };
}

/** From the deletion of the server that held it; before that, or without one, from when it was bound. */
function idleSince(ip: Ip, facts: StatusFacts): string | null {
  const left = facts.past?.find((each) => {
    const { verb, kind, preimage } = each;
    const isDeletion = verb === 'delete' && factsOf(kind).container && partsOf(each).outcome === 'done';
    return isDeletion && preimage.addresses?.includes(ip.address);
  });
  const closedAt = left && partsOf(left).closedAt;
  return closedAt === undefined ? address(ip, facts).since : time(closedAt);
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}
