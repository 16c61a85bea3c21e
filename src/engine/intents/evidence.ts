import { nounOf } from '../../core/keys.ts';
import type { Evidence } from '../../core/kind.ts';
import { fitsPath } from '../../core/path-id.ts';
import type { TaskId } from '../../core/resources.ts';
import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { absenceGapMs, staleMs } from '../staleness.ts';
import { leftByFailed } from './bound-by.ts';
import {
  again,
  awaitEnd,
  block,
  close,
  closeAndRetry,
  goOn,
  minutes,
  type Progress,
  settled,
  tainted,
} from './endings.ts';
import { isReplay } from './ignored-answer.ts';
import { notThere } from './not-there.ts';
import { gatewayMs } from './outcome.ts';
import { asksKey, isServerError, questionOf } from './question.ts';

const minute = 60_000;
/** A key of this age is not sent again: the API forgets it after 24 h. @source API §8 @assumption A3 */
const keyLifeMs = 23 * 60 * minute;
/** For updates and deletions: the most sends without an answer (the first included), and the most of one key. */
const mostLost = 3;
const mostSends = 10;
/** For a creation under an open key: the most sends (the first included) after the API refuses one. */
const mostRefused = 3;
/** The attempts of an operation that may end without an effect, or in a failed task. */
const unseen = { outcome: 'absent', most: 3 } as const;
const failed = { outcome: 'failed', code: 'task_failed', most: 1 } as const;
type Found = Extract<Evidence, { verdict: 'done' }>;

/** Whether the key is young enough to be sent again. The local clock may have been set back. */
export function keyIsFresh(run: Run, intent: Intent): boolean {
  const age = run.deps.clock.now() - intent.firstSentAt;
  const apiAge = run.cache.since(0).apiNow() - (intent.firstSentApiAt ?? Number.POSITIVE_INFINITY);
  return age >= 0 && Math.max(age, apiAge) < keyLifeMs;
}

/** Reads evidence of a write whose answer is missing or inconclusive. */
export async function readForEffect(run: Run, intent: Intent): Promise<Progress> {
  const { stopwatch } = run;
  const settleMs = run.deps.requestTimeoutMs + minute / 2;
  const wait = Math.max(
    stopwatch.until(intent.id, 'due', intent.dueAt),
    settleMs - stopwatch.since(intent.id, 'sent', intent.lastSentAt),
  );
  if (wait > 0) return again(wait);
  run.tell(intent, 'checking', 'whether it took effect');
  const evidence = await readEvidence(run, intent);
  if (evidence === undefined) return again(0);
  switch (evidence.verdict) {
    case 'done':
      // A deleted resource counts as absent only after two reads.
      if (intent.verb === 'delete') return notSeen(run, intent, () => settled(run, intent, evidence));
      return (
        unlessAnothers(run, intent, evidence) ??
        offer(run, intent, 'outcome_unknown', 'the answer was lost', evidence)
      );
    case 'pending':
      run.stopwatch.mark(intent.id, 'accepted');
      return goOn(run, intent, {
        phase: 'accepted',
        ambiguous: false,
        resourceId: evidence.id,
        acceptedAt: run.deps.clock.now(),
        clear: ['why', 'notSeenAt'],
      });
    case 'failed':
      return tainted(run, intent, evidence, evidence.detail);
    case 'unseen':
      // A candidate that appeared since may be the created resource, although no read is documented to show it.
      if (evidence.candidates.length === 0 && isRetried(run, intent)) return afterAbsence(run, intent);
      return unclear(run, intent, evidence);
    case 'unclear':
      return unclear(run, intent, evidence);
    case 'not_done':
      // Reads show that the deletion had no effect: the resource still exists.
      return intent.verb === 'delete'
        ? afterAbsence(run, intent)
        : notSeen(run, intent, () => afterAbsence(run, intent), await hiddenMs(run, intent));
  }
}

/** A resource that appeared after the question to the operator, and is certainly the created one, needs no answer. */
export async function seenSince(run: Run, intent: Intent): Promise<Progress | undefined> {
  const { repeats } = run.kindOf(intent.kind);
  const { code, candidates } = intent.blocked ?? {};
  const isAsked = (intent.ambiguous || code === 'not_there') && candidates?.length === 0;
  // A backup that appears later is another backup.
  if (!asksKey(run, intent) || !isAsked || repeats) return undefined;
  const evidence = await readEvidence(run, intent);
  if (evidence?.verdict !== 'done' || !evidence.certain) return undefined;
  return settled(run, intent, evidence);
}

