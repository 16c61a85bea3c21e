import { takeApart } from '../../core/keys.ts';
import type { Operation, Spend } from '../../core/plan.ts';
import type { Conclusive, WriteResult } from '../../core/ports.ts';
import type { TaskId } from '../../core/resources.ts';
import type { Intent, IntentPatch } from '../../core/state.ts';
import { draftOne, operationsOf } from '../../plan/draft.ts';
import { waysOut } from '../../plan/open-writes.ts';
import type { Run } from '../run.ts';
import { nextPreference } from './capacity.ts';
import { replayed, wasReplayed } from './closing-words.ts';
import { giveUp, mayHaveBought } from './doubt.ts';
import { isSaidAbsent, unbrokenRow } from './earlier-attempts.ts';
import { again, block, close, goOn, minutes, type Progress, packageOf, warn } from './endings.ts';
import { finish, keyIsFresh, lookForEffect } from './evidence.ts';
import { type Disposition, disposition, doubtedKey, noCapacity } from './outcome.ts';
import { secondHalfHeld } from './replacement.ts';
import { givenOnTo, giveOn, leftBy } from './reused-id.ts';
import { lift, remember } from './standing-holds.ts';
import { boughtMeanwhile, stillAsked } from './still-asked.ts';

/** Refusals in a row that were replayed, each under another key, before a person hears of it. */
const mostReplayed = 5;
/**
 * How long what a write was decided on holds, in ms from the look. The look's own reads may
 * be a minute old, so that of a slow turn the next one can use what was read last.
 */
export const lookHoldsMs = 30_000;
/** The same up to the first byte: a machine may stand still between the record and the send. */
const sendHoldsMs = 60_000;

/** Of what the intent is a half, as the plan says. */
type Half = Pick<Operation, 'replacement'>;

/**
 * Takes an open intent one step further: sends it, waits for its task, or looks for
 * evidence, as its phase says (see `IntentPhase`). Called again until it is closed or blocked.
 * `halt` ends the wait for its task.
 */
export async function advance(
  run: Run,
  intent: Intent,
  half: Half = {},
  halt: AbortSignal = run.halt,
): Promise<Progress> {
  const heir = givenOnTo(intent);
  if (heir !== undefined) return endGivenOn(run, intent, heir);
  if (intent.phase !== 'blocked' && serverIsGone(run, intent)) return endWithServer(run, intent);
  switch (intent.phase) {
    case 'sending': {
      // The process ended between the record and the answer: it may have been sent.
      const why = intent.why ?? 'lost';
      return goOn(run, intent, { phase: 'unknown', ambiguous: true, why, lost: (intent.lost ?? 0) + 1 });
    }
    case 'waiting': {
      const wait = run.stopwatch.until(intent.id, 'due', intent.dueAt);
      return wait > 0 ? again(wait) : resend(run, intent, half);
    }
    case 'unknown':
      return lookForEffect(run, intent);
    case 'accepted':
      return finish(run, intent, halt);
    case 'blocked':
      return {
        now: 'blocked',
        code: intent.blocked?.code ?? 'blocked',
        reason: intent.blocked?.reason ?? '',
      };
    case 'closed':
      throw new Error(`${intent.id} is closed`);
  }
}

/** A machine that stood still may have stopped either of its clocks, and not the other. */
export function sinceLook({ deps: { clock } }: Run): (holdsMs: number) => boolean {
  const [monotonic, wall] = [clock.monotonic(), clock.now()];
  return (holdsMs) => clock.monotonic() - monotonic <= holdsMs && Math.abs(clock.now() - wall) <= holdsMs;
}

/**
 * Sends an intent that is durable, under the token that the fence was passed with, and
 * records what came back before anything else happens.
 */
