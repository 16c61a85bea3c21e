import type { PauseScope } from '../../core/claims.ts';
import { backOff } from '../../core/clock.ts';
import { type Conclusive, probeField, type WriteResult } from '../../core/ports.ts';
import type { TaskId } from '../../core/resources.ts';
import type { Intent, KeyQuestion, Unconfirmed, WhyUnknown } from '../../core/state.ts';

/** No host has the graphics cards free. @source API §4 */
export const noCapacity = 'no_gpu_capacity';

/** The step after one send. `code` and `reason` are for the operator. */
export type Disposition =
  /** The write took effect, or certainly will. */
  | { readonly do: 'accept'; readonly task: TaskId | null; readonly breach?: string }
  /** No effect, and no answer is stored: send the same key and bytes again, not before `afterMs`. */
  | {
      readonly do: 'wait';
      readonly afterMs: number;
      readonly code: string;
      readonly reason: string;
      /** Waiting may never help: the key may have been used for another body. @assumption A4 */
      readonly maybeUsed?: true;
    }
  /** No host has the graphics cards; the next preference has its own key. */
  | { readonly do: 'next_preference'; readonly reason: string }
  /** No effect, and the refusal is stored: send a new key, after the time of `until`. */
  | {
      readonly do: 'refuse';
      readonly code: string;
      readonly reason: string;
      /** `token`: send with another token at once. */
      readonly until: 'file' | 'replan' | 'now' | 'token';
      /** The parameters that the refusal names. */
      readonly parameters?: readonly string[];
      readonly pause?: PauseScope;
      /** The writes that the refusal is about in later runs, if they are fewer. */
      readonly later?: PauseScope;
    }
  /**
   * The effect is unknown. The key of a creation is asked, and lists show the effect of other writes; not before
   * `afterMs`.
   */
  | {
      readonly do: 'look';
      readonly afterMs: number;
      readonly why: WhyUnknown;
      readonly reason: string;
      /** The stage at which the question to the key continues. Left out if the question starts from the beginning. */
      readonly stage?: KeyQuestion['stage'];
      /** The original bytes were refused as another request. */
      readonly conflict?: true;
    }
  /** The refusal shows nothing new about the write. The same request is sent again after the pause. */
  | {
      readonly do: 'hold';
      readonly code: string;
      readonly reason: string;
      readonly pause: PauseScope;
      readonly later: PauseScope;
    };

/** The values that waits are calculated from. */
export interface Pace {
  readonly requestTimeoutMs: number;
  /** In [0, 1): adds up to a tenth to a wait, so that clients do not send at the same moments. */
  readonly jitter: number;
  /** The number of waits of this intent so far. */
  readonly waits: number;
  /** `Retry-After` is in real seconds, even if the clock of the profile runs faster. */
  readonly timeScale: number;
}

const second = 1000;
const minute = 60 * second;
/** The waits before a write is sent again: after no connection, and after a conflict. */
const pauseMs = {
  unreachable: { firstMs: second, mostMs: minute },
  busy: { firstMs: 5 * second, mostMs: 5 * minute },
} as const;

/** The facts about the sent write that give its answer a meaning. */
export interface SentFacts {
  readonly verb: Intent['verb'];
  /** The write is a creation, whose key can be asked. */
  readonly asks: boolean;
  readonly unconfirmed?: Unconfirmed | undefined;
  readonly maybeUsed?: boolean;
}

/**
 * The outcome table, row by row: the meaning of one answer for its write.
 *
 * A refusal answers only its own send. If an earlier send of the same intent may have had its effect, a refusal of
 * the resend says nothing about that send, and evidence goes first.
 *
 * @source API §7, §8
 */
export function disposition(result: WriteResult, intent: SentFacts, pace: Pace): Disposition {
  const { requestTimeoutMs, jitter, waits } = pace;
  const settleMs = requestTimeoutMs + 30 * second;
  const { asks, unconfirmed } = intent;
  switch (result.type) {
    case 'unsent':
      return wait(backOff(pauseMs.unreachable, waits, jitter), 'unreachable', result.reason);
    case 'ambiguous':
      return { do: 'look', afterMs: settleMs, why: 'lost', reason: result.reason };
    case 'answer':
      if (result.status < 300) return accepted(result, asks, settleMs);
      if (result.status >= 500) return serverError(result, asks, settleMs);
      // A replayed answer belongs to exactly these bytes, and the key holds no other answer.
      if (unconfirmed && asks && !result.replayed) return refusalOfResend(result, pace);
      if (intent.maybeUsed === true && asks && !result.replayed && !isWaitedOut(result))
        return unconfirmedRefusal(result);
      if (unconfirmed && !asks && (result.status !== 429 || result.replayed)) {
        const why = result.status === 409 ? 'conflict' : 'refused';
        return { do: 'look', afterMs: settleMs, why, reason: saysNothing(result) };
      }
      if (result.status === 404 && intent.verb === 'delete') {
        return { do: 'look', afterMs: settleMs, why: 'not_found', reason: answerText(result) };
      }
      return refusal(result, intent, pace);
  }
}

