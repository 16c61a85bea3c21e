import { partsOf } from '../../core/intent.ts';
import { digestOf } from '../../core/json.ts';
import { retiringKey } from '../../core/keys.ts';
import { type Operation, operationId } from '../../core/plan.ts';
import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { beginIntent } from './begin.ts';
import { close, type Progress } from './endings.ts';
import { probeKey } from './probe-key.ts';
import { isServerError, unasked } from './question.ts';

/**
 * The key of a creation holds the answer to another body: an earlier state may have replaced the resource since, with
 * the body of this creation. An incarnation begins only when the one before it is gone or retires, so a used key of the
 * next incarnation shows that. Returns the creation that begins again under that key, or the intent that takes the place
 * of this intent.
 *
 * @source API §8.1
 */
export async function tryNextIncarnation(run: Run, intent: Intent): Promise<Progress | Intent> {
  const { key, kind, changes, request, preimage, replaces, recovers } = intent;
  const desired = run.world.subjects.get(key)?.desired;
  // If the entry was edited since, its creation does not begin again. A server error may have had its effect.
  const isEdited = desired === undefined || digestOf(desired.value ?? null) !== intent.basis;
  const { why = 'lost' } = partsOf(intent).unconfirmed ?? {};
  if (isEdited || isServerError(why)) return intent;
  const operation: Operation = {
    id: operationId('create', key),
    ...{ key, kind, verb: 'create', changes, needs: [], spend: 'adds', risk: 'billed' },
    ...(replaces === undefined ? {} : { replacement: operationId('delete', retiringKey(key, replaces)) }),
  };
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
