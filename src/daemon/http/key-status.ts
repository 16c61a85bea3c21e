import { type KeyStatus, keyStatusesOf } from '../../core/key-status.ts';
import { type ResourceKey, takeApart } from '../../core/keys.ts';
import { isAddress } from '../../core/kind-facts.ts';
import { oncePer } from '../../core/once.ts';
import type { ProjectFacts } from '../project/facts.ts';

/** The standing of the resource with this key, by the last plan and the operations in flight. */
export function statusNow(facts: ProjectFacts, key: ResourceKey): KeyStatus {
  const { running, statusOfKey } = indexOf(facts);
  if (running.has(key)) return 'in_flight';
  const standing = statusOfKey(key);
  // A server's own address comes with its server and is no operation of its own.
  const isMissing = isAddress(takeApart(key).kind) && idOf(facts, key) === undefined;
  return standing === 'converged' && isMissing ? 'unknown' : standing;
}

export function idOf(facts: ProjectFacts, key: ResourceKey): string | undefined {
  return facts.world?.idOf(key) ?? indexOf(facts).bindings.get(key)?.id;
}

const indexOf = oncePer(({ plan, inFlight, known }: ProjectFacts) => ({
  running: new Set(inFlight.map(({ key }) => key)),
  statusOfKey: keyStatusesOf({ bindings: [], intents: [], ...known, plan }),
  bindings: new Map(known?.bindings.map((each) => [each.key, each])),
}));

/** A standing in words. */
export function statusText(standing: KeyStatus): string {
  // Includes an operation that is still queued, so its write may not be open yet.
  if (standing === 'in_flight') return 'in progress';
  return standing === 'undeclared' ? 'left the file' : standing;
}
