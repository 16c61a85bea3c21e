import type { Evidence } from '../../core/evidence.ts';
import { isUnconfirmed, partsOf } from '../../core/intent.ts';
import { firewallKey, nounOf } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { TaskId } from '../../core/resources.ts';
import type { InPhase, Intent } from '../../core/state.ts';
import { fitsPath } from '../../core/text.ts';
import { knownIds, type Run } from '../run.ts';
import { absenceGapMs, nextReadMs, staleMs } from '../timing.ts';
import { replayLater } from './ask-key.ts';
import { awaitServer, isExposedUntilEnd, needsFirewall, sendIfReset } from './bound-by.ts';
import {
  again,
  asksKey,
  awaitEnd,
  block,
  failureOf,
  goOn,
  isReplay,
  isServerError,
  isSettledByKey,
  keyIsFresh,
  minutes,
  type Progress,
  questionAbout,
  sinceSentMs,
  unconfirmedText,
} from './endings.ts';
import { notThere, sendAgain, taskFailed } from './not-there.ts';
import { settled } from './transfer.ts';

const minute = 60_000;

/**
 * The answer of the API about the end of the write: none (`unconfirmed`), a success, an acceptance whose end the API does
 * not report, or a failure.
 */
type Known = 'unconfirmed' | 'ended' | 'unreported' | 'failed';
/** A write that is `whole` (an update, the PUT of a firewall) is safe to repeat, and so is a deletion. */
type Sort = 'creation' | 'whole' | 'deletion';
/** One reading of evidence. */
interface Reading {
  readonly run: Run;
  readonly intent: InPhase<'unknown' | 'accepted'>;
  readonly known: Known;
}
type Found<Verdict extends Evidence['verdict']> = Extract<Evidence, { readonly verdict: Verdict }>;
type Step<Verdict extends Evidence['verdict']> = (
  reading: Reading,
  found: Found<Verdict>,
) => Promise<Progress> | Progress;
type Steps = { readonly [Verdict in Evidence['verdict']]: Step<Verdict> };

const common = {
  done: bind,
  pending: pastDeadline<'pending'>(notReady),
  failed: taint,
  unseen: ask,
  unclear: ask,
};

/** The evidence table: the next step after each verdict of the reads. */
const table: Readonly<Record<Known, Readonly<Record<Sort, Steps>>>> = {
  unconfirmed: {
    creation: { ...common, pending: accept, unseen: riskNext, not_done: onceAbsent(sendAgain) },
    whole: { ...common, not_done: onceAbsent(sendAgain) },
    // A resource counts as deleted only after two reads. One read shows that it still exists.
    deletion: { ...common, done: onceAbsent(bind), not_done: sendAgain },
  },
  ended: {
    creation: { ...common, not_done: onceAbsent(notThere) },
    whole: { ...common, not_done: unlessReset(onceAbsent(notThere)) },
    deletion: { ...common, not_done: onceAbsent(notThere) },
  },
  unreported: {
    // The API may still be at work on the creation, unless an old answer was replayed.
    creation: { ...common, not_done: pastDeadline(onceAbsent(stuckUnlessReplayed)) },
    whole: { ...common, not_done: pastDeadline(onceAbsent(notThere)) },
    deletion: { ...common, done: onceAbsent(bind), not_done: pastDeadline(onceAbsent(notThere)) },
  },
  failed: {
    creation: { ...common, pending: taint, not_done: onceAbsent(taskFailed) },
    whole: { ...common, not_done: taskFailed },
    // The task failed, so the resource probably still exists.
    deletion: { ...common, done: onceAbsent(bind), not_done: taskFailed },
  },
};

/** Reads evidence of a write whose answer is missing or inconclusive. */
export async function readForEffect(run: Run, intent: InPhase<'unknown'>): Promise<Progress> {
  const { stopwatch } = run;
  const settleMs = run.deps.requestTimeoutMs + minute / 2;
  const wait = Math.max(stopwatch.until(intent.id, 'due', intent.dueAt), settleMs - sinceSentMs(run, intent));
  if (wait > 0) return again(wait);
  run.report(intent, 'checking', 'whether the write had its effect');
  return conclude({ run, intent, known: 'unconfirmed' });
}

