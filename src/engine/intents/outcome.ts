import { type Conclusive, probeField, type WriteResult } from '../../core/ports.ts';
import type { TaskId } from '../../core/resources.ts';
import type { Intent, KeyQuestion, WhyUnknown } from '../../core/state.ts';

/** No host has the cards free. @source API §4 */
export const noCapacity = 'no_gpu_capacity';

/** Which writes a refusal speaks for beside its own. */
export type HoldScope =
  /** 402: all that adds spending. */
  | 'spending'
  /** 403: writes of that name. */
  | 'operation'
  /** 401, 405, 415, and a token that may only read: every write. */
  | 'everything';

/** What to do after one send. `code` and `reason` are for people. */
export type Disposition =
  /** It is certain that it took effect, or is about to. */
  | { readonly do: 'accept'; readonly task: TaskId | null; readonly breach?: string }
  /** No effect, nothing stored: the same key and bytes again, not before `afterMs`. */
  | {
      readonly do: 'wait';
      readonly afterMs: number;
      readonly code: string;
      readonly reason: string;
      /** Nothing may ever change about it: the key may have been used for another body. @assumption A4 */
      readonly doubted?: true;
    }
  /** No host has the cards; the next preference has its own key. */
  | { readonly do: 'next_preference'; readonly reason: string }
  /** No effect, and the refusal is stored: a new key, once `until` has come. */
  | {
      readonly do: 'refuse';
      readonly code: string;
      readonly reason: string;
      /** `token`: another token is asked at once. */
      readonly until: 'file' | 'replan' | 'now' | 'token';
      /** The parameters that the refusal names. */
      readonly parameters?: readonly string[];
      readonly hold?: HoldScope;
      /** What it speaks for in later runs, where that is less. */
      readonly later?: HoldScope;
    }
  /** Its effect is unknown: the key of a creation is asked, lists tell of the rest; not before `afterMs`. */
  | {
      readonly do: 'look';
      readonly afterMs: number;
      readonly why: WhyUnknown;
      readonly reason: string;
      /** Where the question to the key goes on; left out where it is asked from the start. */
      readonly stage?: KeyQuestion['stage'];
      /** The original bytes were refused as another request. */
      readonly conflict?: true;
    }
  /** Nothing is known that was not known before: the same is asked again once the hold is over. */
  | {
      readonly do: 'hold';
      readonly code: string;
      readonly reason: string;
      readonly hold: HoldScope;
      readonly later: HoldScope;
    };

/** What waits are reckoned from. */
export interface Pace {
  readonly requestTimeoutMs: number;
  /** In [0, 1): up to a tenth more, so that clients do not march in step. */
  readonly jitter: number;
  /** Waits of this intent so far. */
  readonly waits: number;
  /** `Retry-After` is in real seconds, whatever the clock. */
  readonly timeScale: number;
}

const second = 1000;
const minute = 60 * second;

/**
 * The outcome table, row by row: what one answer means for the write it answers.
 *
 * A refusal answers only its own send. Where an earlier send of the same intent may have
 * had its effect, a refusal of the resend says nothing about that, and evidence goes first.
 *
 * @source API §7, §8
 */
export function disposition(
  result: WriteResult,
  intent: Pick<Intent, 'ambiguous' | 'verb' | 'why' | 'question' | 'doubted'> & {
    /** It is a creation, whose key can be asked. */
    readonly asks: boolean;
  },
  pace: Pace,
): Disposition {
  const { requestTimeoutMs, jitter, waits } = pace;
  const settleMs = requestTimeoutMs + 30 * second;
  const { asks } = intent;
  switch (result.type) {
    case 'unsent':
      return wait(backoff(second, minute, waits, jitter), 'unreachable', result.reason);
    case 'ambiguous':
      return { do: 'look', afterMs: settleMs, why: 'lost', reason: result.reason };
    case 'answer':
      if (result.status < 300) return accepted(result, asks, settleMs);
      if (result.status >= 500) return serverError(result, asks, settleMs);
      // What is replayed is the answer to these very bytes, and nothing else is stored under the key.
      if (intent.ambiguous && asks && !result.replayed) return refusalOfResend(result, pace);
      if (intent.doubted === true && asks && !result.replayed && !isWaitedOut(result))
        return refusalInDoubt(result);
      if (intent.ambiguous && !asks && (result.status !== 429 || result.replayed)) {
        const why = result.status === 409 ? 'conflict' : 'refused';
        return { do: 'look', afterMs: settleMs, why, reason: saysNothing(result) };
      }
      if (result.status === 404 && intent.verb === 'delete') {
        return { do: 'look', afterMs: settleMs, why: 'not_found', reason: told(result) };
      }
      return refusal(result, intent, pace);
  }
}