function accepted(result: Conclusive, asks: boolean, settleMs: number): Disposition {
  if (result.malformed !== undefined) {
    const reason = `${result.status} with a body that cannot be read: ${result.malformed}`;
    // The key holds this answer, and replays the whole answer. @source API §8.1
    if (asks) return { do: 'look', afterMs: second, why: 'unreadable', reason, stage: 'taken' };
    return { do: 'look', afterMs: settleMs, why: 'unreadable', reason };
  }
  const { task = null, status } = result;
  if (task === 'missing')
    return {
      do: 'accept',
      task: null,
      breach: 'the answer lacks the field `task`',
    };
  const isAsync = status === 202;
  if (isAsync === (task !== null)) return { do: 'accept', task: task?.id ?? null };
  const breach = isAsync ? '202 without a task' : `${status} with a task`;
  return { do: 'accept', task: task?.id ?? null, breach };
}

function serverError(result: Conclusive, asks: boolean, settleMs: number): Disposition {
  // The origin behind a gateway may still be at work.
  const why = result.status === 502 || result.status === 504 ? 'gateway_error' : 'server_error';
  const afterMs = asks && why === 'gateway_error' ? gatewayMs : settleMs;
  return { do: 'look', afterMs, why, reason: answerText(result) };
}

/** The refusal of a creation's resend says nothing about the earlier sends. The key may hold their answer. */
function refusalOfResend(result: Conclusive, pace: Pace): Disposition {
  const { status } = result;
  const code = codeOf(result);
  const reason = saysNothing(result);
  const paused = pauseOf(result);
  if (paused !== undefined) return { do: 'hold', code, reason, ...paused };
  // The key is asked again with another token.
  if (isOfToken(result)) return { do: 'look', afterMs: second, why: 'refused', reason, stage: 'asking' };
  if (status === 429) return rateLimited(reason);
  if (status === 409 && (result.retryAfterMs !== undefined || stateCodes.has(code)))
    return waitOut(result, code, reason, pace);
  // The probe shows whether the key holds the answer to another request, or to the probe itself.
  const why = status === 409 ? 'conflict' : mayBeReusedKey(result, code, true) ? 'reused' : undefined;
  if (why !== undefined) return { do: 'look', afterMs: second, why, reason, stage: 'asking', conflict: true };
  return { do: 'look', afterMs: second, why: 'refused', reason, stage: 'open' };
}

/** The key may have been used for another body, so only the key shows whether the next key is safe. @assumption A4 */
function unconfirmedRefusal(result: Conclusive): Disposition {
  const paused = pauseOf(result);
  const reason = answerText(result);
  return paused === undefined
    ? { do: 'look', afterMs: second, why: 'conflict', reason, stage: 'asking' }
    : { do: 'hold', code: codeOf(result), reason, ...paused };
}

/** The write is sent again under the same key. */
function isWaitedOut(result: Conclusive): boolean {
  return result.status === 429 || (result.status === 409 && codeOf(result) !== noCapacity);
}

/** The classes of writes to pause, now and in later runs, if the refusal is about more than its own send. */
function pauseOf(result: Conclusive): { readonly pause: PauseScope; readonly later: PauseScope } | undefined {
  // A token without write access cannot do any other write either. @source API §5
  const pause = codeOf(result) === 'insufficient_scope' ? 'everything' : pauses[result.status];
  if (pause === undefined || isOfToken(result)) return undefined;
  // A mistake of vdcsync stops the run, but later runs pause only the operation.
  return { pause, later: isOwnBug(result) ? 'operation' : pause };
}

function isOwnBug({ status }: Conclusive): boolean {
  return status === 405 || status === 415;
}

/** The refusal is about one of several tokens, so no class of writes is paused. */
function isOfToken({ ofToken, status }: Conclusive): boolean {
  return ofToken === true && status !== 429;
}

