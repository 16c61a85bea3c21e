import { objectName } from '../../core/claims.ts';
import { partsOf } from '../../core/intent.ts';
import { nounOf } from '../../core/keys.ts';
import type { Intent, StateChange } from '../../core/state.ts';
import { attributionOf } from '../claims/claims.ts';
import { isAnother, ownerOf } from '../claims/owner.ts';
import type { Run } from '../run.ts';

/** The answer to a send that this state never made. */
export function isReplay(intent: Intent): boolean {
  return partsOf(intent).answer?.to === 'unknown_send';
}

/**
 * The reason why a creation must not bind the resource that a replayed answer named: the resource is ignored, or
 * another entry is bound to it. Another file of the project may use the same key. Returns `undefined` if the creation
 * may bind the resource.
 */
export function notForUs(run: Run, intent: Intent, bound: readonly StateChange[]): string | undefined {
  const [own] = bound.flatMap((change) => (change.type === 'bind' ? [change.binding] : []));
  const to = partsOf(intent).answer?.to ?? 'this_send';
  if (intent.verb !== 'create' || own === undefined || to === 'this_send') return undefined;
  const { kind, id } = own;
  const noun = `${nounOf(kind)} ${own.identity.address ?? id}`;
  const owner = isReplay(intent) ? ownerOf(run, own) : undefined;
  if (owner !== undefined && !isAnother(owner, own)) return `${noun} is bound to ${owner.key}`;
  if (kind !== 'server' && kind !== 'ip') return undefined;
  const claim = run.claims.get(objectName(own));
  const isSame =
    kind === 'server'
      ? attributionOf(run).server(id).is === claim?.holder.is
      : claim?.identity.address === own.identity.address;
  if (claim !== undefined && isSame && claim.holder.is !== 'found') return `${noun} is ignored`;
  return isReplay(intent) && run.desired.settings.unmanaged === 'ignore'
    ? `\`unmanaged: ignore\` ignores ${noun}`
    : undefined;
}
