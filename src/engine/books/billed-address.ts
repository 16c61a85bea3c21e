import { parseKey, type ResourceKey } from '../../core/keys.ts';
import type { Ip } from '../../core/resources.ts';
import type { Binding, Intent } from '../../core/state.ts';

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

/** What a purchase that is not settled may have made is in doubt, and not somebody else's. */
export function billedAddress(
  ip: Ip,
  { bindings, intents }: { readonly bindings: readonly Binding[]; readonly intents: readonly Intent[] },
): BilledAddress {
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