function saysNothing(result: Conclusive): string {
  return `${answerText(result)}; this answer does not show the outcome of the earlier request`;
}

function refusal(result: Conclusive, { asks, unconfirmed }: SentFacts, pace: Pace): Disposition {
  const code = codeOf(result);
  const reason = answerText(result);
  // Another token sends the write under a new key, because this key may hold the refusal.
  if (isOfToken(result)) return { do: 'refuse', code, reason, until: 'token' };
  const paused = pauseOf(result);
  // Under a new key, the API refuses the same entry again if the replayed refusal was fresh a moment ago. An old
  // refusal, such as one for an invoice that is paid by now, may not apply any more.
  const wasFresh = unconfirmed?.why === 'refused' && unconfirmed.question.stage === 'taken';
  if (result.replayed && !wasFresh)
    return { do: 'refuse', code, reason, until: 'now', ...parametersOf(result) };
  if (result.replayed && paused === undefined)
    return { do: 'refuse', code, reason, until: 'file', ...parametersOf(result) };
  // If these bytes are sent again, their own refusal is replayed. The refusal of a key that another request used is
  // not replayed.
  // An earlier state deleted another resource under the key of a deletion, so the deletion was not carried out.
  if (mayBeReusedKey(result, code, asks))
    return asks
      ? { do: 'look', afterMs: second, why: 'refused', reason, stage: 'taken' }
      : { do: 'refuse', code, reason, until: 'now' };
  switch (result.status) {
    case 429:
      return rateLimited(reason);
    case 409:
      return code === noCapacity ? { do: 'next_preference', reason } : waitOut(result, code, reason, pace);
    case 404:
      return { do: 'refuse', code, reason, until: 'replan' };
    default:
      if (paused === undefined) return { do: 'refuse', code, reason, until: 'file', ...parametersOf(result) };
      return {
        ...{ do: 'refuse', code, until: 'replan', ...paused },
        reason: isOwnBug(result) ? `${reason} (a bug of vdcsync: please report it)` : reason,
      };
  }
}

function parametersOf({ invalidParams = [] }: Conclusive): { readonly parameters?: readonly string[] } {
  return invalidParams.length === 0 ? {} : { parameters: invalidParams.map(({ name }) => name) };
}

/** Waits for the time that the API asks for, or longer each time. */
function waitOut(
  result: Conclusive,
  code: string,
  reason: string,
  { jitter, waits, timeScale }: Pace,
): Disposition {
  if (result.retryAfterMs !== undefined)
    return wait(Math.min(result.retryAfterMs, 10 * minute) * timeScale * (1 + jitter / 10), code, reason);
  const maybeUsed = !result.replayed && !stateCodes.has(code);
  return {
    ...wait(backOff(pauseMs.busy, waits, jitter), code, reason),
    ...(maybeUsed ? { maybeUsed } : {}),
  };
}

/** The classes of writes that a refusal with this status is about, in addition to its own write. */
export const pauses: Readonly<Record<number, PauseScope>> = {
  401: 'everything',
  402: 'spending',
  403: 'operation',
  405: 'everything',
  415: 'everything',
};

/** The codes of refusals because of the state of a resource. @source API §7 */
const stateCodes: ReadonlySet<string> = new Set([
  'ip_in_use',
  'server_busy',
  noCapacity,
  'firewall_no_public_iface',
]);

/** The codes of refusals because of the body that name no field. @source API §7 */
const bodyCodes: ReadonlySet<string> = new Set([
  'image_not_supported',
  'resources_managed_by_package',
  'gpu_package_required',
  'gpu_package_not_found',
  'gpus_not_supported',
  'disk_type_not_supported',
  'server_type_not_supported',
]);

/** The conflicts that the deletion of a replaced server ends: the new server needs its address or its graphics cards. */
export const endedByDeletion: ReadonlySet<string> = new Set(['ip_in_use', noCapacity]);

export function codeOf({ code, status }: Conclusive): string {
  return code ?? `http_${status}`;
}

/** The refusal of a key that was used for another body has no known code. @assumption A4 */
function mayBeReusedKey({ status, invalidParams = [] }: Conclusive, code: string, asks: boolean): boolean {
  // A 409 is waited for under the same key.
  if (status === 409) return false;
  if ([code, ...invalidParams.map(({ name }) => name)].some((each) => /idempotency/i.test(each))) return true;
  const ofBody = invalidParams.length > 0 || bodyCodes.has(code);
  return asks && !ofBody && (status === 400 || status === 422);
}