function accepted(result: Conclusive, asks: boolean, settleMs: number): Disposition {
  if (result.malformed !== undefined) {
    const reason = `${result.status} with a body that cannot be read: ${result.malformed}`;
    // It is stored, and replayed in full. @source API §8.1
    if (asks) return { do: 'look', afterMs: second, why: 'unreadable', reason, stage: 'taken' };
    return { do: 'look', afterMs: settleMs, why: 'unreadable', reason };
  }
  const { task } = result;
  if (task === 'missing') {
    return {
      do: 'accept',
      task: null,
      breach: 'the answer has no `task` member, which it should always have',
    };
  }
  if (task === undefined || task === null) {
    return result.status === 202
      ? { do: 'accept', task: null, breach: '202 without a task' }
      : { do: 'accept', task: null };
  }
  const breach = result.status === 202 ? {} : { breach: `${result.status} with a task` };
  return { do: 'accept', task: task.id, ...breach };
}

function serverError(result: Conclusive, asks: boolean, settleMs: number): Disposition {
  const why = gateway(result.status) ? 'gateway_error' : 'server_error';
  const afterMs = asks && why === 'gateway_error' ? gatewayMs : settleMs;
  return { do: 'look', afterMs, why, reason: told(result) };
}

/** The refusal of a creation's resend says nothing of the sends before it, whose answer the key may hold. */
function refusalOfResend(result: Conclusive, pace: Pace): Disposition {
  const { status } = result;
  const code = codeOf(result);
  const reason = saysNothing(result);
  const held = holding(result, reason);
  if (held !== undefined) return held;
  // The key is asked under another token.
  if (isOfToken(result)) return { do: 'look', afterMs: second, why: 'refused', reason, stage: 'asking' };
  if (status === 429) return wait(0, code, reason);
  if (status === 409 && (result.retryAfterMs !== undefined || stateCodes.has(code)))
    return waitOut(result, code, reason, pace);
  // The probe tells whether the key is held by another request, or by the probe itself.
  const conflict = status === 409 || mayBeReusedKey(result, code, true);
  if (conflict) return { do: 'look', afterMs: second, why: 'conflict', reason, stage: 'asking', conflict };
  return { do: 'look', afterMs: second, why: 'refused', reason, stage: 'open' };
}

/** The key may have been used for another body, so only the key tells whether the next one is safe. @assumption A4 */
function refusalInDoubt(result: Conclusive): Disposition {
  return (
    holding(result, told(result)) ?? {
      do: 'look',
      afterMs: second,
      why: 'conflict',
      reason: told(result),
      stage: 'asking',
    }
  );
}

/** It is sent again under the same key. */
function isWaitedOut(result: Conclusive): boolean {
  return result.status === 429 || (result.status === 409 && codeOf(result) !== noCapacity);
}

/** Where the refusal speaks for more than its own send. */
function holding(result: Conclusive, reason: string): (Disposition & { readonly do: 'hold' }) | undefined {
  const { status } = result;
  if (isOfToken(result)) return undefined;
  const code = codeOf(result);
  const hold = code === 'insufficient_scope' ? 'everything' : holds[status];
  if (hold === undefined) return undefined;
  const bug = status === 405 || status === 415;
  return { do: 'hold', code, reason, hold, later: bug ? 'operation' : hold };
}

/** The refusal speaks for one of several tokens, so it holds nothing. */
function isOfToken({ ofToken, status }: Conclusive): boolean {
  return ofToken === true && status !== 429;
}

function saysNothing(result: Conclusive): string {
  return `${told(result)}, which says nothing of the send before`;
}

function refusal(
  result: Conclusive,
  { asks, why, question }: Pick<Intent, 'why' | 'question'> & { readonly asks: boolean },
  pace: Pace,
): Disposition {
  const code = codeOf(result);
  const reason = told(result);
  // Another token does it, under a new key: the refusal may be stored under this one.
  if (isOfToken(result)) return { do: 'refuse', code, reason, until: 'token' };
  // A token that may not write at all may do no other write either. @source API §5
  const hold = code === 'insufficient_scope' ? 'everything' : holds[result.status];
  // Under a new key the same entry is refused again where its refusal was fresh a moment ago, and not where it was old.
  const wasFresh = why === 'refused' && question?.stage === 'taken';
  if (result.replayed && hold === undefined)
    return { do: 'refuse', code, reason, until: wasFresh ? 'file' : 'now', ...parametersOf(result) };
  // Sent again, the refusal of these bytes is replayed; the refusal of another request's key is not.
  if (asks && mayBeReusedKey(result, code, asks))
    return { do: 'look', afterMs: second, why: 'refused', reason, stage: 'taken' };
  // An earlier state deleted another resource under this key, so this deletion was not carried out.
  if (!asks && mayBeReusedKey(result, code, asks)) return { do: 'refuse', code, reason, until: 'now' };
  switch (result.status) {
    case 429:
      return wait(0, code, reason);
    case 409:
      if (code === noCapacity) {
        return { do: 'next_preference', reason };
      }
      return waitOut(result, code, reason, pace);
    case 404:
      return { do: 'refuse', code, reason, until: 'replan' };
    default:
      if (hold !== undefined) {
        const bug = result.status === 405 || result.status === 415;
        const told = bug ? `${reason} (a bug of vdcsync: please report it)` : reason;
        // Such a mistake stops a run, and is one operation's.
        const later = bug ? 'operation' : hold;
        return { do: 'refuse', code, reason: told, until: 'replan', hold, later };
      }
      return { do: 'refuse', code, reason, until: 'file', ...parametersOf(result) };
  }
}

