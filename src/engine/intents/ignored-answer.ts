import { nounOf } from '../../core/keys.ts';
import type { Intent, StateChange } from '../../core/state.ts';
import { vouchedServers } from '../../plan/strangers.ts';
import { vouchedBy } from '../bookkeeping/vouched-note.ts';
import type { Run } from '../run.ts';
import { isAnother, ownerOf } from './owner.ts';

/** The answer to a send that this state never made. */
export function isReplay({ facts }: Pick<Intent, 'facts'>): boolean {
  const { replay, own } = (facts ?? {}) as { readonly replay?: boolean; readonly own?: boolean };
  return replay === true && own !== true;
}

/**
 * Why a creation must not bind the resource that a replayed answer named, or `undefined` where it may: the resource is
 * ignored, or another entry is bound to it. Another file of the project may use the same key.
 */
export async function notForUs(
  run: Run,
  intent: Intent,
  bound: readonly StateChange[],
): Promise<string | undefined> {
  const [own] = bound.flatMap((change) => (change.type === 'bind' ? [change.binding] : []));
  const { replay } = (intent.facts ?? {}) as { readonly replay?: boolean };
  if (intent.verb !== 'create' || own === undefined || replay !== true) return undefined;
  const { kind, id } = own;
  const noun = `${nounOf(kind)} ${own.identity.address ?? id}`;
  const owner = isReplay(intent) ? ownerOf(run, own) : undefined;
  if (owner !== undefined && !isAnother(owner, own)) return `${noun} is bound to ${owner.key}`;
  if (kind !== 'server' && kind !== 'ip') return undefined;
  const vouched = await vouchedBy(run.deps.store);
  const isIgnored =
    kind === 'server'
      ? vouched !== undefined && vouchedServers(run.world, vouched)(Number(id))
      : vouched?.addresses.includes(`${id} ${own.identity.address}`) === true;
  if (isIgnored) return `${noun} is ignored`;
  return isReplay(intent) && run.desired.settings.unmanaged === 'ignore'
    ? `\`unmanaged: ignore\` ignores ${noun}`
    : undefined;
}
