import { partsOf } from '../../core/intent.ts';
import type { Binding, Ended, Intent } from '../../core/state.ts';
import { incarnationOf, isInScope } from '../claims/scope.ts';
import type { Run } from '../run.ts';
import { beginIntent, inWriteSlot } from './begin.ts';
import { again, close, type Progress, questionOf, unasked } from './endings.ts';
import { requestOf } from './next-incarnation.ts';
import { isReservedElsewhere, isUnaskable, probeKey, reserving } from './probe-key.ts';

/**
 * Why no other state creates the resource of the entry again under the entry's next key: this state has reserved the key,
 * or has created the resource under it. `used_elsewhere`: the key holds the answer to a creation of another state, which
 * the next creation of the entry asks for.
 */
export async function reservationOf(
  run: Run,
  { key, id }: Pick<Binding, 'key' | 'id'>,
): Promise<'reserved' | 'used_elsewhere' | undefined> {
  const { incarnation } = await incarnationOf(run, key);
  const past = await run.deps.store.intents({ key, limit: 50 });
  for (const each of past) {
    const { because, answer } = partsOf(each);
    if (each.verb !== 'create' || !isInScope(run, each)) continue;
    if (!isReservation(each) && answer?.id === id) return 'reserved';
    const isNext = each.incarnation === String(incarnation);
    if (isReservation(each) && isNext && (because === 'reserved' || because === 'used_elsewhere'))
      return because;
  }
  return undefined;
}

/** The question to a key ends that another state has reserved. */
export const reservedEnd: Ended = {
  outcome: 'void',
  because: 'reserved',
  text: 'the key is reserved: its resource was created under another key',
};

/** The spec names the resource of the key by `moved`, which answers an open question to the key if that is reserved. */
export async function endIfReserved(run: Run, intent: Intent): Promise<void> {
  if (questionOf(intent).conflict !== true) return;
  const { isReserved, asking } = await inWriteSlot(run, intent, () => isReservedElsewhere(run, intent));
  if (isReserved) await close(run, asking, reservedEnd);
}

/** The record of a reservation. It leaves nothing to settle. */
export function isReservation({ request }: Pick<Intent, 'request'>): boolean {
  return request.probe === reserving;
}

/**
 * Reserves the next key of the entry, whose resource was created under another key, by a request that cannot be carried
 * out: a state that is lost, or an older copy, does not know the resource of the entry, and would create it again under
 * that key. Where no request can do it now, a later run does. Part of a turn to write. @assumption A4
 *
 * @source API §4 rule 3, §8.1
 */
export async function reserve(run: Run, { key, kind }: Pick<Binding, 'key' | 'kind'>): Promise<void> {
  const operation = { key, kind, verb: 'create', changes: [] } as const;
  const open = run.intents.get(key);
  if (open !== undefined && !isReservation(open)) return;
  const request = requestOf(run, operation);
  if (request === undefined || (await isUnaskable(run, { request }))) return;
  if (run.facts.pausedBy(request, 'none') !== undefined) return;
  const body = { ...request, probe: reserving } as const;
  const begun = { world: run.world, preimage: {}, question: unasked, recovers: key };
  for (;;) {
    const intent = run.intents.get(key) ?? (await beginIntent(run, operation, body, begun));
    const { held, asking } = await probeKey(run, intent, reserving);
    // Another state may have asked the key, and used a later attempt.
    const { held: known, asking: last } =
      held.is === 'taken' ? await probeKey(run, asking) : { held, asking };
    if (held.is === 'taken' && known.is === 'fenced') {
      await close(run, last, { outcome: 'absent', text: 'another state fenced this idempotency key' });
      continue;
    }
    await close(run, last, { outcome: 'void', ...endOf(known.is) });
    return;
  }
}

/** The end of a reservation, by the answer that the key holds. */
function endOf(held: Awaited<ReturnType<typeof probeKey>>['held']['is']): Omit<Ended, 'outcome'> {
  switch (held) {
    case 'untold':
      return { text: 'the API did not answer for this idempotency key' };
    case 'open':
      return { because: 'unaskable', text: 'no request can reserve this key' };
    case 'fenced':
      return { because: 'reserved', text: 'reserved: its resource was created under another key' };
    case 'accepted':
    case 'taken':
      return { because: 'used_elsewhere', text: 'another state used this idempotency key' };
  }
}

/**
 * Ends a reservation that an earlier process, or a failed read, has left: the next use of the other key makes it again.
 * One that is being made ends with its turn to write.
 */
export async function endReservation(run: Run, { id, key, kind, verb }: Intent): Promise<Progress> {
  return inWriteSlot(run, { key, kind, verb }, async () => {
    const open = run.intents.get(key);
    if (open?.id !== id) return again(0);
    return close(run, open, { outcome: 'void', text: 'the reservation of this key was not finished' });
  });
}