/** Waits for the task of an accepted write, then reads its effect. */
export async function finish(run: Run, intent: InPhase<'accepted'>, halt: AbortSignal): Promise<Progress> {
  const { answer, notSeenAt } = intent;
  // A task that has ended is not read again.
  const isEnded = notSeenAt !== undefined || run.stopwatch.isMarked(intent.id, 'ended');
  const isAwaited = answer.end === 'reported' && !isEnded;
  if (isAwaited && answer.taskId !== undefined) return awaitTask(run, intent, answer.taskId, halt);
  if (answer.end === 'failed') {
    // The reads must be no older than the end of the task. @assumption A14
    const wait = run.stopwatch.until(intent.id, 'due', intent.dueAt);
    if (wait > 0) return again(wait);
  }
  const waits = awaitServer(run, intent);
  if (waits !== undefined) return waits;
  run.report(
    intent,
    'checking',
    answer.end === 'failed' ? 'whether the failed task left a resource' : questionAbout(intent),
  );
  const known = ({ reported: 'ended', unreported: 'unreported', failed: 'failed' } as const)[answer.end];
  return conclude({ run, intent, known });
}

async function awaitTask(
  run: Run,
  intent: InPhase<'accepted'>,
  taskId: TaskId,
  halt: AbortSignal,
): Promise<Progress> {
  const { clock, tasks } = run.deps;
  const { answer, request, kind } = intent;
  const acceptedAt = clock.now() - sinceAccepted(run, intent);
  const { deadlineMs } = run.kindOf(kind).timing;
  const untilMs = acceptedAt + (await tasks.usual(request.name));
  run.report(intent, 'task', taskId, { untilMs, deadlineMs: acceptedAt + deadlineMs });
  const task = await tasks.wait(
    {
      id: taskId,
      sort: request.name,
      acceptedAt,
      deadlineMs,
      isUrgent: () => isExposedUntilEnd(run, intent),
      onNextPoll: (afterMs) => run.gate.postpone(firewallKey(intent.key), afterMs),
    },
    halt,
  );
  switch (task.end) {
    case 'stuck':
      return stuck(`its task has not ended after ${minutes(sinceAccepted(run, intent))}`);
    case 'failed': {
      const detail = task.detail ?? 'the API gives no reason';
      run.report(intent, 'failed', detail);
      const stage = { phase: 'accepted', answer: { ...answer, end: 'failed' } } as const;
      return goOn(run, intent, { stage, detail, dueAt: clock.now() + staleMs }, staleMs);
    }
    case 'lost':
      return goOn(run, intent, { stage: { phase: 'accepted', answer: { ...answer, end: 'unreported' } } });
    case 'succeeded':
      run.stopwatch.mark(intent.id, 'ended');
      if (needsFirewall(run, intent)) run.signals.grace.add(intent.key);
      run.report(intent, 'checking', questionAbout(intent));
      // The firewall goes before the reads of its server.
      if (isExposedUntilEnd(run, intent)) return again(0);
      return conclude({ run, intent, known: 'ended' });
  }
}

async function conclude(reading: Reading): Promise<Progress> {
  const { run, intent, known } = reading;
  const found = await readEvidence(run, intent);
  if (found === undefined) return again(0);
  if (!('id' in found) && isStored(run, intent)) return replayLater(run, intent);
  const steps = table[known][sortOf(run, intent)];
  return takeStep(steps, found.verdict, reading, found);
}

function takeStep<Verdict extends Evidence['verdict']>(
  steps: { readonly [Each in Verdict]: Step<Each> },
  verdict: Verdict,
  reading: Reading,
  found: Found<Verdict>,
) {
  return steps[verdict](reading, found);
}

function sortOf(run: Run, intent: Intent): Sort {
  if (intent.verb === 'delete') return 'deletion';
  return asksKey(run, intent) ? 'creation' : 'whole';
}

/** Reads evidence again. Returns `undefined` if the token was exchanged meanwhile. */
async function readEvidence(run: Run, intent: Intent): Promise<Evidence | undefined> {
  const { writes } = run.kindOf(intent.kind);
  const found = await run.fence.read(() => {
    const inside = run.deps.reads(
      isExposedUntilEnd(run, intent) ? 'operation' : 'evidence',
      run.signals.halt,
    );
    const read = run.cache.since(run.deps.clock.monotonic(), inside);
    return writes.evidence(intent, read, (kind) => knownIds(run, kind, intent));
  });
  if (found === undefined || !('id' in found) || fitsPath(found.id)) return found;
  const reason = `the new resource has the id ${JSON.stringify(found.id)}, which cannot be part of a URL path`;
  return { verdict: 'unclear', reason, candidates: [] };
}

