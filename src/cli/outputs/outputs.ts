import { appliedServer } from '../../core/applied.ts';
import type { DesiredResource } from '../../core/desired.ts';
import { type ResourceKey, takeApart } from '../../core/keys.ts';
import { type Collection, collections, factsOf, type KindName } from '../../core/kind-facts.ts';
import type { Ip, Network, NetworkInterface } from '../../core/resources.ts';
import type { Binding } from '../../core/state.ts';
import { timeOrNull } from '../../view/facts.ts';

/** The bindings of the state, and the live values of the bound resources. Without `live` only the state is used. */
export interface OutputFacts {
  readonly projectId: number | null;
  readonly declared: readonly DesiredResource[];
  readonly bindings: readonly Binding[];
  readonly live?: LiveFacts;
}

export interface LiveFacts {
  /** Wall ms. */
  readonly at: number;
  readonly ips: readonly Ip[];
  readonly networks: readonly Network[];
  /** By the id of the server; a server that the API does not find is not in it. */
  readonly interfaces: ReadonlyMap<string, readonly NetworkInterface[]>;
}

interface Output {
  readonly key: ResourceKey;
  readonly id: string;
}

export interface ServerOutput extends Output {
  readonly name: string;
  readonly public_ipv4: string | null;
  /** By the network's name in the spec. */
  readonly network_interfaces: Readonly<
    Record<string, { readonly id: string; readonly addresses: readonly string[] }>
  >;
}

/** The values of a kind in addition to its key and id. */
interface Detailed {
  readonly servers: Readonly<Record<string, ServerOutput>>;
  readonly ips: Readonly<Record<string, Output & { readonly address: string | null }>>;
  readonly networks: Readonly<
    Record<string, Output & { readonly name: string; readonly cidr: string | null }>
  >;
}

/** The public result of `vdcsync output`: every managed resource by its name in the spec. */
export type Outputs = {
  readonly format_version: 1;
  readonly project_id: number | null;
  readonly observed_at: string | null;
} & Detailed & {
    readonly [Other in Exclude<Collection, keyof Detailed>]: Readonly<Record<string, Output>>;
  };

/** With `key`, that resource alone. Pure. */
export function outputsOf(facts: OutputFacts, key?: string): Outputs {
  const bound = facts.bindings.filter((each) => key === undefined || each.key === key);
  const of = (collection: Collection) =>
    bound
      .map((each) => ({ each, ...takeApart(each.key) }))
      .filter(
        ({ each, kind, parent }) =>
          parent === undefined && factsOf(kind).collection === collection && isShown(each, facts),
      )
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ each, kind, name }) => [
        name,
        { key: each.key, id: each.id, ...details[kind]?.(each, name, facts) },
      ]);
  const outputs = collections.map((collection) => [collection, Object.fromEntries(of(collection))]);
  return {
    format_version: 1,
    project_id: facts.projectId,
    observed_at: timeOrNull(facts.live?.at),
    ...(Object.fromEntries(outputs) as Pick<Outputs, Collection>),
  };
}

/** A server that is gone has no output. */
export function isShown({ kind, id }: Binding, { live }: Pick<OutputFacts, 'live'>): boolean {
  return !factsOf(kind).container || live === undefined || live.interfaces.has(id);
}

/** The values of a kind in addition to its key and id. */
const details: Partial<Record<KindName, (binding: Binding, name: string, facts: OutputFacts) => object>> = {
  server: serverOutput,
  ip: (binding, _name, facts) => ({ address: addressOf(binding, facts) }),
  network: networkOf,
};

function serverOutput(binding: Binding, name: string, facts: OutputFacts): Omit<ServerOutput, keyof Output> {
  const live = facts.live?.interfaces.get(binding.id) ?? [];
  return {
    name: appliedServer(binding).name ?? binding.identity.name ?? name,
    public_ipv4: serverIpv4(binding, facts),
    network_interfaces: Object.fromEntries(
      interfacesOf(binding, facts)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([network, id]) => [
          network,
          { id, addresses: live.find((each) => each.id === id)?.addresses ?? [] },
        ]),
    ),
  };
}

/** The network interfaces of a server by their network: those that are bound, and those that an adopted server had before. */
function interfacesOf(server: Binding, facts: OutputFacts): [network: string, id: string][] {
  const below = `${server.key}.network_interfaces.`;
  const bound = facts.bindings.filter(({ key, parentId }) => key.startsWith(below) && parentId === server.id);
  const live = facts.live?.interfaces.get(server.id) ?? [];
  const declared = facts.declared.flatMap(({ key }): [string, string][] => {
    if (!key.startsWith(below)) return [];
    const network = key.slice(below.length);
    const id = networkId(network, facts);
    const there = live.find(({ network_id }) => network_id !== null && String(network_id) === id);
    return there === undefined ? [] : [[network, there.id]];
  });
  return [...new Map([...declared, ...bound.map(({ key, id }) => [key.slice(below.length), id] as const)])];
}

/** The id of a network of the spec, which may be unmanaged and so bound to no key. */
function networkId(name: string, { bindings, declared, live }: OutputFacts): string | undefined {
  const key = `networks.${name}`;
  const entry = declared.find((each) => each.key === key);
  const known = bindings.find((each) => each.key === key)?.id ?? entry?.id;
  if (known !== undefined) return known;
  const shown = live?.networks.find((each) => each.name === (entry?.value.name ?? name));
  return shown === undefined ? undefined : String(shown.id);
}

function addressOf({ id, identity }: Binding, { live }: OutputFacts): string | null {
  return live?.ips.find((each) => String(each.id) === id)?.address ?? identity.address ?? null;
}

function networkOf({ id, identity }: Binding, name: string, { live }: OutputFacts) {
  const shown = live?.networks.find((each) => String(each.id) === id);
  return { name: shown?.name ?? identity.name ?? name, cidr: shown?.cidr ?? identity.cidr ?? null };
}

/** The address that the API calls primary; from the state, the one that the server was recognized by or came with. */
function serverIpv4(server: Binding, { bindings, live }: OutputFacts): string | null {
  if (live === undefined) {
    const own = bindings.find(({ key }) => key === `${server.key}.public_ipv4`);
    return server.identity.ipv4 ?? own?.identity.address ?? null;
  }
  const attached = live.ips.filter(({ server_id }) => String(server_id) === server.id);
  return (attached.find(({ primary }) => primary) ?? attached[0])?.address ?? null;
}
