import { type Attribution, attribute, type ClaimRecords } from '../../core/attribute.ts';
import { type Claim, foreignClaims, objectName, serverObject } from '../../core/claims.ts';
import { nounOf, type ResourceKey, takeApart } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Ip } from '../../core/resources.ts';
import type { Binding } from '../../core/state.ts';
import { isQuiet } from '../../plan/unmanaged.ts';

/** The content of a state. */
export type StateRecords = Pick<ClaimRecords, 'claims' | 'intents'> & {
  readonly bindings: readonly Binding[];
};

/** The holders of the project's addresses, from the state alone. */
export function addressHolders(ips: readonly Ip[], records: StateRecords): Attribution {
  const bound = new Map(records.bindings.map((binding) => [objectName(binding), binding.key]));
  return attribute({ ips, keyOf: (object) => bound.get(objectName(object)) }, records);
}

/**
 * An address, and the key that is bound to it. An open write that created the address, or may have, counts as well.
 */
export interface BilledAddress {
  readonly ip: Ip;
  readonly key: ResourceKey | null;
}

/** Addresses that are attached to no server, cost money, and are not ignored by the operator. */
export interface Unattached {
  readonly idle: readonly BilledAddress[];
  /** Not idle: an unconfirmed purchase may have made it for use. */
  readonly unconfirmed: readonly BilledAddress[];
}

export function unattached(ips: readonly Ip[], records: StateRecords): Unattached {
  const { address } = addressHolders(ips, records);
  const free = ips
    .filter(({ server_id }) => server_id === null)
    .map((ip) => ({ ip, holder: address(ip) }))
    .filter(({ holder }) => !isQuiet(holder));
  const billed = free.map(({ ip, holder }) => {
    const key = 'key' in holder && factsOf(takeApart(holder.key).kind).knownBy ? holder.key : null;
    return { ip, key, isOpen: key !== null && holder.is === 'pending' && !holder.certain };
  });
  return { idle: billed.filter(({ isOpen }) => !isOpen), unconfirmed: billed.filter(({ isOpen }) => isOpen) };
}

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