/** A resource that appeared after the question to the operator, and is certainly the created one, needs no answer. */
export async function seenSince(run: Run, intent: InPhase<'blocked'>): Promise<Progress | undefined> {
  const { code, candidates } = intent.blocked;
  // The operator may have given a candidate to another entry since.
  const ours = knownIds(run, intent.kind, intent);
  const isOpen = candidates.every((id) => ours.has(id));
  const isAsked = (intent.unconfirmed !== undefined || code === 'not_there') && isOpen;
  // A backup that appears later is another backup.
  if (!asksKey(run, intent) || !isAsked || factsOf(intent.kind).repeats) return undefined;
  const evidence = await readEvidence(run, intent);
  if (evidence?.verdict !== 'done' || !evidence.certain) return undefined;
  return settled(run, intent, evidence);
}

/** A creation whose task failed may still have made the resource: it is bound as tainted, so that it is not lost. */
function bind(reading: Reading, found: Found<'done'>): Promise<Progress> | Progress {
  const { run, intent, known } = reading;
  const isTainted = known === 'failed' && sortOf(run, intent) === 'creation';
  const { id, called = '' } = found;
  const name = `${nounOf(intent.kind)} ${id}${called === '' ? '' : ` (${called})`}`;
  return (
    ifOurs(run, intent, found, () =>
      settled(run, intent, found, isTainted ? failureOf(intent) : undefined),
    ) ??
    // The resource may be unmanaged, so the operator is asked.
    ask(reading, { reason: `${name} is new, and may be the created resource`, candidates: [id] })
  );
}

/**
 * A resource that only a difference of lists shows may be unmanaged, or of another creation, which ends first. It is
 * ours only if the project is exclusive, no other creation is unconfirmed, and the key is fresh: a restored state
 * does not know the resources that this spec created and deleted meanwhile. @assumption A72
 */
function ifOurs(
  run: Run,
  intent: Intent,
  { certain }: Found<'done'>,
  ours: () => Promise<Progress>,
): Promise<Progress> | Progress | undefined {
  if (certain) return ours();
  const others = [...run.intents.values()].filter(
    (each) =>
      each.id !== intent.id && each.kind === intent.kind && each.verb === 'create' && isUnconfirmed(each),
  );
  const moving = others.find((each) =>
    each.phase === 'unknown' ? isSettledByKey(run, each) : each.phase !== 'blocked',
  );
  if (moving !== undefined) return awaitEnd(moving.key);
  const isOurs = run.desired.settings.exclusive && keyIsFresh(run, intent) && others.length === 0;
  return isOurs ? ours() : undefined;
}

function ask(
  { run, intent, known }: Reading,
  { reason, candidates }: Pick<Found<'unclear'>, 'reason' | 'candidates'>,
): Promise<Progress> {
  if (isStored(run, intent)) return replayLater(run, intent);
  const unconfirmed = unconfirmedText(partsOf(intent).unconfirmed?.why ?? 'lost');
  const why = { failed: failureOf(intent), unconfirmed, ended: '', unreported: '' }[known];
  const code = known === 'failed' ? 'task_failed' : 'outcome_unknown';
  return block(run, intent, code, why === '' ? reason : `${why}, and ${reason}`, { candidates });
}

/** The key holds an acceptance with an unreadable body, so no read has to prove that the resource is absent. */
function isStored(run: Run, intent: Intent): boolean {
  return asksKey(run, intent) && partsOf(intent).unconfirmed?.why === 'unreadable' && keyIsFresh(run, intent);
}

/**
 * If the key holds no answer, only a lost server error with an effect can have created a resource that no read shows.
 * The spec says whether to take that risk. A candidate that appeared since may be the created resource.
 */
function riskNext(reading: Reading, found: Found<'unseen'>): Promise<Progress> {
  const { run, intent } = reading;
  const why = partsOf(intent).unconfirmed?.why;
  const mayRetry = run.desired.settings.unconfirmed_servers === 'retry';
  return found.candidates.length === 0 && mayRetry && !isServerError(why) && why !== 'refused'
    ? sendAgain(reading)
    : ask(reading, found);
}

function accept({ run, intent }: Reading, { id, facts = {} }: Found<'pending'>): Promise<Progress> {
  run.stopwatch.mark(intent.id, 'accepted');
  const at = run.deps.clock.now();
  const answer = { at, id, facts, to: 'earlier_send', end: 'reported' } as const;
  return goOn(run, intent, { stage: { phase: 'accepted', answer } });
}