/**
 * If the key holds no answer, only a lost server error with an effect can have created the resource. The file says
 * whether to take that risk.
 */
function isRetried({ desired }: Run, intent: Intent): boolean {
  const answered = isServerError(intent.why) || intent.why === 'refused';
  return !answered && desired.settings.unconfirmed_servers === 'retry';
}

function unclear(
  run: Run,
  intent: Intent,
  { reason, candidates }: { readonly reason: string; readonly candidates: readonly string[] },
): Promise<Progress> {
  return block(run, intent, 'outcome_unknown', `the answer was lost, and ${reason}`, { candidates });
}

/**
 * A resource that only a difference of lists shows may be unmanaged, or of another creation, which ends first. It is
 * ours only if the project is exclusive, no other creation is unconfirmed, and the key is fresh: a restored state
 * does not know the resources that this file created and deleted meanwhile.
 */
function unlessAnothers(
  run: Run,
  intent: Intent,
  evidence: Found,
  ours = () => settled(run, intent, evidence),
): Promise<Progress> | Progress | undefined {
  if (evidence.certain) return ours();
  const others = [...run.intents.values()].filter(
    (each) =>
      each.id !== intent.id &&
      each.kind === intent.kind &&
      each.verb === 'create' &&
      (each.ambiguous || each.phase === 'sending'),
  );
  const moving = others.find((each) =>
    each.phase === 'unknown' ? isAsked(run, each) : each.phase !== 'blocked',
  );
  if (moving !== undefined) return awaitEnd(moving.key);
  const isOurs = run.desired.settings.exclusive && keyIsFresh(run, intent) && others.length === 0;
  return isOurs ? ours() : undefined;
}

/** The key of the intent, and not a read, settles the intent next. */
function isAsked(run: Run, intent: Intent): boolean {
  const { stage } = questionOf(intent);
  return keyIsFresh(run, intent) && (stage === 'asking' || stage === 'taken');
}

/** The resource may be unmanaged, so the operator is asked. */
function offer(
  run: Run,
  intent: Intent,
  code: string,
  why: string,
  { id, called = '' }: Found,
): Promise<Progress> {
  const what = `${nounOf(intent.kind)} ${id}${called === '' ? '' : ` (${called})`}`;
  const reason = `${why}, and ${what} appeared since: it may be what was created`;
  return block(run, intent, code, reason, { candidates: [id] });
}

/** Sends the same key again, takes a new key, or asks the operator, by the outcome table. */
async function afterAbsence(run: Run, intent: Intent): Promise<Progress> {
  const { kind, why = 'lost', detail = 'a server error' } = intent;
  if (!keyIsFresh(run, intent)) {
    const reason = 'no read finds the resource, and its idempotency key is too old to be sent again';
    return block(run, intent, 'key_too_old', reason);
  }
  if (asksKey(run, intent)) return createAgain(run, intent);
  switch (why) {
    case 'lost':
    case 'unreadable':
    case 'conflict': {
      if ((intent.lost ?? 0) >= mostLost || intent.sends >= mostSends) {
        const reason = `no answer after ${intent.sends} sends, and reads show no effect`;
        return block(run, intent, 'outcome_unknown', reason);
      }
      if (run.kindOf(kind).freshKeys)
        return closeAndRetry(run, intent, {
          ...unseen,
          because: 'unanswered',
          code: 'outcome_unknown',
          text: detail,
        });
      return goOn(run, intent, { phase: 'waiting', dueAt: run.deps.clock.now() });
    }
    case 'refused':
      return close(run, intent, { outcome: 'absent', because: 'refused', text: detail }, { retryAfterMs: 0 });
    case 'not_found':
      await close(run, intent, { outcome: 'refused', because: 'refused', text: detail });
      return { now: 'blocked', code: 'not_found', reason: `${detail}, and yet its reads show it` };
    case 'gateway_error':
    case 'server_error': {
      const sent = run.stopwatch.since(intent.id, 'sent', intent.lastSentAt);
      if (why === 'gateway_error' && sent < gatewayMs) {
        const rest = gatewayMs - sent;
        return goOn(run, intent, { dueAt: run.deps.clock.now() + rest, clear: ['notSeenAt'] }, rest);
      }
      return closeAndRetry(run, intent, {
        ...unseen,
        because: 'server_error',
        code: 'server_error',
        text: detail,
      });
    }
    case 'no_task':
    case 'task_failed':
      throw new Error(`${intent.id} was accepted`);
  }
}

