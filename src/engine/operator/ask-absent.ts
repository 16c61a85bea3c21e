import { ConfigError, NotAbsentError } from '../../core/errors.ts';
import { partsOf } from '../../core/intent.ts';
import { nounOf } from '../../core/keys.ts';
import { run as runs } from '../../core/remedy.ts';
import type { Intent } from '../../core/state.ts';
import { asksKey, keyIsFresh, questionOf } from '../intents/question.ts';
import { record } from '../intents/record.ts';
import { inWriteSlot } from '../intents/write-slot.ts';
import { answerUnder } from '../run/recover.ts';
import type { Run } from '../run.ts';

const unasked = ' Its idempotency key could not be asked, so your answer alone decides.';

/**
 * Asks the idempotency key of a creation that the operator declares absent. Returns a remark on the answer.
 *
 * @throws ConfigError if the key holds the answer to the creation. The next apply then binds the resource.
 */
export async function askBeforeAbsent(run: Run, intent: Intent): Promise<string> {
  const { key, kind, verb } = intent;
  // An accepted creation has its answer already. A fenced key holds none.
  if (verb !== 'create' || partsOf(intent).unconfirmed === undefined || !asksKey(run, intent)) return '';
  const { stage, conflict } = questionOf(intent);
  if (stage === 'fenced') return '';
  // The key holds the answer to another body, which no request of this state can replay.
  if (conflict === true) return unasked;
  if (!keyIsFresh(run, intent)) return unasked;
  const held = await inWriteSlot(run, intent, () => answerUnder(run, intent));
  if (held === 'unused' || held === 'fenced' || held === 'refused') return '';
  if (held === 'unknown') return unasked;
  const sent = run.intents.get(key) ?? intent;
  if (held === 'open')
    throw new ConfigError(
      `${key} is not known to be absent: its idempotency key was used, and the API gave no conclusive answer.`,
      false,
      [runs('apply')],
    );
  const { answer } = held;
  const { id } = run.kindOf(kind).writes.accept(answer, intent.request, intent.preimage);
  await record(run, sent, answer);
  const what = id === undefined ? 'its creation was accepted' : `it is ${nounOf(kind)} ${id}`;
  throw new NotAbsentError(`${key} is not absent: its idempotency key shows that ${what}.`, [
    runs('apply', [], { when: `to bind it to ${key}` }),
  ]);
}
