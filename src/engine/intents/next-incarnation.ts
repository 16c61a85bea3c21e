import { partsOf } from '../../core/intent.ts';
import { digestOf } from '../../core/json.ts';
import { retiringKey } from '../../core/keys.ts';
import type { WriteContext } from '../../core/kind.ts';
import { operationId } from '../../core/plan.ts';
import type { WriteRequest } from '../../core/ports.ts';
import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { beginIntent, contextOf } from './begin.ts';
import { close, type Progress } from './endings.ts';
import { probeKey } from './probe-key.ts';
import { isServerError, keyIsFresh, unasked } from './question.ts';
import { inWriteSlot } from './write-slot.ts';

/**
 * The key of a creation holds the answer to another body: an earlier state may have replaced the resource since, with
 * the body of this creation. An incarnation begins only when the one before it is gone or retires, so a used key of the
 * next incarnation shows that. Returns the creation that begins again under that key, or the intent that takes the place
 * of this intent.
 *
 * @source API §8.1
 */
export async function tryNextIncarnation(run: Run, intent: Intent): Promise<Progress | Intent> {
  const { key, request, preimage, recovers } = intent;
  // If the entry was edited since, its creation does not begin again. A server error may have had its effect.
  const { why = 'lost' } = partsOf(intent).unconfirmed ?? {};
  if (isEdited(run, intent) !== false || isServerError(why)) return intent;
  const operation = creationOf(intent);
  const begun = { world: run.world, preimage, recovers };
  // The key was used before the first send of this creation, so that no send of it was carried out.
  await close(run, intent, {
    outcome: 'void',
    text: 'its idempotency key holds the answer to another request',
  });
  const next = await beginIntent(run, operation, request, { ...begun, question: unasked, ahead: 1 });
  const { held, asking } = await probeKey(run, next);
  if (held.is === 'taken' || (held.is === 'accepted' && held.answer.replayed))
    return close(
      run,
      asking,
      { outcome: 'void', text: 'an earlier state used this idempotency key' },
      { changes: [{ type: 'next_incarnation', key }], retryAfterMs: 0 },
    );
  if (held.is === 'fenced')
    await close(run, asking, { outcome: 'absent', text: 'no earlier state used this idempotency key' });
  else await close(run, asking, { outcome: 'void', text: 'the API did not answer for this idempotency key' });
  const question = { ...unasked, stage: 'taken', conflict: true } as const;
  const same = await beginIntent(run, operation, request, { ...begun, question });
  // The new record replaces the previous record, so it keeps the time and number of its sends.
  const { sends, lastSentAt } = intent;
  return run.update(same, {
    sends,
    lastSentAt,
    stage: { phase: 'unknown', unconfirmed: { why, question } },
  });
}

/**
 * Asks again about a key that holds the answer to another request: the entry was edited since, and the key may hold the
 * answer to the edited entry. The conflict remains if the key does not hold an answer any more.
 *
 * @source API §8.1
 */
export async function askAgain(run: Run, intent: Intent): Promise<void> {
  const { key, kind, preimage, replaces, recovers = key, sends, lastSentAt } = intent;
  const { blocked, unconfirmed } = partsOf(intent);
  if (blocked?.code !== 'key_conflict' || replaces !== undefined || isServerError(unconfirmed?.why)) return;
  if (isEdited(run, intent) !== true || !keyIsFresh(run, intent)) return;
  const operation = creationOf(intent);
  let request: WriteRequest;
  try {
    request = run.kindOf(kind).writes.request(contextOf(run, operation, run.world));
  } catch {
    // Its request needs a resource that does not exist yet.
    return;
  }
  await inWriteSlot(run, intent, async () => {
    if (run.heldBy(request, 'none') !== undefined) return;
    const { held, asking } = await probeKey(run, intent);
    if (held.is !== 'taken') return;
    await close(run, asking, { outcome: 'void', text: 'the entry was edited since' });
    const question = { ...unasked, stage: 'taken' } as const;
    const next = await beginIntent(run, operation, request, {
      world: run.world,
      preimage,
      question,
      recovers,
    });
    await run.update(next, { sends, lastSentAt });
  });
}

/** `undefined` if the entry has left the file. */
function isEdited(run: Run, { key, basis }: Intent): boolean | undefined {
  const desired = run.world.subjects.get(key)?.desired;
  return desired && digestOf(desired.value ?? null) !== basis;
}

function creationOf({ key, kind, changes, replaces }: Intent): WriteContext['operation'] {
  return {
    ...{ key, kind, verb: 'create', changes },
    ...(replaces === undefined ? {} : { replacement: operationId('delete', retiringKey(key, replaces)) }),
  };
}