/**
 * Continues an absent creation. The next attempt is safe only if the key is fenced: then no other state can use the key
 * either, and all states use the attempts in the same order. Under an open key the original bytes are sent again.
 */
async function createAgain(run: Run, intent: Intent): Promise<Progress> {
  const { why = 'lost', detail = '' } = intent;
  if (why === 'unreadable')
    return block(run, intent, 'outcome_unknown', `it was accepted, and no read shows it: ${detail}`);
  if (questionOf(intent).stage !== 'fenced' && why === 'refused' && intent.sends >= mostRefused)
    return block(run, intent, 'outcome_unknown', `no read shows it, and it was sent again: ${detail}`);
  if (questionOf(intent).stage !== 'fenced')
    return goOn(run, intent, { phase: 'waiting', dueAt: run.deps.clock.now(), clear: ['question'] });
  if (isServerError(why))
    return closeAndRetry(run, intent, {
      ...unseen,
      because: 'server_error',
      code: 'server_error',
      text: detail,
    });
  const { lasting } = questionOf(intent);
  const ended = { outcome: 'absent', because: 'confirmed_absent', text: detail } as const;
  if (lasting === undefined) return close(run, intent, ended, { retryAfterMs: 0 });
  // A later run begins the next attempt.
  await close(run, intent, ended);
  return { now: 'blocked', code: lasting, reason: detail };
}

/** Waits for the task of an accepted write, then reads its effect. */
export async function finish(run: Run, intent: Intent, halt: AbortSignal): Promise<Progress> {
  const { clock, tasks } = run.deps;
  const { deadlineMs } = run.kindOf(intent.kind);
  const elapsed = () => run.stopwatch.since(intent.id, 'accepted', intent.acceptedAt ?? intent.lastSentAt);
  if (intent.why === 'task_failed') return taskFailed(run, intent);
  /** Whether the API has reported the end of the operation. Without a task, the API never reports it. */
  let ended = intent.why !== 'no_task';
  if (intent.taskId !== undefined && ended && intent.notSeenAt === undefined) {
    run.tell(intent, 'task', intent.taskId);
    const acceptedAt = clock.now() - elapsed();
    const sort = intent.request.name;
    const task = await tasks.wait({ id: intent.taskId as TaskId, sort, acceptedAt, deadlineMs }, halt);
    if (task.end === 'stuck') return stuck(`its task has not ended after ${minutes(elapsed())}`);
    if (task.end === 'failed') {
      const detail = task.detail ?? 'the API gives no reason';
      return goOn(
        run,
        intent,
        { why: 'task_failed', because: 'task_failed', detail, dueAt: clock.now() + staleMs },
        staleMs,
      );
    }
    if (task.end === 'lost') await run.update(intent, { why: 'no_task' });
    ended = task.end === 'succeeded';
  }
  run.tell(intent, 'checking', 'the current resource');
  const evidence = await readEvidence(run, intent);
  if (evidence === undefined) return again(0);
  switch (evidence.verdict) {
    case 'done':
      // Without a task, one read that does not find the resource does not prove its deletion.
      if (intent.verb === 'delete' && !ended)
        return notSeen(run, intent, () => settled(run, intent, evidence));
      return (
        unlessAnothers(run, intent, evidence) ??
        offer(run, intent, 'outcome_unknown', 'the answer does not name the resource', evidence)
      );
    case 'pending':
      return elapsed() > deadlineMs
        ? stuck(`it is not ready after ${minutes(elapsed())}`)
        : again(nextReadMs(elapsed()));
    case 'failed':
      return tainted(run, intent, evidence, evidence.detail);
    case 'unseen':
    case 'unclear':
      return block(run, intent, 'outcome_unknown', evidence.reason, { candidates: evidence.candidates });
    case 'not_done':
      if (!ended && elapsed() <= deadlineMs) return again(nextReadMs(elapsed()));
      // The API has not reported the end of this creation, so the API may still be at work on it.
      if (!ended && intent.verb === 'create' && !isReplay(intent)) {
        const reason = `no read shows it after ${minutes(elapsed())}, and no task shows whether it has ended`;
        return notSeen(run, intent, async () => stuck(reason));
      }
      return notSeen(run, intent, () => notThere(run, intent, evidence));
  }
}

