import { type KeyStatus, keyStatusOf } from '../../core/key-status.ts';
import { type ResourceKey, takeApart } from '../../core/keys.ts';
import { isAddress } from '../../core/kind-facts.ts';
import type { ProjectFacts } from '../project/facts.ts';

/** The standing of the resource with this key, by the last plan and the operations in flight. */
export function statusNow(facts: ProjectFacts, key: ResourceKey): KeyStatus {
  const { plan, inFlight, known } = facts;
  if (inFlight.some((each) => each.key === key)) return 'in_flight';
  const standing = keyStatusOf(key, { bindings: [], intents: [], ...known, plan });
  // A server's own address comes with its server and is no operation of its own.
  const isMissing = isAddress(takeApart(key).kind) && idOf(facts, key) === undefined;
  return standing === 'converged' && isMissing ? 'unknown' : standing;
}

export function idOf(facts: ProjectFacts, key: ResourceKey): string | undefined {
  return facts.world?.idOf(key) ?? facts.known?.bindings.find((each) => each.key === key)?.id;
}

/** A standing in words. */
export function statusText(standing: KeyStatus): string {
  // Includes an operation that is still queued, so its write may not be open yet.
  if (standing === 'in_flight') return 'in progress';
  return standing === 'undeclared' ? 'left the file' : standing;
}
