import type { Code } from '../../core/codes.ts';
import { effectOf, partsOf } from '../../core/intent.ts';
import { nounOf, type ResourceKey } from '../../core/keys.ts';
import type { Remedy } from '../../core/remedy.ts';
import type {
  Ended,
  Intent,
  IntentOutcome,
  IntentPatch,
  KeyQuestion,
  Question,
  StateChange,
  Unconfirmed,
  WhyUnknown,
} from '../../core/state.ts';
import type { Run } from '../run.ts';

/** The progress of an intent after one step. */
export type Progress =
  /** The next step of the same intent, not before `afterMs`. */
  | Again
  /** Closed. `done`: the write took effect. Any other outcome with `retryAfterMs`: the operation may begin again. */
  | {
      readonly now: 'closed';
      readonly outcome: IntentOutcome;
      readonly retryAfterMs?: number;
      readonly detail: string;
    }
  /** The intent stays open until the operator, the spec or time changes something. */
  | Stopped;

/** `until`: the step waits for the end of the open write of that key. */
export interface Again {
  readonly now: 'again';
  readonly afterMs: number;
  readonly until?: ResourceKey;
}

/**
 * The intent needs an operator. `remedies`: the ways out, if another apply after the end of the cause is not enough.
 */
export interface Stopped {
  readonly now: 'blocked';
  readonly code: string;
  readonly reason: string;
  readonly remedies?: readonly Remedy[];
}

/** The same intent continues after this time in ms; 0: without a wait. */
export function again(afterMs: number): Again {
  return { now: 'again', afterMs };
}

/** Checks every few seconds whether the write of the other key has ended. */
export function awaitEnd(until: ResourceKey): Again {
  return { now: 'again', afterMs: 5_000, until };
}

/** The operation is blocked until the result of the creation is known, because both could take the same resource. */
export function unresolved(key: ResourceKey): Stopped {
  return {
    now: 'blocked',
    code: 'unresolved_create',
    reason: `the creation of ${key} is unconfirmed, and this creation could be confused with it`,
  };
}

