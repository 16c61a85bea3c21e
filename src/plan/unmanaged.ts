import { appliedServer } from '../core/applied.ts';
import {
  type Attributed,
  type Attribution,
  cameSince,
  countedBeside,
  type ServerInterfaces,
  type Unmanaged,
} from '../core/attribute.ts';
import {
  addressObject,
  type Claim,
  type HeldClaim,
  type Holder,
  isForeign,
  serverObject,
} from '../core/claims.ts';
import { type DesiredResource, namedAddress, wantedAddress } from '../core/desired.ts';
import { partsOf } from '../core/intent.ts';
import type { ResourceKey } from '../core/keys.ts';
import type { Subject, World } from '../core/kind.ts';
import { factsOf, isAddress } from '../core/kind-facts.ts';
import { type CommandStep, command, type Remedy } from '../core/remedy.ts';
import type { Ip } from '../core/resources.ts';
import type { Binding, Intent } from '../core/state.ts';

/** The holder of each object in the project, and the objects that no list shows. */
export interface Register extends Attribution {
  readonly claims: readonly Claim[];
  /** The state has no baseline: every unmanaged resource may be older than the state. */
  readonly isNew: boolean;
  readonly unlisted?: Unlisted | undefined;
  /** The keys of the line of an entry, with its own key. */
  line(entry: Pick<DesiredResource, 'key' | 'moved'>): ReadonlySet<ResourceKey>;
  /** The object that the entry of the key takes back from the next plan on. */
  held(key: ResourceKey): HeldClaim | undefined;
  /** Creations that the operator has declared absent. */
  readonly declaredAbsent: readonly Intent[];
  /** The entries whose idempotency key was answered with a resource of another entry, or an ignored one. */
  readonly answeredElsewhere: ReadonlyMap<ResourceKey, Binding | Claim>;
}

/** Servers that only the count of a network shows. */
export interface Unlisted {
  readonly network: string;
  readonly servers: number;
}

/** The unmanaged resources that an entry of the kind may describe. */
export function unmanagedFor(kind: Subject['kind'], register: Register, world: World): Unmanaged {
  const { servers, addresses } = register.unmanaged;
  return {
    servers,
    addresses: isAddress(kind) ? [...addresses, ...heldAddresses(register, world)] : addresses,
  };
}

/**
 * Addresses of this spec's servers that no key is bound to, and that an entry of `ips` may have bought: a server
 * takes this kind of address if its entry names the address, or with `{reuse: true}`. The state has observed every
 * address that a server got by a creation that only this state can have sent.
 */
export function heldAddresses(register: Register, world: World): readonly Ip[] {
  return world.serverSubjects().flatMap(({ desired, binding }) => {
    const { mayBeOlder, namesAddress } = appliedServer(binding);
    const wanted = wantedAddress(desired?.value);
    // The entry of an older server may have named another address before.
    const mayBe = mayBeOlder ? wanted.new === undefined : wanted.ip !== undefined && namesAddress;
    // `managed: false` of a server says nothing about an address that an earlier state bought for `ips`.
    const isLeft = register.isNew && desired?.managed === false;
    const its = mayBe || isLeft ? world.ipsOf(binding?.id ?? desired?.id ?? '') : [];
    const holders: readonly Attributed['is'][] = isLeft ? ['managed', 'released'] : ['managed'];
    return its.filter((ip) => world.isUnbound(ip) && holders.includes(register.address(ip).is));
  });
}

/** An address that is claimed separately, and not with the server that it is attached to. */
export function isClaimedAlone(world: World, { address, server }: Register, id: string): boolean {
  const ip = world.ip(id);
  if (ip === undefined || !isForeign(address(ip))) return false;
  return !isForeign(server(String(ip.server_id)));
}

/** The operator knows about the resource: vdcsync does not report its cost any more. */
export function isQuiet(holder: Attributed | Holder): boolean {
  return holder.is === 'ignored' && holder.by === 'operator';
}

/** The network interfaces of the servers of this spec, from the last refresh. */
export function observedInterfaces({ observed, serverSubjects }: World): ServerInterfaces {
  return new Map(
    serverSubjects().flatMap(({ key }) => {
      const { id, interfaces } = observed.get(key) ?? {};
      return id === undefined || interfaces === undefined ? [] : [[id, interfaces] as const];
    }),
  );
}

/**
 * The network with more attached servers than servers with a known network interface there. The other servers have no
 * public address, so no list shows them. @source API §2
 *
 * @param inside the network interfaces of each known server, by its id
 */