/** Reads the remains of a failed task, once the reads are no older than its end. @assumption A14 */
async function taskFailed(run: Run, intent: Intent): Promise<Progress> {
  const wait = run.stopwatch.until(intent.id, 'due', intent.dueAt);
  if (wait > 0) return again(wait);
  run.tell(intent, 'checking', 'the remains of the failed task');
  const failure = intent.detail ?? '';
  const evidence = await readEvidence(run, intent);
  if (evidence === undefined) return again(0);
  const harmless = intent.verb !== 'create' || run.kindOf(intent.kind).freshKeys;
  switch (evidence.verdict) {
    case 'done':
      // The task failed, so the resource probably still exists. One read that does not find it proves nothing.
      if (intent.verb === 'delete') return notSeen(run, intent, () => settled(run, intent, evidence));
      if (harmless) return settled(run, intent, evidence);
      return (
        unlessAnothers(run, intent, evidence, () =>
          tainted(run, intent, evidence, `its task failed: ${failure}`),
        ) ?? offer(run, intent, 'task_failed', `its task failed (${failure})`, evidence)
      );
    case 'pending':
      return tainted(run, intent, evidence, `its task failed: ${failure}`);
    case 'failed':
      return tainted(run, intent, evidence, evidence.detail);
    case 'unseen':
    case 'unclear': {
      const reason = `its task failed (${failure}), and ${evidence.reason}`;
      return block(run, intent, 'task_failed', reason, { candidates: evidence.candidates });
    }
    case 'not_done': {
      const retry = async () => {
        const changes = leftByFailed(run, intent, evidence.left);
        return closeAndRetry(run, intent, { ...failed, because: 'task_failed', text: failure, changes });
      };
      if (harmless) return retry();
      const ask = () => block(run, intent, 'task_failed', `its task failed (${failure})`);
      const then = evidence.strays === true ? ask : retry;
      return notSeen(run, intent, then, await hiddenMs(run, intent));
    }
  }
}

/**
 * A resource is absent only if two reads, a minute apart, do not find it. Both reads come after the time in which a
 * successful creation would show, which may take another `forMs`.
 */
async function notSeen(
  run: Run,
  intent: Intent,
  absent: () => Promise<Progress>,
  forMs = 0,
): Promise<Progress> {
  const now = run.deps.clock.now();
  if (forMs > 0) {
    const detail = 'not there yet; lists are read until a creation would show';
    run.tell(intent, 'checking', detail, { untilMs: now + forMs + absenceGapMs });
    return again(Math.min(forMs, minute));
  }
  if (intent.notSeenAt === undefined) {
    const detail = 'not found; a second read decides';
    run.tell(intent, 'checking', detail, { untilMs: now + absenceGapMs });
    run.stopwatch.mark(intent.id, 'not_seen');
    return goOn(run, intent, { notSeenAt: now }, absenceGapMs);
  }
  const rest = absenceGapMs - run.stopwatch.since(intent.id, 'not_seen', intent.notSeenAt);
  return rest > 0 ? again(rest) : absent();
}

/** The time that a creation may stay hidden: longer if tasks of its kind took longer. @source API §3 rule 5 */
async function hiddenMs(run: Run, { id, verb, kind, request, lastSentAt }: Intent): Promise<number> {
  if (verb !== 'create') return 0;
  const { showsWithinMs = 0 } = run.kindOf(kind);
  const longestMs = Math.max(showsWithinMs, 1.5 * (await run.deps.tasks.longest(request.name)));
  return longestMs - run.stopwatch.since(id, 'sent', lastSentAt);
}

/**
 * Reads evidence again, after the project fence: the token of another project shows no resource. Returns `undefined`
 * if the token was exchanged meanwhile, because the reads then do not count.
 */
async function readEvidence(run: Run, intent: Intent): Promise<Evidence | undefined> {
  const token = await run.fence();
  const read = run.cache.since(run.deps.clock.monotonic());
  const found = await run.kindOf(intent.kind).evidence(intent, read, (kind) => run.known(kind, intent));
  if (run.deps.writes.token() !== token) return undefined;
  if (!('id' in found) || fitsPath(found.id)) return found;
  const reason = `the resource that appeared since has the id ${JSON.stringify(found.id)}, which no path can carry`;
  return { verdict: 'unclear', reason, candidates: [] };
}

function stuck(reason: string): Progress {
  return { now: 'blocked', code: 'stuck', reason };
}

/** Often at first, later once a minute. */
function nextReadMs(elapsedMs: number): number {
  return Math.min(minute, 10_000 + elapsedMs / 4);
}
