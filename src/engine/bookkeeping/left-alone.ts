import type { Ip } from '../../core/resources.ts';
import type { Binding } from '../../core/state.ts';
import { isIgnored, nameOf, nobody, type Vouched } from '../../plan/strangers.ts';

/** A server, with the addresses that it holds now, or an address by itself. */
export interface LeftAlone {
  readonly kind: 'server' | 'ip';
  readonly id: string;
  readonly addresses: readonly string[];
}

interface Seen {
  readonly bindings: readonly Pick<Binding, 'kind' | 'id'>[];
  /** Left out where the API was not looked at. */
  readonly ips?: readonly Ip[] | undefined;
}

/** What is known to be somebody else's, but for addresses that are told as idle: it is in nobody's way, and billed. */
export function leftAlone(vouched: Vouched = nobody, { bindings, ips = [] }: Seen): readonly LeftAlone[] {
  const bound = new Set(bindings.map(({ kind, id }) => `${kind} ${id}`));
  const servers = new Set(vouched.servers.filter((id) => !bound.has(`server ${id}`)));
  const live = new Map(ips.map((ip) => [nameOf(ip), ip]));
  const isTold = (name: string) => {
    const ip = live.get(name);
    if (ip === undefined) return false;
    return ip.server_id === null ? !isIgnored(ip, vouched) : servers.has(ip.server_id);
  };
  return [
    ...[...servers].map((id) => ({
      kind: 'server' as const,
      id: String(id),
      addresses: ips.filter(({ server_id }) => server_id === id).map(({ address }) => address),
    })),
    ...vouched.addresses
      .filter((name) => !isTold(name))
      .map((name) => {
        const [id = '', address = ''] = name.split(' ');
        return { kind: 'ip' as const, id, addresses: [address] };
      })
      .filter(({ id }) => !bound.has(`ip ${id}`)),
  ];
}

/** `server 2001 (203.0.113.10)`, `address 203.0.113.11`. */
export function leftAloneName({ kind, id, addresses }: LeftAlone): string {
  const held = addresses.join(', ');
  if (kind === 'ip') return `address ${held}`;
  return `server ${id}${held === '' ? '' : ` (${held})`}`;
}