export function unlisted(world: World, inside: ServerInterfaces): Unlisted | undefined {
  if (world.listsServers()) return undefined;
  const more = world.networks
    .map((network) => ({ network: network.name, servers: countedBeside(network, inside) }))
    .sort((a, b) => b.servers - a.servers);
  return more.find(({ servers }) => servers > 0);
}

export function isNone({ servers, addresses }: Unmanaged): boolean {
  return servers.length + addresses.length === 0;
}

/** For a message: `servers 2001 (203.0.113.10) and 2002, and address 203.0.113.11`. */
export function described(found: Unmanaged): string {
  const { servers, addresses } = found;
  const held = (id: number) => addresses.filter(({ server_id }) => server_id === id);
  const free = addresses.filter(isBeside(found));
  const named = servers.map((id) => {
    const its = held(id).map(({ address }) => address);
    return `${id}${its.length === 0 ? '' : ` (${its.join(', ')})`}`;
  });
  const groups = [
    ...counted('server', 'servers', named),
    ...counted(
      'address',
      'addresses',
      free.map(({ address }) => address),
    ),
  ];
  return groups.join(named.length > 1 || free.length > 1 ? ', and ' : ' and ');
}

function counted(one: string, many: string, names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const [last, ...others] = [...names].reverse();
  if (others.length === 0) return [`${one} ${last}`];
  return [`${many} ${others.reverse().join(', ')} and ${last}`];
}

/** For a message: the creations that were declared absent and may have created one of the resources. */
export function perhapsAbsent({ servers, addresses }: Unmanaged, declared: readonly Intent[]): string {
  const texts = declared.flatMap((intent) => {
    const { key, kind, preimage } = intent;
    const { closedAt = 0 } = partsOf(intent);
    const came = factsOf(kind).container
      ? servers.map(String).filter((id) => cameSince(preimage, serverObject(id)))
      : addresses.filter(({ id }) => cameSince(preimage, addressObject(id))).map(({ address }) => address);
    const date = new Date(closedAt).toISOString().slice(0, 10);
    return came.length === 0
      ? []
      : [`${came.join(' or ')} may be ${key}, which was declared absent on ${date} (\`resolve --absent\`)`];
  });
  return texts.join('; ');
}

/** The command already names all resources. */
const mostNamed = 3;

/** When the command of {@link ignoring} is right. */
export function notOurs(found: Unmanaged): string {
  const count = found.servers.length + found.addresses.filter(isBeside(found)).length;
  const which = count > mostNamed ? `these ${count} resources` : described(found);
  return `if ${which} ${count === 1 ? 'does' : 'do'} not belong to this spec`;
}

/** An address that none of the servers has. */
function isBeside({ servers }: Unmanaged): (ip: Unmanaged['addresses'][number]) => boolean {
  return ({ server_id }) => !servers.some((id) => id === server_id);
}

/** The command that marks all of them as not managed by this spec. */
export function ignoring(found: Unmanaged): Remedy & CommandStep {
  const free = found.addresses.filter(isBeside(found));
  return command('ignore', [...found.servers, ...free.map(({ address }) => address)]);
}

/**
 * The one unmanaged object that each entry may describe. None if several objects fit, or if
 * one object fits several entries: an operator must not copy a wrong guess from a message.
 */
export function matches(
  buyers: readonly Subject[],
  register: Register,
  world: World,
): ReadonlyMap<ResourceKey, string> {
  const options = buyers.map((subject) => ({
    subject,
    ids: candidates(subject, unmanagedFor(subject.kind, register, world), world),
  }));
  return new Map(
    options.flatMap(({ subject, ids: [only, another] }) => {
      if (only === undefined || another !== undefined) return [];
      const rivals = options.filter((each) => each.subject.kind === subject.kind && each.ids.includes(only));
      return rivals.length > 1 ? [] : [[subject.key, only]];
    }),
  );
}

function candidates({ kind, desired }: Subject, { servers, addresses }: Unmanaged, world: World): string[] {
  if (isAddress(kind)) return addresses.map(({ id }) => String(id));
  const entry = desired?.value;
  const listed = new Map<number, string>((world.servers ?? []).map(({ id, name }) => [id, name.trim()]));
  const named = servers.filter((id) => listed.get(id) === entry?.name);
  const wanted = namedAddress(entry);
  const own = world.ip((wanted && world.idOf(wanted)) ?? '');
  const holds = (id: number) => world.ipsOf(String(id)).length > 0;
  const fitting =
    named.length > 0
      ? named
      : servers.filter((id) =>
          own === undefined ? holds(id) === (entry?.public_ipv4 !== undefined) : own.server_id === id,
        );
  return fitting.map(String);
}
