import type { Conclusive, WriteResult } from '../../core/ports.ts';
import type { TaskId } from '../../core/resources.ts';
import type { Intent, WhyUnknown } from '../../core/state.ts';

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
      readonly until: 'file' | 'replan' | 'now' | 'person';
      readonly hold?: HoldScope;
      /** What it speaks for in later runs, where that is less. */
      readonly later?: HoldScope;
    }
  /** Only evidence can tell, not before `afterMs`. */
  | {
      readonly do: 'look';
      readonly afterMs: number;
      readonly why: WhyUnknown;
      readonly reason: string;
      /** As where it waits. */
      readonly doubted?: true;
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
  intent: Pick<Intent, 'ambiguous' | 'verb'> & {
    /** What an unknown use of its key made would be billed, and nobody has said that there is no such thing. */
    readonly keyInDoubt: boolean;
  },
  pace: Pace,
): Disposition {
  const { requestTimeoutMs, jitter, waits } = pace;
  const settleMs = requestTimeoutMs + 30 * second;
  const buys = intent.verb === 'create' && intent.keyInDoubt;
  switch (result.type) {
    case 'unsent':
      return wait(backoff(second, minute, waits, jitter), 'unreachable', result.reason);
    case 'ambiguous':
      return { do: 'look', afterMs: settleMs, why: 'lost', reason: result.reason };
    case 'answer':
      if (result.status < 300) return accepted(result, settleMs);
      if (result.status >= 500) return serverError(result, settleMs);
      if (intent.ambiguous && (result.status !== 429 || result.replayed)) {
        const why = result.status === 409 ? 'conflict' : 'refused';
        const reason = `${told(result)}, which says nothing of the send before`;
        const doubted = isDoubted(result, buys) ? { doubted: true as const } : {};
        return { do: 'look', afterMs: settleMs, why, reason, ...doubted };
      }
      if (result.status === 404 && intent.verb === 'delete') {
        return { do: 'look', afterMs: settleMs, why: 'not_found', reason: told(result) };
      }
      return refusal(result, buys, pace);
  }
}

function accepted(result: Conclusive, settleMs: number): Disposition {
  if (result.malformed !== undefined) {
    const reason = `${result.status} with a body that cannot be read: ${result.malformed}`;
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

function serverError(result: Conclusive, settleMs: number): Disposition {
  const why = gateway(result.status) ? 'gateway_error' : 'server_error';
  return { do: 'look', afterMs: settleMs, why, reason: told(result) };
}

function refusal(result: Conclusive, buys: boolean, { jitter, waits, timeScale }: Pace): Disposition {
  const code = result.code ?? `http_${result.status}`;
  const reason = told(result);
  // A token that may not write at all may do no other write either. @source API §5
  const hold = code === 'insufficient_scope' ? 'everything' : holds[result.status];
  if (result.replayed && hold === undefined) return { do: 'refuse', code, reason, until: 'now' };
  if (mayBeReusedKey(result, code, buys)) {
    return { do: 'refuse', code, reason: `${reason}; ${doubtedKey}`, until: 'person' };
  }
  switch (result.status) {
    case 429:
      return wait(0, code, reason);
    case 409:
      if (code === noCapacity) {
        return { do: 'next_preference', reason };
      }
      if (result.retryAfterMs !== undefined) {
        return wait(Math.min(result.retryAfterMs, 10 * minute) * timeScale * (1 + jitter / 10), code, reason);
      }
      return {
        ...wait(backoff(5 * second, 5 * minute, waits, jitter), code, reason),
        ...(isDoubted(result, buys) ? { doubted: true as const } : {}),
      };
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
      return { do: 'refuse', code, reason, until: 'file' };
  }
}

/** What a refusal of the status speaks for beside its own write. */
const holds: Readonly<Record<number, HoldScope>> = {
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

export const doubtedKey =
  'its idempotency key may have been used before this state knew it, and what that made may be there, billed';

/** It may be the refusal of a key that was used for another body. @assumption A4 */
function isDoubted(result: Conclusive, buys: boolean): boolean {
  const code = result.code ?? `http_${result.status}`;
  // What is replayed answered this very body.
  if (result.replayed) return false;
  if (result.status !== 409) return mayBeReusedKey(result, code, buys);
  return result.retryAfterMs === undefined && !stateCodes.has(code);
}

/** The refusal of a key that was used for another body has no known code. @assumption A4 */
function mayBeReusedKey({ status, invalidParams = [] }: Conclusive, code: string, buys: boolean): boolean {
  // A 409 is waited out under the same key.
  if (status === 409) return false;
  if ([code, ...invalidParams.map(({ name }) => name)].some((each) => /idempotency/i.test(each))) return true;
  const ofBody = invalidParams.length > 0 || bodyCodes.has(code);
  return buys && !ofBody && (status === 400 || status === 422);
}

/** 1, 2, 4, … times `first`, at most `most`, and the jitter. */
export function backoff(first: number, most: number, times: number, jitter: number): number {
  return Math.min(first * 2 ** Math.min(times, 20), most) * (1 + jitter / 10);
}

function wait(afterMs: number, code: string, reason: string): Disposition & { readonly do: 'wait' } {
  return { do: 'wait', afterMs, code, reason };
}

/** The origin behind a gateway may still be at work. */
function gateway(status: number): boolean {
  return status === 502 || status === 504;
}

function told({ status, code, title, detail, invalidParams }: Conclusive): string {
  const fields = (invalidParams ?? []).map(({ name, reason }) => `${name}: ${reason}`);
  const said = [detail ?? title, ...fields].flatMap((each) => each?.replace(/(?<!\.)\.$/, '') || []);
  return [`${status}${code == null ? '' : ` ${code}`}`, ...said].join(' · ');
}