/** Ends the intent. With `retryAfterMs`, the operation begins again under a new key. */
export async function close(
  run: Run,
  intent: Intent,
  ended: Ended,
  { changes = [], retryAfterMs }: { changes?: readonly StateChange[]; retryAfterMs?: number } = {},
): Promise<Progress> {
  const { outcome, text } = ended;
  await run.state.close(intent, ended, [...unconfirmedUpdate(run, intent, outcome), ...changes]);
  return { now: 'closed', outcome, detail: text, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

/** Ends the intent. The operation is blocked until a later run, or the operator, begins it again. */
export async function closeBlocked(
  run: Run,
  intent: Intent,
  ended: Ended,
  code: string,
  { reason = ended.text, changes = [] }: { reason?: string; changes?: readonly StateChange[] } = {},
): Promise<Progress> {
  await close(run, intent, ended, { changes });
  return { now: 'blocked', code, reason };
}

/**
 * An update that was sent, and not refused, may have been applied. A field that no read shows is therefore asked for
 * again.
 */
function unconfirmedUpdate(
  run: Run,
  { key, kind, verb, request }: Intent,
  outcome: IntentOutcome,
): StateChange[] {
  const binding = run.bindings.get(key);
  if (verb !== 'update' || binding === undefined || outcome === 'done' || outcome === 'refused') return [];
  const applied = run.kindOf(kind).unseen?.doubt?.(binding, request);
  return applied === undefined ? [] : [{ type: 'bind', binding: { ...binding, applied } }];
}

/** The reason why a write is no longer wanted, with the last answer of the API for the history. */
export function after(why: string, intent: Intent): string {
  const said = partsOf(intent).blocked?.reason ?? intent.detail;
  return said === '' ? why : `${said}; given up later: ${why}`;
}

/** Leaves the decision to the operator, or to the spec. */
export async function block(
  run: Run,
  intent: Intent,
  code: string,
  reason: string,
  more: Partial<Question> = {},
): Promise<Progress> {
  const blocked = { code, reason, candidates: [], ...more };
  await run.state.update(intent, { stage: { phase: 'blocked', blocked, ...effectOf(intent) } });
  return { now: 'blocked', code, reason };
}

/** Records the patch, and continues with the intent. */
export async function goOn(run: Run, intent: Intent, patch: IntentPatch, afterMs = 0): Promise<Progress> {
  await run.state.update(intent, patch);
  if (patch.dueAt !== undefined) run.stopwatch.mark(intent.id, 'due', afterMs);
  return again(afterMs);
}

/** The question that the reads after an accepted write answer. */
export function questionAbout({ kind, verb }: Intent): string {
  const noun = nounOf(kind);
  switch (verb) {
    case 'create':
      return `whether the new ${noun} is ready`;
    case 'update':
      return `whether the ${noun} has changed`;
    case 'delete':
      return `whether the ${noun} is gone`;
    default:
      return `the ${noun}`;
  }
}

/** The preference that the resource was requested with, of a kind whose entry may list several. */
export function sentPreference(run: Run, { kind, request }: Intent): string | undefined {
  return run.kindOf(kind).preferences?.sent(request);
}

/** The end of an attempt, and the number of equal ends before the operator is asked. */
interface Ending extends Ended {
  /** The code of the question to the operator. */
  readonly code: string;
  readonly most: number;
  /** The state changes of this end. */
  readonly changes?: readonly StateChange[];
}

/** The operation begins again unless this number of attempts (`most`) has ended the same way already. */
export async function closeAndRetry(
  run: Run,
  intent: Intent,
  { code, most, changes = [], ...ended }: Ending,
): Promise<Progress> {
  const past = await run.deps.store.intents({ key: intent.key, limit: 50 });
  const before = past.filter(
    (each) =>
      each.verb === intent.verb &&
      each.incarnation === intent.incarnation &&
      partsOf(each).outcome === ended.outcome,
  );
  if (before.length < most) return close(run, intent, ended, { changes, retryAfterMs: 0 });
  return closeBlocked(run, intent, ended, code, { changes });
}

/** Replayed answers in a row, each under another key, before the operator is asked. */
export const mostReplayed = 5;

/**
 * The attempts at this resource before this attempt, newest first, up to the first attempt that ended in another way.
 */
export async function unbrokenRow(
  run: Run,
  { id, key }: Intent,
  endedSo: (past: Intent) => boolean,
): Promise<readonly Intent[]> {
  const past = (await run.deps.store.intents({ key, limit: 2_000 })).filter((each) => each.id !== id);
  const end = past.findIndex((each) => !endedSo(each));
  return end === -1 ? past : past.slice(0, end);
}

/** Reports a warning to the output of this run. The state does not record it. */
export function warn(run: Run, key: ResourceKey, code: Code, message: string): void {
  run.deps.onEvent?.({ type: 'warning', at: run.deps.clock.now(), warning: { code, key, message } });
}

/** A duration for a message, in whole minutes. */
export function minutes(ms: number): string {
  return `${Math.round(ms / 60_000)} min`;
}

/** A key of this age is not sent again: the API forgets it after 24 h. @source API §8 @assumption A3 */
const keyLifeMs = 23 * 3_600_000;

/** Whether the key is young enough to be sent again. The local clock may have been set back. */
export function keyIsFresh(run: Run, sent: Pick<Intent, 'firstSentAt' | 'firstSentApiAt'>): boolean {
  return run.deps.clock.now() >= sent.firstSentAt && keyMayBeKnown(run, sent);
}

/** Whether the API may know the key. After the local clock was set back, the key may be young. */
export function keyMayBeKnown(
  run: Run,
  { firstSentAt, firstSentApiAt }: Pick<Intent, 'firstSentAt' | 'firstSentApiAt'>,
): boolean {
  return Math.max(run.deps.clock.now() - firstSentAt, sinceApiMs(run, firstSentApiAt)) < keyLifeMs;
}

/**
 * Whether the state has recorded nothing for so long that the API has forgotten the first key of a server that a newer
 * copy of the state has created, and replaced since.
 */
export async function isDormant({ deps: { store, clock } }: Run): Promise<boolean> {
  const [last] = await store.journal({ limit: 1 });
  return last !== undefined && Math.abs(clock.now() - last.at) >= keyLifeMs;
}

/** The time since the moment by the API's clock, which a change of the local clock does not change. 0 if the API shows no clock. */
function sinceApiMs({ cache }: Run, apiAt: number | null): number {
  const apiNow = cache.since(0).apiNow();
  return apiNow === undefined || apiAt === null ? 0 : apiNow - apiAt;
}

/** The moment of a send, by both clocks. */
export function sentNow({ deps, cache }: Run): Pick<Intent, 'lastSentAt' | 'lastSentApiAt'> {
  return { lastSentAt: deps.clock.now(), lastSentApiAt: cache.since(0).apiNow() ?? null };
}

/** The time since the last send. A send of an earlier process counts as far as both clocks, or this process, have seen. */
export function sinceSentMs(run: Run, { id, lastSentAt, lastSentApiAt }: Intent): number {
  const { clock, requestTimeoutMs } = run.deps;
  const seenMs = run.stopwatch.since(id, 'sent', lastSentAt);
  if (run.stopwatch.isMarked(id, 'sent')) return seenMs;
  // A `Date` has whole seconds, and is as old as its answer was slow.
  const apiMs = sinceApiMs(run, lastSentApiAt) - requestTimeoutMs - 1_000;
  return Math.max(seenMs, Math.min(clock.now() - lastSentAt, apiMs));
}

/** The answer to a send that this state never made. */
export function isReplay(intent: Intent): boolean {
  return partsOf(intent).answer?.to === 'unknown_send';
}

/** Only the key of a creation is asked. Reads settle an update, and a firewall has a new key for each write. */
export function asksKey(run: Run, { verb, kind }: Pick<Intent, 'verb' | 'kind'>): boolean {
  return verb === 'create' && run.kindOf(kind).setting !== true;
}

/** A server error may have had its effect, and the API does not store it under the key. @source API §8.3 */
export function isServerError(why: WhyUnknown | undefined): boolean {
  return why === 'server_error' || why === 'gateway_error';
}

/** For a message: the reason that the task of the write gave. */
export function failureOf({ detail }: Pick<Intent, 'detail'>): string {
  return `its task failed (${detail})`;
}

/** For a message: why the effect of the write is unknown. */
export function unconfirmedText(why: WhyUnknown): string {
  return whyTexts[why];
}

const whyTexts: Readonly<Record<WhyUnknown, string>> = {
  lost: 'the answer was lost',
  conflict: 'the API refused the write, which another request may have carried out',
  reused: 'the API refused the write, because another request has used its idempotency key',
  unreadable: 'the answer was not readable',
  refused: 'the API refused a repetition of the write, and the first answer was lost',
  server_error: 'the API answered with a server error, which may have had an effect',
  gateway_error: 'a gateway answered with an error, and the API may have carried the write out',
  not_found: 'the API did not find the resource',
};

/** The question of a key that no probe has asked yet. */
export const unasked: KeyQuestion = { stage: 'asking', probes: 0 };
/** The key holds the answer to another request. */
export const conflicting: KeyQuestion = { ...unasked, stage: 'taken', conflict: true };

/** Another request may have used the key. @assumption A4 */
export const maybeUsedKey: Unconfirmed = { why: 'conflict', question: unasked };

/** For an intent without an unconfirmed send: a question that no probe has asked yet. */
export function questionOf(intent: Intent): KeyQuestion {
  return partsOf(intent).unconfirmed?.question ?? unasked;
}

/** The API has accepted the new resource of a replacement, and the old one is deleted once its creation has ended. */
export function isReplacing({ verb, phase, replaces }: Intent): boolean {
  return verb === 'create' && phase === 'accepted' && replaces !== undefined;
}

/** The key of the intent, and not a read, settles the intent next. */
export function isSettledByKey(run: Run, intent: Intent): boolean {
  const { stage } = questionOf(intent);
  return keyIsFresh(run, intent) && (stage === 'asking' || stage === 'taken');
}

/**
 * Ends a write that has had no effect so far and is not wanted any more. If another request may have used the key of
 * a creation, the key is asked first. @assumption A4
 */
export function giveUp(
  run: Run,
  intent: Intent,
  detail: string,
  options: { readonly retryAfterMs?: number } = {},
): Promise<Progress> {
  if (partsOf(intent).because === 'key_maybe_used' && asksKey(run, intent))
    return goOn(run, intent, { stage: { phase: 'unknown', unconfirmed: maybeUsedKey }, detail });
  const unconfirmed = whyUnconfirmed(run, intent);
  if (unconfirmed !== undefined)
    return block(run, intent, 'outcome_unknown', `${detail}, but ${unconfirmed}`);
  const outcome = partsOf(intent).unconfirmed === undefined ? 'refused' : 'absent';
  return close(run, intent, { outcome, text: after(detail, intent) }, options);
}

/** Another send under the same key would find a purchase that a short list hides. @assumption A8 */
function whyUnconfirmed(run: Run, intent: Intent): string | undefined {
  const { unconfirmed } = partsOf(intent);
  if (unconfirmed === undefined || intent.verb !== 'create') return undefined;
  return run.kindOf(intent.kind).billing.billed !== false
    ? `${unconfirmedText(unconfirmed.why)}, and an incomplete list would not show the resource`
    : undefined;
}