/** The gate waits for the time that the API asks for. The API carried out nothing, so no operator is needed. */
function rateLimited(reason: string): Disposition {
  return wait(0, 'rate_limit_exceeded', reason);
}

function wait(afterMs: number, code: string, reason: string): Disposition & { readonly do: 'wait' } {
  return { do: 'wait', afterMs, code, reason };
}

/** The information of the answer to a probe about its key. */
export type ProbeAnswer =
  /** The refusal of the probe itself is stored, so the key never held another answer. */
  | 'fenced'
  /** Another answer is stored. */
  | 'taken'
  /** A refusal of the probe's body that was not replayed. */
  | 'fresh'
  /** Nothing: the probe is sent again later. */
  | 'nothing';

/**
 * Reads the refusal of a probe. The probe's bytes are the same each time, so a replayed refusal is the probe's own.
 *
 * @param reuse how this API refuses a key that another request has used, where that is known
 * @source API §8.1 to §8.4
 */
export function probeAnswer(result: Conclusive, reuse: ReuseRefusal | undefined): ProbeAnswer {
  const { status, replayed } = result;
  if (status >= 500 || status === 429 || pauses[status] !== undefined) return replayed ? 'fenced' : 'nothing';
  if (replayed) return 'fenced';
  if (namesProbe(result)) return 'fresh';
  if (reuse !== undefined && reuse.status === status && reuse.code === codeOf(result)) return 'taken';
  return status === 400 || status === 422 ? 'taken' : 'nothing';
}

/** The refusal is about the unknown field of a probe. */
export function namesProbe({ invalidParams = [] }: Conclusive): boolean {
  return invalidParams.some(({ name }) => name.includes(probeField));
}

/** The information of the answer to a request with an unknown field about its other fields. */
export type ProofAnswer =
  /** Nothing: the request is sent again later. */
  | { readonly shows: 'nothing'; readonly reason: string; readonly afterMs: number }
  /** The API refuses the unknown field alone, or refuses the creation only as long as the old resource exists. */
  | { readonly shows: 'no_objection' }
  /** The API refuses other values too, or the token, the scope or the payment. */
  | {
      readonly shows: 'objection';
      readonly code: string;
      readonly reason: string;
      readonly parameters: readonly string[];
    }
  /** The state of the project conflicts with the creation. The deletion of the old resource may end the conflict. */
  | { readonly shows: 'conflict'; readonly code: string; readonly reason: string }
  /** Against its document, the API accepted the unknown field. */
  | { readonly shows: 'carried_out' };

/** @source API §4 rule 3, §7 */
export function proofAnswer(result: Conclusive): ProofAnswer {
  const { status, retryAfterMs } = result;
  const code = codeOf(result);
  if (status < 300) return { shows: 'carried_out' };
  const isLater = status >= 500 || status === 429 || (status === 409 && retryAfterMs !== undefined);
  if (isLater || isOfToken(result))
    return { shows: 'nothing', reason: answerText(result), afterMs: retryAfterMs ?? pauseMs.busy.firstMs };
  const params = (result.invalidParams ?? []).filter(({ name }) => !name.includes(probeField));
  const isAlone = namesProbe(result) && params.length === 0;
  if (isAlone) return { shows: 'no_objection' };
  if (status === 409 && !bodyCodes.has(code)) return { shows: 'conflict', code, reason: answerText(result) };
  const reason = answerText({ ...result, invalidParams: params });
  return { shows: 'objection', code, reason, parameters: params.map(({ name }) => name) };
}

/** How an API refuses a key that another request has used. */
export interface ReuseRefusal {
  readonly status: number;
  readonly code: string;
}

/** The form in which this API refuses a used key: a later refusal of this form has the same meaning. @assumption A4 */
export function reuseRefusal(result: Conclusive): ReuseRefusal {
  return { status: result.status, code: codeOf(result) };
}

/** The longest time that the origin behind a gateway may work on a request. */
export const gatewayMs = 15 * minute;

/** The answer for a message: status, code, and the reasons of the API, such as `409 ip_in_use · …`. */
export function answerText({ status, code, title, detail, invalidParams }: Conclusive): string {
  const fields = (invalidParams ?? []).map(({ name, reason }) => `${name}: ${reason}`);
  const said = [detail ?? title, ...fields].flatMap((each) => each?.replace(/(?<!\.)\.$/, '') || []);
  return [`${status}${code == null ? '' : ` ${code}`}`, ...said].join(' · ');
}
