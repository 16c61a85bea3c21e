import type { DesiredResource } from '../../core/desired.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { World } from '../../core/kind.ts';
import type { WriteRequest } from '../../core/ports.ts';
import type { Because, Intent, IntentOutcome, StateChange } from '../../core/state.ts';
import { isNone, unmanagedFor } from '../../plan/unmanaged.ts';
import { answeredCreation, registerOf } from '../claims/claims.ts';
import { incarnationsBeyond, usedUp } from '../claims/scope.ts';
import { answeredWithServer } from '../claims/unidentified.ts';
import { decided } from '../intents/ask-key.ts';
import { beginIntent, inWriteSlot, preimageOf } from '../intents/begin.ts';
import { close, conflicting, keyIsFresh, questionOf, unasked } from '../intents/endings.ts';
import { answerAtLast } from '../intents/held.ts';
import { requestOf, tryNextIncarnation, underFormerNames, withSubject } from '../intents/next-incarnation.ts';
import { idByEvidence, lifeOf, taskOf } from '../intents/not-there.ts';
import { isReservedElsewhere } from '../intents/probe-key.ts';
import { isReservation, reservedEnd } from '../intents/reserve-key.ts';
import { found } from '../intents/transfer.ts';
import type { Run } from '../run.ts';

/** The most incarnations and attempts of one key that are asked in one round. */
const mostKeys = 8;

/** `sent`: other requests than that of the entry, in turn. `ahead`, `later`: as of the beginning of a write. */
interface Asking {
  /** A bound resource of the kind would be deleted or replaced, and may be the one for which a key was reserved. */
  readonly isGoing?: boolean;
  readonly sent?: readonly WriteRequest[];
  readonly ahead?: number;
  readonly later?: number | undefined;
}

/** Whether a key of the resource holds the answer of a live resource, or may hold it. The keys are asked in turn until one is unused. */
export async function lookUp(
  run: Run,
  resource: DesiredResource,
  keys: readonly ResourceKey[],
  asking: Asking = {},
): Promise<boolean> {
  const reserved: ResourceKey[] = [];
  for (const key of keys) {
    // The end of an open write shows its resource.
    if (run.intents.has(key) && !isResumed(run, key)) return false;
    const held = await lookUpInTurn(run, key, resource, asking);
    // The next round asks the keys after these.
    if (held === 'next') return true;
    if (held === 'found') {
      await endReserved(run, reserved);
      return true;
    }
    if (held === 'reserved') reserved.push(key);
  }
  // A resource that lists show may be the one of the entry. The creation finds its key reserved again.
  if (!asking.isGoing && !isNone(unmanagedFor(resource.kind, await registerOf(run), run.world)))
    await endReserved(run, reserved);
  return false;
}

/** Asks the key, and those of its later attempts and incarnations. `next`: all of them are used. */
async function lookUpInTurn(...of: Parameters<typeof lookUpOne>): ReturnType<typeof lookUpOne> {
  for (let asked = 0; asked < mostKeys; asked++) {
    const held = await lookUpOne(...of);
    if (held !== 'next') return held;
  }
  return 'next';
}

/**
 * Another state has reserved the key, and has created a later resource of the entry under the key of the next incarnation,
 * if any. Otherwise the question remains open.
 */
async function lookUpAfter(
  run: Run,
  intent: Intent,
  resource: DesiredResource,
  { world, ahead }: { readonly world: World; readonly ahead: number },
): Promise<'found' | 'reserved'> {
  const { key, kind, request, preimage } = intent;
  await close(run, intent, reservedEnd);
  const next = await lookUpInTurn(run, key, resource, { ahead: ahead + 1 });
  if (next === 'found' || next === 'reserved') return next;
  if (run.intents.has(key)) return 'reserved';
  const operation = { key, kind, verb: 'create', changes: [] } as const;
  const begun = { world, recovers: resource.key, preimage, question: conflicting, numbered: intent };
  await beginIntent(run, operation, request, begun);
  return 'reserved';
}

/** The resource for which another state has reserved these keys is known, or will be. */
async function endReserved(run: Run, keys: readonly ResourceKey[]): Promise<void> {
  for (const key of keys) {
    const open = run.intents.get(key);
    if (open !== undefined) await close(run, open, reservedEnd);
  }
}

