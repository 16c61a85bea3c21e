import { ConfigError, NotAbsentError, TooSoonError } from '../../core/errors.ts';
import { isUnconfirmed } from '../../core/intent.ts';
import { nounOf } from '../../core/keys.ts';
import type { Conclusive } from '../../core/ports.ts';
import { command } from '../../core/remedy.ts';
import type { Intent } from '../../core/state.ts';
import { inWriteSlot } from '../intents/begin.ts';
import { asksKey, isReplacing, keyIsFresh, questionOf } from '../intents/endings.ts';
import { answerUnder, type Held } from '../intents/held.ts';
import { record } from '../intents/record.ts';
import type { Run } from '../run.ts';

const keyUnasked = ' vdcsync could not verify this with the idempotency key, so it relies on your answer.';

/** The answer under the key of an unconfirmed creation; `undefined` if there is nothing to ask. */
export async function askedByKey(run: Run, intent: Intent): Promise<Held | undefined> {
  const { verb } = intent;
  // An accepted creation has its answer already. A fenced key holds none.
  if (verb !== 'create' || !isUnconfirmed(intent) || !asksKey(run, intent)) return undefined;
  const { stage, conflict } = questionOf(intent);
  if (stage === 'fenced') return 'fenced';
  // The key holds the answer to another body, which no request of this state can replay.
  if (conflict === true || !keyIsFresh(run, intent)) return 'unaskable';
  return inWriteSlot(run, intent, () => answerUnder(run, intent));
}

/**
 * Asks the idempotency key of a creation that the operator declares absent. Returns a remark on the answer.
 *
 * @throws ConfigError if the key holds the answer to the creation. The next apply then binds the resource.
 */
export async function askBeforeAbsent(run: Run, intent: Intent): Promise<string> {
  const { key } = intent;
  const keyAnswer = await askedByKey(run, intent);
  switch (keyAnswer) {
    case undefined:
    case 'unused':
    case 'fenced':
    case 'refused':
      return '';
    case 'unknown':
    case 'unaskable':
      return keyUnasked;
    case 'open':
      throw new ConfigError(
        `${key} may exist: its idempotency key was used, and the API did not show by which request.`,
        false,
        [command('apply')],
      );
    default:
      return refuseOther(run, intent, keyAnswer.answer);
  }
}

/** Records the answer that the key holds, which contradicts the operator. */
export async function refuseOther(run: Run, intent: Intent, answer: Conclusive): Promise<never> {
  await record(run, run.intents.get(intent.key) ?? intent, answer);
  throw existsAlready(intent, idAnswered(run, intent, answer));
}

/** The error for an operator who declares a resource absent that exists. @param id `undefined`: not in the answer */
export function existsAlready({ key, kind }: Intent, id: string | undefined): NotAbsentError {
  const what = id === undefined ? 'its creation was accepted' : `it is ${nounOf(kind)} ${id}`;
  return new NotAbsentError(`${key} exists: its idempotency key shows that ${what}.`, [
    command('apply', [], { when: `to bind it to ${key}` }),
  ]);
}

/** The live id in an answer to the write. The answer to the creation of a network has none. @source API §3 rule 5 */
export function idAnswered(
  run: Run,
  { kind, request, preimage }: Intent,
  answer: Conclusive,
): string | undefined {
  return run.kindOf(kind).writes.accept(answer, request, preimage).id;
}

/** @throws ConfigError if the old resource would be deleted before the new one works */
export function refuseUnended(intent: Intent): void {
  const { key, kind, replaces } = intent;
  if (!isReplacing(intent)) return;
  throw new ConfigError(
    `The creation of ${key} has not ended, and ${nounOf(kind)} ${replaces} would be deleted for it.`,
    false,
    [
      command('apply', [], { when: 'to wait for its end' }),
      command('resolve', [key, '--abandon'], { when: `to keep ${nounOf(kind)} ${replaces}` }),
    ],
  );
}

/** The API has accepted the creation and named no resource, so that reads show the resource once the creation has ended. */
export function refuseUnnamed({ deps, kindOf }: Run, intent: Intent): void {
  if (intent.verb !== 'create' || intent.phase !== 'accepted' || intent.answer.id !== undefined) return;
  if (deps.clock.now() - intent.answer.at < kindOf(intent.kind).timing.deadlineMs)
    throw existsAlready(intent, undefined);
}

/** A write without an answer may take effect until its time-out and a short time after. */
export function refuseTooSoon({ deps }: Run, intent: Intent): void {
  const { key, lastSentAt } = intent;
  if (!isUnconfirmed(intent)) return;
  const age = deps.clock.now() - lastSentAt;
  const rest = deps.requestTimeoutMs + 30_000 - age;
  if (age < 0 || rest <= 0) return;
  throw new TooSoonError(
    `The write of ${key} was sent ${Math.round(age / 1000)} s ago, and may still take effect. Try again in ${Math.ceil(rest / 1000)} s.`,
    rest,
  );
}
