import { addressObject } from '../../core/claims.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { oncePer } from '../../core/once.ts';
import type { Ip } from '../../core/resources.ts';
import { type Unattached, unattached } from '../../engine/claims/unattached.ts';
import type { ProjectFacts } from './facts.ts';

/** The exposed servers by the last plan. */
export function exposedServers({ plan }: Pick<ProjectFacts, 'plan'>): readonly ResourceKey[] {
  return (plan?.warnings ?? []).flatMap(({ code, key }) => (code === 'exposed' && key !== null ? [key] : []));
}

/** The observed and recorded side of a project, without its plan. */
type Owned = Pick<ProjectFacts, 'world' | 'known'>;

/** Addresses that are billed and attached to nothing; none before the first refresh. */
export const unattachedAddresses = oncePer(({ world, known }: Owned): Unattached => {
  const { bindings = [], intents = [], claims = [] } = known ?? {};
  const { idle, unconfirmed } = unattached(world?.ips ?? [], { bindings, intents, claims });
  // An entry that names an id is about that address before the two are bound.
  const keyOf = ({ id }: Ip) => world?.keyOf(addressObject(id)) ?? null;
  return { idle: idle.map((each) => ({ ...each, key: each.key ?? keyOf(each.ip) })), unconfirmed };
});

/** Addresses that are billed although no entry of the file asks for them, or is known to. */
export function leakingAddresses(owned: Owned): Unattached['idle'] {
  const { idle, unconfirmed } = unattachedAddresses(owned);
  return [...idle.filter(({ key }) => key === null), ...unconfirmed];
}

/** Whether anything is billed although no entry of the file asks for it. */
export function isLeaking(owned: Owned): boolean {
  return leakingAddresses(owned).length > 0 || (owned.known?.leftBackups ?? []).length > 0;
}