async function lookUpOne(
  run: Run,
  key: ResourceKey,
  resource: DesiredResource,
  { sent, ahead = 0, later }: Asking,
): Promise<'found' | 'next' | 'reserved' | undefined> {
  const { key: own, kind: name } = resource;
  const kind = run.kindOf(name);
  const world = withSubject(run.world, resource, key);
  const operation = { key, kind: name, verb: 'create', changes: [] } as const;
  // The key holds the answer to the request that was answered before, no matter how the entry was edited since.
  const answered = (await answeredCreation(run, key))?.request;
  const request = sent?.[0] ?? answered ?? requestOf(run, operation, world);
  if (request === undefined || run.facts.pausedBy(request, 'none') !== undefined) return undefined;
  const begun = { world, question: unasked, recovers: own, ahead };
  const resumed = run.intents.get(key);
  // A process ended while it asked about the next incarnation of a key that holds another answer.
  const isAhead = resumed !== undefined && (await incarnationsBeyond(run, resumed)) > 0;
  const intent =
    resumed ??
    (await beginIntent(run, operation, request, {
      ...begun,
      numbered: later === undefined ? undefined : { incarnation: String(later) },
      preimage: await preimageOf(run, operation, world),
    }));
  const end = (
    outcome: IntentOutcome,
    text: string,
    changes: readonly StateChange[] = [],
    because?: Because,
  ) => close(run, intent, { outcome, text, ...(because && { because }) }, { changes });
  const held = await answerAtLast(run, intent);
  if (held === 'open') {
    const open = run.intents.get(key);
    if (open === undefined || questionOf(open).conflict !== true) return undefined;
    const { isReserved, asking: refused } = await inWriteSlot(run, open, () =>
      isReservedElsewhere(run, open),
    );
    if (isReserved) return lookUpAfter(run, refused, resource, { world, ahead });
    const left = sent?.slice(1) ?? underFormerNames(run, resource, open);
    if (left.length > 0) {
      await end('void', 'a rename may have kept the name');
      return lookUpOne(run, key, resource, { sent: left, ahead, later });
    }
    return 'now' in (await inWriteSlot(run, open, () => tryNextIncarnation(run, open))) ? 'next' : undefined;
  }
  const isFenced = held === 'unused' || held === 'fenced';
  // An earlier process of this state sent the original: reads show whether the original was carried out.
  if (isFenced && intent.sends > 0) {
    await decided(run, intent, 'fenced');
    return undefined;
  }
  if (held === 'unused') {
    run.stopwatch.mark(intent.id, 'asked');
    await end('absent', 'no earlier state used this idempotency key', [], 'unused');
  } else if (held === 'fenced') await end('absent', 'an earlier state fenced this idempotency key');
  else if (held === 'refused')
    await end('refused', 'the API refused an earlier state under this idempotency key');
  else if (held === 'unknown') await end('void', 'the API did not answer for this idempotency key');
  else if (held === 'unaskable')
    await end('void', 'no request can ask this API about an idempotency key', [], 'unaskable');
  else {
    const { id: answeredId, facts } = kind.writes.accept(held.answer, intent.request, intent.preimage);
    const id = answeredId ?? (await idByEvidence(run, intent));
    if (id === undefined) {
      // No read shows the resource yet. The run waits for the resource, as after any lost answer.
      await decided(run, intent, 'taken');
      return undefined;
    }
    const named = run.desired.resources.find((each) => each.kind === name && each.id === id && !each.held);
    if (named !== undefined && named.key !== own) {
      await found(run, intent, id, { taskId: taskOf(held.answer.task), namedBy: named.key });
      return 'next';
    }
    switch (await lifeOf(run, intent, { id, facts: facts ?? {} }, held.answer)) {
      case 'live':
        await found(run, intent, id, { taskId: taskOf(held.answer.task) });
        return 'found';
      case 'gone':
        await end(
          'absent',
          `${id} was created under this idempotency key, and is gone`,
          [...(await usedUp(run, intent)), ...(await answeredWithServer(run, intent))],
          'gone',
        );
        return 'next';
      case 'unknown':
        await end('void', `reads do not show yet whether ${id} exists`);
        return undefined;
    }
  }
  return isAhead || held === 'refused' || held === 'fenced' ? 'next' : undefined;
}

/** The question of an earlier run, whose process ended before the answer was used. */
export function isResumed(run: Run, key: ResourceKey): boolean {
  const open = run.intents.get(key);
  if (open?.recovers === undefined || isReservation(open) || !keyIsFresh(run, open)) return false;
  return open.phase === 'sending' || (open.phase === 'unknown' && questionOf(open).conflict !== true);
}