export async function send(
  run: Run,
  intent: Intent,
  token: string,
  holds: (ms: number) => boolean,
): Promise<Progress> {
  const { deps } = run;
  const chosen = [intent.request.name, intent.idempotencyKey, packageOf(intent)];
  run.tell(intent, 'sent', chosen.filter((each) => each !== '').join(' '));
  const keyInDoubt = run.kindOf(intent.kind).billed !== false && !(await isSaidAbsent(run, intent));
  run.stopwatch.mark(intent.id, 'sent');
  // Up to its first byte it may wait long for a connection.
  const mayGo = () => holds(sendHoldsMs) && deps.store.isOwned?.() !== false;
  const result = await deps.writes.send(intent.request, intent.idempotencyKey, token, mayGo);
  run.cache.forget(intent.request);
  if (result.type === 'unsent' && !mayGo()) {
    const phase = intent.ambiguous ? 'unknown' : 'waiting';
    return goOn(run, intent, { phase, dueAt: deps.clock.now(), detail: result.reason });
  }
  const next = disposition(
    result,
    { ...intent, keyInDoubt },
    {
      requestTimeoutMs: deps.requestTimeoutMs,
      jitter: deps.random.next(),
      waits: intent.sends - 1,
      timeScale: deps.profile.timeScale,
    },
  );
  return record(run, intent, result, next);
}

/** Once more, under the same key: nothing of the earlier sends is there. */
function resend(run: Run, intent: Intent, half: Half): Promise<Progress> {
  return inTurn(run, intent, () => resendNow(run, intent, half));
}

/** Waits for the turn to write; the look that it needs is taken when the turn is near. */
export function inTurn<Result>(
  run: Run,
  of: Pick<Intent, 'key' | 'kind' | 'verb'>,
  write: () => Promise<Result>,
): Promise<Result> {
  run.tell(of, 'queued', 'for its turn');
  const look = () => void run.lookAgain(of.key).catch(() => undefined);
  return run.gate.run(run.kindOf(of.kind).urgency, write, run.stop, look);
}

async function resendNow(run: Run, intent: Intent, half: Half): Promise<Progress> {
  run.stop.throwIfAborted();
  const { writes, clock } = run.deps;
  const held = run.heldBy(intent.request, spendOf(run, intent));
  // A hold is no ending, so the intent stays open.
  if (held !== undefined) return { now: 'blocked', ...held };
  await writes.room(run.stop);
  run.gate.readyNext();
  const holds = sinceLook(run);
  // An id may stand for something else by now, so a deletion is looked at again whatever is known. @assumption A17
  if (!intent.ambiguous || intent.verb === 'delete') {
    const world = await run.lookAgain(intent.key);
    if (stillAsked(run, world, intent) !== undefined)
      return giveUp(run, intent, 'the project has moved since', { retryAfterMs: 0 });
    const waits = await secondHalfHeld(run, world, intent);
    if (waits !== undefined) return waits;
    const bought = intent.ambiguous ? undefined : await boughtMeanwhile(run, world, { ...half, ...intent });
    if (bought?.now === 'again') return bought;
    // Begun anew, it is judged as any other.
    if (bought !== undefined)
      return giveUp(run, intent, 'reason' in bought ? bought.reason : bought.now, { retryAfterMs: 0 });
  }
  const token = await run.fence();
  if (!holds(lookHoldsMs)) return again(0);
  if (!keyIsFresh(run, intent))
    return newKey(run, intent, 'key_too_old', 'its idempotency key is too old to be sent again');
  if (intent.sentAs !== undefined && intent.sentAs !== writes.digest(intent.request))
    return newKey(
      run,
      intent,
      'profile_changed',
      'the API profile, or a variable of the environment, would have it sent as another request',
    );
  const sending = await run.update(intent, {
    phase: 'sending',
    sends: intent.sends + 1,
    lastSentAt: clock.now(),
    clear: ['notSeenAt'],
  });
  return send(run, sending, token, holds);
}

/** Its key cannot be used again; another one can, where nothing may have come of this one. */
function newKey(run: Run, intent: Intent, code: string, reason: string): Promise<Progress> {
  if (intent.ambiguous || mayHaveBought(run, intent)) return block(run, intent, code, reason);
  return close(run, intent, 'refused', `${reason}; ${intent.detail ?? ''}`, { retryAfterMs: 0 });
}

