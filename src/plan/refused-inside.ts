import { partsOf } from '../core/intent.ts';
import { digestOf } from '../core/json.ts';
import { type ResourceKey, takeApart } from '../core/keys.ts';
import type { Subject } from '../core/kind.ts';
import { factsOf } from '../core/kind-facts.ts';
import { settleFirst } from '../core/remedy.ts';
import type { Intent } from '../core/state.ts';
import type { Draft } from './draft.ts';
import type { GuardInput, Objection } from './objections.ts';
import { isOvertaken } from './open-writes.ts';

type Input = Pick<GuardInput, 'world' | 'kinds' | 'openIntents'>;

/** A server that is created, or replaced, would be without the part that the API refuses, such as its firewall. */
export function refusedInside({ subject, diff }: Draft, input: Input): Objection | undefined {
  const { verdict } = diff.verdict;
  if (!factsOf(subject.kind).container || (verdict !== 'replace' && verdict !== 'create')) return undefined;
  const refusal = refusalInside(subject.key, input);
  if (refusal === undefined) return undefined;
  return {
    reason: `waits for ${refusal.key}: the API refuses its values, so the new server would lack it`,
    remedies: settleFirst(refusal.key),
  };
}

/**
 * The refusal that a part of the server would get again: of that part, or of a part of another server with the same
 * entry.
 */
export function refusalInside(server: ResourceKey, { world, kinds, openIntents }: Input): Intent | undefined {
  const refusals = openIntents.filter(
    (each) => partsOf(each).blocked?.until === 'file' && factsOf(each.kind).repeats !== true,
  );
  if (refusals.length === 0) return undefined;
  const parts = world.childrenOf(server).filter(({ desired, kind }) => {
    // A refusal depends on the entry alone only if the entry names no other resource.
    return desired !== undefined && (kinds.get(kind)?.entry.references?.(desired.value) ?? []).length === 0;
  });
  const isSame = ({ kind, desired }: Subject, refusal: Intent) =>
    kind === refusal.kind && digestOf(desired?.value ?? null) === refusal.basis;
  return refusals.find((refusal) => {
    if (takeApart(refusal.key).parent === server) return !isOvertaken(refusal, world);
    return parts.some((part) => isSame(part, refusal));
  });
}
