import { type Claim, foreignClaims, serverObject } from '../core/claims.ts';
import { nounOf } from '../core/keys.ts';
import { factsOf } from '../core/kind-facts.ts';
import type { Ip } from '../core/resources.ts';
import { isQuiet } from '../plan/unmanaged.ts';

/** A server that is not managed, with the addresses that it holds now, or an address without a server. */
export interface IgnoredObject {
  readonly kind: Claim['kind'];
  readonly id: string;
  readonly addresses: readonly string[];
}

/**
 * The ignored and released objects, except for addresses that are reported as idle. `ips` is empty if the API was not
 * read.
 */
export function ignoredObjects(claims: readonly Claim[], ips: readonly Ip[] = []): readonly IgnoredObject[] {
  const foreign = foreignClaims(claims);
  const isServer = ({ kind }: Claim) => factsOf(kind).container === true;
  const servers = new Set(foreign.filter(isServer).map(({ id }) => Number(id)));
  const isReported = ({ id, identity, holder }: Claim) => {
    const live = ips.find((ip) => String(ip.id) === id && ip.address === identity.address);
    if (live === undefined) return false;
    return live.server_id === null ? !isQuiet(holder) : servers.has(live.server_id);
  };
  return [
    ...[...servers].map((id) => ({
      ...serverObject(id),
      addresses: ips.filter(({ server_id }) => server_id === id).map(({ address }) => address),
    })),
    ...foreign
      .filter((claim) => !isServer(claim) && !isReported(claim))
      .map(({ kind, id, identity: { address } }) => ({
        ...{ kind, id },
        addresses: address === undefined ? [] : [address],
      })),
  ];
}

/** `server 2001 (203.0.113.10)`, `address 203.0.113.11`. */
export function ignoredName({ kind, id, addresses }: IgnoredObject): string {
  const held = addresses.join(', ');
  if (!factsOf(kind).container) return `${nounOf(kind)} ${held}`;
  return `${nounOf(kind)} ${id}${held === '' ? '' : ` (${held})`}`;
}