function parametersOf({ invalidParams = [] }: Conclusive): { readonly parameters?: readonly string[] } {
  return invalidParams.length === 0 ? {} : { parameters: invalidParams.map(({ name }) => name) };
}

/** As long as the API says, or longer and longer. */
function waitOut(
  result: Conclusive,
  code: string,
  reason: string,
  { jitter, waits, timeScale }: Pace,
): Disposition {
  if (result.retryAfterMs !== undefined)
    return wait(Math.min(result.retryAfterMs, 10 * minute) * timeScale * (1 + jitter / 10), code, reason);
  const doubted = !result.replayed && !stateCodes.has(code);
  return {
    ...wait(backoff(5 * second, 5 * minute, waits, jitter), code, reason),
    ...(doubted ? { doubted } : {}),
  };
}

/** What a refusal of the status speaks for beside its own write. */
export const holds: Readonly<Record<number, HoldScope>> = {
  401: 'everything',
  402: 'spending',
  403: 'operation',
  405: 'everything',
  415: 'everything',
};

/** What the state of a resource can be refused with. @source API §7 */
const stateCodes: ReadonlySet<string> = new Set([
  'ip_in_use',
  'server_busy',
  noCapacity,
  'firewall_no_public_iface',
]);

/** What a body can be refused with, where no field is named. @source API §7 */
const bodyCodes: ReadonlySet<string> = new Set([
  'image_not_supported',
  'resources_managed_by_package',
  'gpu_package_required',
  'gpu_package_not_found',
  'gpus_not_supported',
  'disk_type_not_supported',
  'server_type_not_supported',
]);

function codeOf({ code, status }: Conclusive): string {
  return code ?? `http_${status}`;
}

/** The refusal of a key that was used for another body has no known code. @assumption A4 */
function mayBeReusedKey({ status, invalidParams = [] }: Conclusive, code: string, asks: boolean): boolean {
  // A 409 is waited out under the same key.
  if (status === 409) return false;
  if ([code, ...invalidParams.map(({ name }) => name)].some((each) => /idempotency/i.test(each))) return true;
  const ofBody = invalidParams.length > 0 || bodyCodes.has(code);
  return asks && !ofBody && (status === 400 || status === 422);
}

/** 1, 2, 4, … times `first`, at most `most`, and the jitter. */
export function backoff(first: number, most: number, times: number, jitter: number): number {
  return Math.min(first * 2 ** Math.min(times, 20), most) * (1 + jitter / 10);
}

function wait(afterMs: number, code: string, reason: string): Disposition & { readonly do: 'wait' } {
  return { do: 'wait', afterMs, code, reason };
}

/** What the answer to a probe shows of its key. */
export type ProbeAnswer =
  /** The probe's own refusal is stored, so nothing else ever was. */
  | 'fenced'
  /** Another answer is stored. */
  | 'taken'
  /** A refusal of the probe's body that was not replayed. */
  | 'fresh'
  /** Nothing: it is asked again later. */
  | 'nothing';

/**
 * Reads the refusal of a probe. The probe's bytes are the same each time, so a replayed refusal is the probe's own.
 *
 * @param reuse how this API refuses a key that another request has used, where that is known
 * @source API §8.1 to §8.4
 */
export function probeAnswer(result: Conclusive, reuse: ReuseRefusal | undefined): ProbeAnswer {
  const { status, replayed, invalidParams = [] } = result;
  if (status >= 500 || status === 429 || holds[status] !== undefined) return replayed ? 'fenced' : 'nothing';
  if (replayed) return 'fenced';
  if (invalidParams.some(({ name }) => name.includes(probeField))) return 'fresh';
  if (reuse !== undefined && reuse.status === status && reuse.code === codeOf(result)) return 'taken';
  return status === 400 || status === 422 ? 'taken' : 'nothing';
}

/** How an API refuses a key that another request has used. */
export interface ReuseRefusal {
  readonly status: number;
  readonly code: string;
}

export function reuseRefusal(result: Conclusive): ReuseRefusal {
  return { status: result.status, code: codeOf(result) };
}

/** The origin behind a gateway may work that long. */
export const gatewayMs = 15 * minute;

/** The origin behind a gateway may still be at work. */
function gateway(status: number): boolean {
  return status === 502 || status === 504;
}

export function told({ status, code, title, detail, invalidParams }: Conclusive): string {
  const fields = (invalidParams ?? []).map(({ name, reason }) => `${name}: ${reason}`);
  const said = [detail ?? title, ...fields].flatMap((each) => each?.replace(/(?<!\.)\.$/, '') || []);
  return [`${status}${code == null ? '' : ` ${code}`}`, ...said].join(' · ');
}
