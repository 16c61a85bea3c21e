import { partsOf } from '../../core/intent.ts';
import type { Operation } from '../../core/plan.ts';
import type { WriteResult } from '../../core/ports.ts';
import { settleFirst } from '../../core/remedy.ts';
import type { Binding, Intent } from '../../core/state.ts';
import { incarnationOf, isInScope } from '../claims/scope.ts';
import type { Run } from '../run.ts';
import { beginIntent, inWriteSlot } from './begin.ts';
import { again, awaitEnd, close, type Progress, unasked } from './endings.ts';
import { requestOf } from './next-incarnation.ts';
import { told } from './outcome.ts';
import { isUnaskable, pauseIfRefused, probeKey, reserving } from './probe-key.ts';

/** A reservation is made again after this time, because the API may forget it a day after its first use. @source API §8.4 */
const reservedMs = 3_600_000;
/** The pause before a reservation without an answer is made again, and how long that is done. */
const retryMs = 5_000;
const mostSilentMs = 30 * 60_000;

/**
 * A resource was created under the key of this creation, and has been bound to another entry since. Before the key is
 * used again, that entry's own next idempotency key is reserved by a request that cannot be carried out: a state that is
 * lost, or an older copy, does not know the resource of that entry, and would create it again under that key. Returns
 * `undefined` once the keys are reserved, or where no request can reserve them. Part of a turn to write. @assumption A4
 *
 * @source API §4 rule 3, §8.1
 */
export async function reserveKeys(
  run: Run,
  { key, kind }: Pick<Operation, 'key' | 'kind'>,
): Promise<Progress | undefined> {
  for (const binding of [...run.bindings.values()]) {
    const isPassedOn = binding.kind === kind && binding.key !== key && binding.formerKeys?.includes(key);
    if (!isPassedOn || (await reservationOf(run, binding, reservedMs))) continue;
    const ended = await reserve(run, binding);
    if (ended === 'done') continue;
    return 'now' in ended ? ended : unanswered(run, binding, ended);
  }
  return undefined;
}

/**
 * Why no other state creates the resource of the entry again under the entry's next key: this state has reserved the key,
 * at most `withinMs` ago, or has created the resource under it. `used_elsewhere`: the key holds the answer to a creation of
 * another state, which the next creation of the entry asks for.
 */
export async function reservationOf(
  run: Run,
  { key, id }: Pick<Binding, 'key' | 'id'>,
  withinMs = Number.POSITIVE_INFINITY,
): Promise<'reserved' | 'used_elsewhere' | undefined> {
  const { incarnation } = await incarnationOf(run, key);
  const past = await run.deps.store.intents({ key, limit: 50 });
  const now = run.deps.clock.now();
  for (const each of past) {
    const { because, answer } = partsOf(each);
    if (each.verb !== 'create' || !isInScope(run, each)) continue;
    if (!isReservation(each) && answer?.id === id) return 'reserved';
    const isNext = each.incarnation === String(incarnation) && Math.abs(now - each.createdAt) < withinMs;
    if (isReservation(each) && isNext && (because === 'reserved' || because === 'used_elsewhere'))
      return because;
  }
  return undefined;
}

/** The record of a reservation. It leaves nothing to settle. */
export function isReservation({ request }: Pick<Intent, 'request'>): boolean {
  return request.probe === reserving;
}

/**
 * Reserves the next key of the entry, whose resource was created under another key. `done`: also where no request can do
 * it. Returns the answer, if it is not about the key. Part of a turn to write.
 */
export async function reserve(
  run: Run,
  { key, kind }: Pick<Binding, 'key' | 'kind'>,
): Promise<'done' | Progress | WriteResult> {
  const operation = { key, kind, verb: 'create', changes: [] } as const;
  const open = run.intents.get(key);
  if (open !== undefined && !isReservation(open)) {
    const reason = `waits for the open write of ${key}`;
    return open.phase === 'blocked'
      ? { now: 'blocked', code: 'dependency_blocked', reason, remedies: settleFirst(key) }
      : awaitEnd(key);
  }
  const request = requestOf(run, operation);
  if (request === undefined || (await isUnaskable(run, { request }))) return 'done';
  const held = run.facts.heldBy(request, 'none');
  if (held !== undefined) return { now: 'blocked', ...held };
  const body = { ...request, probe: reserving } as const;
  const begun = { world: run.world, preimage: {}, question: unasked, recovers: key };
  const untold = async (intent: Intent, result: WriteResult) => {
    await close(run, intent, { outcome: 'void', text: 'the API did not answer for this idempotency key' });
    return result;
  };
  for (;;) {
    const intent = run.intents.get(key) ?? (await beginIntent(run, operation, body, begun));
    const { held: answer, asking } = await probeKey(run, intent, reserving);
    if (answer.is === 'untold') return untold(asking, answer.result);
    if (answer.is === 'open') {
      const text = 'no request can reserve this key';
      await close(run, asking, { outcome: 'void', because: 'unaskable', text });
      return 'done';
    }
    // Another state may have asked the key, and used a later attempt.
    const asked = answer.is === 'taken' ? await probeKey(run, asking) : undefined;
    if (asked?.held.is === 'untold') return untold(asked.asking, asked.held.result);
    if (asked === undefined) {
      const text = 'reserved: its resource was created under another key';
      await close(run, asking, { outcome: 'void', because: 'reserved', text });
      return 'done';
    }
    if (asked.held.is !== 'fenced') {
      const text = 'another state used this idempotency key';
      await close(run, asked.asking, { outcome: 'void', because: 'used_elsewhere', text });
      return 'done';
    }
    await close(run, asked.asking, { outcome: 'absent', text: 'another state fenced this idempotency key' });
  }
}

/** The next turn reserves the key again. After `mostSilentMs` the run ends without the creation. */
async function unanswered(
  run: Run,
  { key, kind }: Pick<Binding, 'key' | 'kind'>,
  result: WriteResult,
): Promise<Progress> {
  const { deps, stopwatch } = run;
  const request = requestOf(run, { key, kind, verb: 'create', changes: [] });
  const refusal = request && (await pauseIfRefused(run, { kind, verb: 'create', request }, result));
  if (refusal !== undefined) return { now: 'blocked', ...refusal };
  if (!stopwatch.isMarked(key, 'silent')) stopwatch.mark(key, 'silent');
  const isAnswer = result.type === 'answer';
  const reason = isAnswer ? told(result) : result.reason;
  if (stopwatch.since(key, 'silent', 0) >= mostSilentMs)
    return { now: 'blocked', code: 'key_not_answered', reason };
  return again(Math.max(retryMs, (isAnswer && result.retryAfterMs) || 0) * deps.profile.timeScale);
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