/** As the file and the project are now: what is sent again is still asked for, in the same words. */
function spendOf(run: Run, { key, kind, verb }: Intent): Spend {
  const subject = run.world.subjects.get(key);
  const drafted = subject && operationsOf(draftOne(run.deps.kinds, run.world, subject));
  const asked = drafted?.find((each) => each.verb === verb);
  if (asked !== undefined) return asked.spend;
  if (!run.kindOf(kind).billed || verb === 'update') return 'none';
  return verb === 'delete' ? 'reduces' : 'adds';
}

async function record(run: Run, intent: Intent, result: WriteResult, next: Disposition): Promise<Progress> {
  const requestId = result.type === 'answer' ? { requestId: result.requestId } : {};
  if (result.type === 'answer') run.requestIds.set(intent.key, result.requestId);
  switch (next.do) {
    case 'accept':
      return accept(run, intent, result as Conclusive, next.task, next.breach);
    case 'wait':
      return waitAndResend(run, intent, next, requestId);
    case 'next_preference':
      if (mayHaveBought(run, intent)) return refusedInDoubt(run, intent, noCapacity, next.reason);
      return nextPreference(run, intent, next.reason);
    case 'refuse':
      return refused(run, await run.update(intent, requestId), next);
    case 'look':
      return waitAndLook(run, intent, next, result);
  }
}

/** It had no effect, and goes out again under the same key. */
async function waitAndResend(
  run: Run,
  intent: Intent,
  next: Disposition & { readonly do: 'wait' },
  requestId: IntentPatch,
): Promise<Progress> {
  const { afterMs, reason } = next;
  const now = run.deps.clock.now();
  const patch: IntentPatch = {
    phase: intent.ambiguous ? 'unknown' : 'waiting',
    dueAt: now + afterMs,
    detail: reason,
    ...(next.doubted === true ? { doubted: true } : {}),
    ...requestId,
  };
  const progress = await goOn(run, intent, patch, afterMs);
  const waitedMs = Math.max(0, now - intent.createdAt);
  if (waitedMs > run.kindOf(intent.kind).deadlineMs)
    return stillRefused(run, intent, next, `still so after ${minutes(waitedMs)}: ${reason}`);
  run.tell(intent, 'waiting', reason, { untilMs: now + afterMs, code: next.code });
  return progress;
}

/** Nobody knows whether it had its effect: evidence decides. */
function waitAndLook(
  run: Run,
  intent: Intent,
  next: Disposition & { readonly do: 'look' },
  result: WriteResult,
): Promise<Progress> {
  const { afterMs, reason } = next;
  const dueAt = run.deps.clock.now() + afterMs;
  const unanswered = next.why !== 'conflict' && next.why !== 'refused' && next.why !== 'not_found';
  const answer = result.type === 'answer' ? result : undefined;
  const code = answer?.code == null ? {} : { code: answer.code };
  run.tell(intent, 'waiting', reason, { untilMs: dueAt, ...code });
  const patch: IntentPatch = {
    phase: 'unknown',
    ambiguous: true,
    // What has taken effect is never to have a new key, whatever its resends are answered.
    why: intent.why === 'unreadable' ? intent.why : next.why,
    ...(next.doubted === true ? { doubted: true } : {}),
    lost: (intent.lost ?? 0) + (unanswered ? 1 : 0),
    dueAt,
    detail: reason,
    ...(answer === undefined ? {} : { requestId: answer.requestId }),
  };
  return goOn(run, intent, patch, afterMs);
}

/** It goes on being asked for; where no state may be what is in the way, a person can have it sent under another key. */
function stillRefused(
  run: Run,
  intent: Intent,
  { code, doubted }: Disposition & { readonly do: 'wait' },
  reason: string,
): Progress {
  if (doubted !== true) return { now: 'blocked', code, reason };
  const resolve = ['vdcsync apply (once the cause is gone)', ...waysOut(intent, { world: run.world })];
  return { now: 'blocked', code, reason: `${reason}; ${doubtedKey}`, resolve: resolve.join(' | ') };
}

