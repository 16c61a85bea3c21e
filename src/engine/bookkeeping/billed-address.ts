import { parseKey, type ResourceKey } from '../../core/keys.ts';
import type { Ip } from '../../core/resources.ts';
import type { Binding, Intent } from '../../core/state.ts';
import { isIgnored, type Vouched } from '../../plan/strangers.ts';

/** Whose an address of the project is, as far as the state tells. */
export interface BilledAddress {
  readonly ip: Ip;
  /** What stands for it, or may: `null` where nothing of this file does. */
  readonly key: ResourceKey | null;
  /** A purchase that is not settled may have made it: nobody is to release it before. */
  readonly inDoubt: boolean;
  /** When the state first knew it, wall ms; `null` where it does not. */
  readonly boundAt: number | null;
}

/** What is attached to nothing, costs money, and was not said to be somebody else's. */
export interface Unattached {
  readonly idle: readonly BilledAddress[];
  /** Not idle: a purchase that is not settled may have made it for use. */
  readonly inDoubt: readonly BilledAddress[];
}

export function unattached(ips: readonly Ip[], vouched: Vouched | undefined, books: Books): Unattached {
  const free = ips
    .filter(({ server_id }) => server_id === null)
    .map((ip) => billedAddress(ip, books))
    .filter(({ ip, boundAt }) => boundAt !== null || !isIgnored(ip, vouched));
  return {
    idle: free.filter(({ inDoubt }) => !inDoubt),
    inDoubt: free.filter(({ inDoubt }) => inDoubt),
  };
}

interface Books {
  readonly bindings: readonly Binding[];
  readonly intents: readonly Intent[];
}

/** What a purchase that is not settled may have made is in doubt, and not somebody else's. */
export function billedAddress(ip: Ip, { bindings, intents }: Books): BilledAddress {
  const id = String(ip.id);
  const binding = bindings.find((each) => parseKey(each.key)?.kind === 'ip' && each.id === id);
  const open = intents.find(
    ({ kind, verb, resourceId, blocked }) =>
      kind === 'ip' && verb === 'create' && (resourceId === id || blocked?.candidates.includes(id)),
  );
  return {
    ip,
    key: binding?.key ?? open?.key ?? null,
    inDoubt: binding === undefined && open !== undefined && open.resourceId !== id,
    boundAt: binding?.boundAt ?? null,
  };
}