function notReady({ run, intent }: Reading): Progress {
  return stuck(`the new ${nounOf(intent.kind)} is not ready after ${minutes(sinceAccepted(run, intent))}`);
}

function taint({ run, intent }: Reading, found: Found<'failed' | 'pending'>): Promise<Progress> {
  return settled(run, intent, found, found.verdict === 'failed' ? found.detail : failureOf(intent));
}

function stuckUnlessReplayed(reading: Reading, found: Found<'not_done'>): Promise<Progress> | Progress {
  const { run, intent } = reading;
  if (isReplay(intent)) return notThere(reading, found);
  const elapsed = minutes(sinceAccepted(run, intent));
  return stuck(
    `reads do not show the new ${nounOf(intent.kind)} after ${elapsed}, and the API no longer has its task`,
  );
}

/** The step follows only after the deadline of the kind. */
function pastDeadline<Verdict extends 'pending' | 'not_done'>(then: Step<Verdict>): Step<Verdict> {
  return (reading, found) => {
    const { run, intent } = reading;
    const elapsedMs = sinceAccepted(run, intent);
    return elapsedMs > run.kindOf(intent.kind).timing.deadlineMs
      ? then(reading, found)
      : again(nextReadMs(elapsedMs));
  };
}

function unlessReset(then: Step<'not_done'>): Step<'not_done'> {
  return async (reading, found) => (await sendIfReset(reading.run, reading.intent)) ?? then(reading, found);
}

/**
 * The step follows only after two reads, a minute apart, that do not find the resource. Both reads come after the time
 * in which the effect would show.
 */
function onceAbsent<Verdict extends 'done' | 'not_done'>(then: Step<Verdict>): Step<Verdict> {
  return async (reading, found) => {
    const { run, intent, known } = reading;
    const now = run.deps.clock.now();
    const forMs = await showsAfterMs(reading);
    if (forMs > 0) {
      const detail = {
        unconfirmed: `whether the lists show the new ${nounOf(intent.kind)}`,
        failed: 'whether the failed task left a resource',
        ended: questionAbout(intent),
        unreported: questionAbout(intent),
      }[known];
      run.report(intent, 'checking', detail, { untilMs: now + forMs + absenceGapMs });
      return again(Math.min(forMs, minute));
    }
    if (intent.notSeenAt === undefined) {
      run.report(intent, 'checking', 'again, to be sure', { untilMs: now + absenceGapMs });
      run.stopwatch.mark(intent.id, 'not_seen');
      return goOn(run, intent, { stage: notSeen(intent, now) }, absenceGapMs);
    }
    const rest = absenceGapMs - run.stopwatch.since(intent.id, 'not_seen', intent.notSeenAt);
    return rest > 0 ? again(rest) : then(reading, found);
  };
}

function notSeen(intent: InPhase<'unknown' | 'accepted'>, notSeenAt: number) {
  return intent.phase === 'unknown'
    ? ({ phase: 'unknown', unconfirmed: intent.unconfirmed, notSeenAt } as const)
    : ({ phase: 'accepted', answer: intent.answer, notSeenAt } as const);
}

/** The time after which every read shows the effect of the write. */
async function showsAfterMs({ run, intent, known }: Reading): Promise<number> {
  // @assumption A9
  return known === 'ended' ? staleMs - sinceAccepted(run, intent, 'ended') : hiddenMs(run, intent);
}

/** The time that a creation may stay hidden: longer if tasks of its kind took longer. @source API §3 rule 5 */
async function hiddenMs(run: Run, intent: Intent): Promise<number> {
  const { verb, kind, request } = intent;
  if (verb !== 'create') return 0;
  const { showsWithinMs = 0 } = run.kindOf(kind).timing;
  const longestMs = Math.max(showsWithinMs, 1.5 * (await run.deps.tasks.longest(request.name)));
  return longestMs - sinceSentMs(run, intent);
}

function sinceAccepted(run: Run, intent: Intent, moment: 'accepted' | 'ended' = 'accepted'): number {
  return run.stopwatch.since(intent.id, moment, partsOf(intent).answer?.at ?? intent.lastSentAt);
}

function stuck(reason: string): Progress {
  return { now: 'blocked', code: 'stuck', reason };
}