/** Ids only: what is replayed was true once. */
async function accept(
  run: Run,
  intent: Intent,
  answer: Conclusive,
  task: TaskId | null,
  breach: string | undefined,
): Promise<Progress> {
  const accepted = run.kindOf(intent.kind).accept(answer, intent.request, intent.preimage);
  if (intent.verb === 'create' && accepted.id !== undefined && !answer.replayed)
    await giveOn(run, intent, accepted.id);
  if (!answer.replayed) await lift(run.deps, { ...intent, spend: spendOf(run, intent) });
  if (intent.kind === 'server' && intent.verb === 'create')
    run.openSince.set(intent.key, run.deps.clock.monotonic());
  if (breach !== undefined) warn(run, intent.key, 'contract_breach', `${intent.request.name}: ${breach}`);
  // It may answer an earlier send of this intent, or one that this state never knew.
  const replay = answer.replayed ? { replay: true, ...(intent.ambiguous ? { own: true } : {}) } : {};
  run.stopwatch.mark(intent.id, 'accepted');
  return goOn(run, intent, {
    phase: 'accepted',
    ambiguous: false,
    acceptedAt: run.deps.clock.now(),
    requestId: answer.requestId,
    ...(task === null ? {} : { taskId: task }),
    ...(accepted.id === undefined ? {} : { resourceId: accepted.id }),
    facts: { ...(accepted.facts as object), ...replay },
    ...(breach !== undefined && task === null
      ? { why: 'no_task', clear: ['doubted', 'notSeenAt'] }
      : { clear: ['why', 'doubted', 'notSeenAt'] }),
  });
}

async function refused(
  run: Run,
  intent: Intent,
  { code, reason, until, hold, later }: Disposition & { readonly do: 'refuse' },
): Promise<Progress> {
  if (hold !== undefined) {
    run.hold(hold, intent.request, { code, reason });
    await remember(run.deps, later ?? hold, intent, { code, reason });
  }
  if (mayHaveBought(run, intent)) return refusedInDoubt(run, intent, code, reason);
  switch (until) {
    case 'file':
      return block(run, intent, code, reason, { until });
    case 'person':
      return block(run, intent, code, reason);
    case 'now': {
      const detail = replayed(reason);
      const before = await unbrokenRow(run, intent, wasReplayed);
      return before.length + 1 < mostReplayed
        ? close(run, intent, 'refused', detail, { retryAfterMs: 0 })
        : block(run, intent, code, `${reason}; ${mostReplayed} keys in a row were answered so`);
    }
    case 'replan':
      await close(run, intent, 'refused', reason);
      return { now: 'blocked', code, reason };
  }
}

/** A refusal answers its own send alone, and says nothing of what the key was used for before. */
function refusedInDoubt(run: Run, intent: Intent, code: string, reason: string): Promise<Progress> {
  return block(run, intent, code, reason.includes(doubtedKey) ? reason : `${reason}; ${doubtedKey}`);
}

/** Its server has gone or is another one now, so what was asked for inside it has lost its object. */
function serverIsGone(run: Run, { key, kind, parentId }: Intent): boolean {
  const { parent } = takeApart(key);
  if (parent === undefined || parentId === undefined || run.kindOf(kind).outlivesParent) return false;
  return run.world.idOf(parent) !== parentId;
}

function endWithServer(run: Run, intent: Intent): Promise<Progress> {
  const reason = 'its server is gone';
  if (run.kindOf(intent.kind).billed && (intent.phase !== 'waiting' || mayHaveBought(run, intent)))
    return block(run, intent, 'outcome_unknown', `${reason}, and with it every way to see what was made`);
  return close(run, intent, 'absent', reason);
}

/** What it made is gone, beyond doubt, and is made again under a key of its own. */
async function endGivenOn(run: Run, intent: Intent, heir: string): Promise<Progress> {
  const wait = run.stopwatch.until(intent.id, 'due', intent.dueAt);
  if (wait > 0) return again(wait);
  const left = await leftBy(run, intent);
  if (left === undefined) return again(0);
  const changes = [{ type: 'next_incarnation', key: intent.key } as const, ...left];
  return close(run, intent, 'absent', `the id of what it made was given to ${heir}`, { changes });
}
