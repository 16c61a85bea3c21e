import { networkObject } from '../core/claims.ts';
import { namedAddress } from '../core/desired.ts';
import { keyStatusesOf } from '../core/key-status.ts';
import { namesakeOf, type ResourceKey, takeApart } from '../core/keys.ts';
import { factsOf, isAddress } from '../core/kind-facts.ts';
import type { Blocked } from '../core/plan.ts';
import { grouped } from '../core/world.ts';
import { entriesIn, knownIn, type ProjectFacts, timeOrNull } from './facts.ts';
import type { ProjectView, ResourceView } from './project-view.ts';

const network = networkObject('').kind;

interface Beside {
  readonly blocked: readonly Blocked[];
  readonly addresses: ProjectView['addresses'];
}

/** Each resource that the spec declares or the state binds, in the order of their keys. */
export function resourcesOf(facts: ProjectFacts, beside: Beside): readonly ResourceView[] {
  const { world, plan, inFlight = [], refreshedAt } = facts;
  const { bindings, intents } = knownIn(facts);
  const entries = new Map(entriesIn(facts).map((each) => [each.key, each]));
  const bound = new Map(bindings.map((each) => [each.key, each]));
  const keys = [...new Set([...entries.keys(), ...bound.keys()])].sort();
  const idOf = (key: ResourceKey) =>
    bound.get(key)?.id ?? entries.get(key)?.id ?? world?.observed.get(key)?.id;
  const kindOf = (key: ResourceKey) => bound.get(key)?.kind ?? entries.get(key)?.kind ?? takeApart(key).kind;
  const observedAt = timeOrNull(refreshedAt);
  const running = new Set(inFlight.map(({ key }) => key));
  const statusOfKey = keyStatusesOf({
    ...{ bindings, intents, plan, blocked: beside.blocked },
    observing: facts.daemon?.mode === 'observe',
  });
  const statusOf = (key: ResourceKey): ResourceView['standing'] => {
    if (entries.get(key)?.managed === false) return 'unknown';
    if (running.has(key)) return 'in_flight';
    const standing = statusOfKey(key);
    if (standing !== 'converged' || !isAddress(kindOf(key))) return standing;
    // The address of a server comes with the server and has no operation.
    const id = idOf(key);
    if (id === undefined) {
      const { parent } = takeApart(key);
      const server = parent === undefined ? standing : statusOfKey(parent);
      return server === 'blocked' || server === 'waiting' ? 'waiting' : 'pending';
    }
    // An address that was bound after the refresh is not in its list.
    const isSeen = (bound.get(key)?.boundAt ?? 0) < (refreshedAt ?? 0);
    const isGone = isSeen && beside.addresses?.every((each) => each.id !== id);
    return isGone ? 'differs' : standing;
  };
  const creations = new Map(intents.flatMap((each) => (each.verb === 'create' ? [[each.key, each]] : [])));
  const presenceOf = (key: ResourceKey): ResourceView['presence'] => {
    if (idOf(key) !== undefined) return 'known';
    const phase = creations.get(key)?.phase;
    if (phase === undefined) return 'not_created';
    return phase === 'blocked' || phase === 'unknown' ? 'unconfirmed' : 'being_created';
  };
  const lookup = { idOf, kindOf, addresses: beside.addresses };
  const detailOf = detailsIn(facts, lookup);
  const linkedTo = linksIn(facts, keys, lookup);
  const named = new Map(beside.addresses?.map(({ key, address }) => [key, address]));
  const addressesOf = grouped((beside.addresses ?? []).map(({ server_id, address }) => [server_id, address]));
  return keys.map((key) => {
    const kind = kindOf(key);
    const [entry, binding] = [entries.get(key), bound.get(key)];
    const identity = binding?.identity ?? {};
    const id = idOf(key);
    const own = factsOf(kind).container
      ? beside.addresses === null
        ? identity.ipv4
        : addressesOf.get(id ?? '')
      : isAddress(kind)
        ? (identity.address ?? named.get(key))
        : undefined;
    return {
      key,
      kind,
      id: id ?? null,
      standing: statusOf(key),
      presence: presenceOf(key),
      managed: entry?.managed !== false,
      protect: binding?.protect ?? entry?.protect ?? false,
      tainted: binding?.tainted ?? null,
      identity,
      detail: detailOf(key),
      addresses: own === undefined ? [] : [own].flat(),
      exposed_since: timeOrNull(facts.exposedSince?.get(key)),
      linked: linkedTo(key),
      bound_at: timeOrNull(binding?.boundAt),
      observed_at: observedAt,
    };
  });
}

function detailsIn({ offer, world }: ProjectFacts, { idOf, kindOf }: Lookup) {
  const entries = new Map(offer?.desired.resources.map(({ key, value }) => [key, value]));
  const ranges = new Map(world?.networks.map(({ id, cidr }) => [String(id), cidr]));
  return (key: ResourceKey): string | null => {
    const entry = entries.get(key);
    const range = kindOf(key) === network ? ranges.get(idOf(key) ?? '') : undefined;
    const declared = entry?.server_type ?? entry?.cidr;
    return range ?? (declared === undefined ? null : String(declared));
  };
}

interface Lookup {
  readonly idOf: (key: ResourceKey) => string | undefined;
  readonly kindOf: (key: ResourceKey) => ResourceView['kind'];
  readonly addresses: ProjectView['addresses'];
}

/** The networks and addresses of each server: by the reads, by the state, and by its entry. */
function linksIn(
  { offer, world }: ProjectFacts,
  keys: readonly ResourceKey[],
  { idOf, kindOf, addresses }: Lookup,
) {
  const live = new Set(addresses?.flatMap(({ key }) => key ?? []));
  const ofNetworks = new Map(
    keys.flatMap((key) => {
      const id = kindOf(key) === network ? idOf(key) : undefined;
      return id === undefined ? [] : [[id, key] as const];
    }),
  );
  const parts = keys.flatMap((key): (readonly [ResourceKey, ResourceKey])[] => {
    const kind = kindOf(key);
    if (isAddress(kind) ? live.has(key) : factsOf(kind).namedAfter === undefined) return [];
    const parsed = takeApart(key);
    const { parent } = parsed;
    if (parent === undefined) return [];
    if (isAddress(kind)) return [[parent, key]];
    const namesake = namesakeOf(parsed);
    return namesake === undefined || idOf(key) === undefined ? [] : [[parent, namesake]];
  });
  const seen = keys.flatMap((key) =>
    (world?.observed.get(key)?.interfaces ?? []).flatMap(({ network_id: id }) => {
      const found = id === null ? undefined : ofNetworks.get(String(id));
      return found === undefined ? [] : [[key, found] as const];
    }),
  );
  const attached = (addresses ?? []).flatMap(({ server, key }) =>
    server === null || key === null ? [] : [[server, key] as const],
  );
  const named = (offer?.desired.resources ?? []).flatMap(({ key, value }) => {
    const address = namedAddress(value);
    return address === undefined ? [] : [[key, address] as const];
  });
  const links = grouped([...parts, ...seen, ...attached, ...named]);
  return (key: ResourceKey) => {
    const linked = links.get(key);
    return linked === undefined ? [] : [...new Set(linked)];
  };
}
