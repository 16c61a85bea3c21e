import type { ResourceKey } from '../core/keys.ts';
import type { Evidence } from '../core/kind.ts';
import type { Spend } from '../core/plan.ts';
import type { Conclusive, WriteResult } from '../core/ports.ts';
import type { TaskId } from '../core/resources.ts';
import type { Binding, Intent, IntentOutcome, IntentPatch, StateChange } from '../core/state.ts';
import { type Disposition, disposition, type Why } from './outcome.ts';
import { released } from './release.ts';
import type { Run } from './run.ts';

/** Where an intent has got to after one step. */
export type Progress =
  /** The next step of the same intent, not before `afterMs`. */
  | { readonly now: 'again'; readonly afterMs: number }
  /** Closed. `done`: it took effect; else the operation may be begun anew. */
  | {
      readonly now: 'closed';
      readonly outcome: IntentOutcome;
      readonly retry: boolean;
      readonly detail: string;
    }
  /** It stays open until a person, the file or time changes something. */
  | { readonly now: 'blocked'; readonly code: string; readonly reason: string };

const minute = 60_000;
/** Absence is two looks that far apart. @assumption A9 */
const absenceGapMs = minute;
/** A key is not sent again from this age on: the API forgets it at 24 h. @source API §8 @assumption A3 */
const keyLifeMs = 23 * 60 * minute;
/** The origin behind a gateway may work that long. */
const gatewayMs = 15 * minute;
const capacityDeadlineMs = 24 * 60 * minute;
const mostSends = { lost: 3, unreadable: 3, backup: 2 };

/**
 * Takes an open intent one step further: sends it, waits for its task, or looks for
 * evidence, as its phase says (see `IntentPhase`). Called again until it is closed or blocked.
 */
export async function advance(run: Run, intent: Intent): Promise<Progress> {
  switch (intent.phase) {
    case 'sending':
      return update(run, intent, { phase: 'unknown', ambiguous: true, why: 'lost' }, 0);
    case 'waiting':
      return intent.dueAt > run.deps.clock.now()
        ? again(intent.dueAt - run.deps.clock.now())
        : resend(run, intent);
    case 'unknown':
      return lookForEffect(run, intent);
    case 'accepted':
      return finish(run, intent);
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

/** Sends an intent that is durable, and records what came back before anything else happens. */
export async function send(run: Run, intent: Intent): Promise<Progress> {
  const { deps } = run;
  run.tell(intent.key, intent.verb, 'sent', `${intent.request.name} ${intent.idempotencyKey}`);
  const result = await deps.writes.send(intent.request, intent.idempotencyKey);
  run.cache.forget(intent.request);
  const next = disposition(result, intent, {
    requestTimeoutMs: deps.requestTimeoutMs,
    jitter: deps.random.next(),
    waits: intent.sends - 1,
    timeScale: deps.profile.timeScale,
  });
  return record(run, intent, result, next);
}

/** Why the intent may not be sent now; a hold is not an ending, so it stays open. */
function heldBack(run: Run, intent: Intent): Progress | undefined {
  const held = run.heldBy(intent.request, spendOf(run, intent));
  return held && { now: 'blocked', ...held };
}

function spendOf(run: Run, { kind, verb }: Intent): Spend {
  if (!run.kindOf(kind).billed || verb === 'update') return 'none';
  return verb === 'delete' ? 'reduces' : 'adds';
}

async function resend(run: Run, intent: Intent): Promise<Progress> {
  const { clock, store, writes } = run.deps;
  if (clock.now() - intent.firstSentAt >= keyLifeMs || clock.now() < intent.firstSentAt) {
    return intent.ambiguous
      ? block(run, intent, 'key_too_old', 'its idempotency key is too old to be sent again', [])
      : close(run, intent, 'void', 'its key is too old', [], true);
  }
  run.tell(intent.key, intent.verb, 'queued', 'for its turn');
  return run.gate.run(
    run.kindOf(intent.kind).urgency,
    async () => {
      run.stop.throwIfAborted();
      const held = heldBack(run, intent);
      if (held !== undefined) return held;
      await run.fence();
      await writes.room(run.stop);
      const now = clock.now();
      await store.updateIntent(
        intent.id,
        { phase: 'sending', sends: intent.sends + 1, lastSentAt: now, clear: ['notSeenAt'] },
        now,
      );
      await run.refreshIntents();
      return send(run, run.intents.get(intent.key) ?? intent);
    },
    run.stop,
  );
}

async function record(run: Run, intent: Intent, result: WriteResult, next: Disposition): Promise<Progress> {
  const now = run.deps.clock.now();
  const answer = result.type === 'answer' ? result : undefined;
  const requestId = answer === undefined ? {} : { requestId: answer.requestId };
  switch (next.do) {
    case 'accept':
      return accept(run, intent, answer as Conclusive, next.task, next.breach);
    case 'wait': {
      if (now - intent.createdAt > run.kindOf(intent.kind).deadlineMs) {
        await update(
          run,
          intent,
          { phase: intent.ambiguous ? 'unknown' : 'waiting', dueAt: now, ...requestId },
          0,
        );
        return {
          now: 'blocked',
          code: next.code,
          reason: `still so after ${minutes(now - intent.createdAt)}: ${next.reason}`,
        };
      }
      run.tell(intent.key, intent.verb, 'waiting', next.reason, now + next.afterMs);
      const phase = intent.ambiguous ? 'unknown' : 'waiting';
      const patch = { phase, dueAt: now + next.afterMs, detail: next.reason, ...requestId } as const;
      return update(run, intent, patch, next.afterMs);
    }
    case 'next_preference':
      return nextPreference(run, intent, next.afterMs, next.reason);
    case 'refuse':
      return refused(run, intent, next);
    case 'look': {
      const patch: IntentPatch = {
        phase: 'unknown',
        ambiguous: true,
        why: next.why,
        dueAt: now + next.afterMs,
        detail: next.reason,
        ...requestId,
      };
      run.tell(intent.key, intent.verb, 'waiting', next.reason, now + next.afterMs);
      return update(run, intent, patch, next.afterMs);
    }
  }
}

/** Ids only: what is replayed was true once. */
async function accept(
  run: Run,
  intent: Intent,
  answer: Conclusive,
  task: TaskId | null,
  breach: string | undefined,
): Promise<Progress> {
  const now = run.deps.clock.now();
  const accepted = run.kindOf(intent.kind).accept(answer, intent.request, intent.preimage);
  if (intent.kind === 'server' && intent.verb === 'create') run.openSince.set(intent.key, now);
  if (breach !== undefined) warn(run, intent.key, 'contract_breach', breach);
  const replay = answer.replayed && intent.sends === 1 ? { replay: true } : {};
  return update(
    run,
    intent,
    {
      phase: 'accepted',
      ambiguous: false,
      acceptedAt: now,
      requestId: answer.requestId,
      ...(task === null ? {} : { taskId: task }),
      ...(accepted.id === undefined ? {} : { resourceId: accepted.id }),
      facts: { ...(accepted.facts as object), ...replay },
      clear: ['why', 'notSeenAt'],
    },
    0,
  );
}

async function refused(
  run: Run,
  intent: Intent,
  next: Disposition & { readonly do: 'refuse' },
): Promise<Progress> {
  const { code, reason, until, hold } = next;
  if (hold !== undefined) run.hold(hold, intent.request, { code, reason });
  if (until === 'file') return block(run, intent, code, reason, [], 'file');
  const closed = await close(run, intent, 'refused', reason, [], until === 'now');
  return until === 'now' ? closed : { now: 'blocked', code, reason };
}

/** A list of packages is an order of preference; each has a key of its own. */
async function nextPreference(run: Run, intent: Intent, afterMs: number, reason: string): Promise<Progress> {
  const now = run.deps.clock.now();
  const wanted = [
    (run.world.subjects.get(intent.key)?.desired?.value as { gpu_package?: unknown })?.gpu_package,
  ].flat();
  const sent = (intent.request.body as { readonly gpu_package?: string }).gpu_package ?? '';
  const exhausted = [...(run.exhausted.get(intent.key) ?? []), sent];
  if (wanted.some((each) => typeof each === 'string' && !exhausted.includes(each))) {
    run.exhausted.set(intent.key, exhausted);
    return close(run, intent, 'refused', reason, [], true);
  }
  run.exhausted.delete(intent.key);
  if (now - intent.createdAt > capacityDeadlineMs) return block(run, intent, 'no_gpu_capacity', reason, []);
  run.tell(intent.key, intent.verb, 'waiting', reason, now + afterMs);
  return update(run, intent, { phase: 'waiting', dueAt: now + afterMs, detail: reason }, afterMs);
}

/** Evidence for a write whose answer never came, or came as a server error. */
async function lookForEffect(run: Run, intent: Intent): Promise<Progress> {
  const { clock, requestTimeoutMs } = run.deps;
  const notBefore = Math.max(intent.dueAt, intent.lastSentAt + requestTimeoutMs + 30_000);
  if (notBefore > clock.now()) return again(notBefore - clock.now());
  const evidence = await seek(run, intent);
  switch (evidence.verdict) {
    case 'done':
      if (evidence.certain || run.desired.settings.exclusive) return settled(run, intent, evidence);
      return block(
        run,
        intent,
        'outcome_unknown',
        `the answer was lost, and ${evidence.id} appeared since: it may be what was created`,
        [evidence.id],
      );
    case 'pending':
      return update(
        run,
        intent,
        { phase: 'accepted', ambiguous: false, resourceId: evidence.id, acceptedAt: clock.now() },
        0,
      );
    case 'failed':
      return tainted(run, intent, evidence.id, evidence.detail);
    case 'unclear':
      return block(
        run,
        intent,
        'outcome_unknown',
        `the answer was lost, and ${evidence.reason}`,
        evidence.candidates,
      );
    case 'not_done':
      return notSeen(run, intent, () => afterAbsence(run, intent));
  }
}

/** The same key once more, or a new one, or a person: as the outcome table says. */
async function afterAbsence(run: Run, intent: Intent): Promise<Progress> {
  const now = run.deps.clock.now();
  const age = now - intent.firstSentAt;
  if (age >= keyLifeMs || age < 0) {
    return block(
      run,
      intent,
      'key_too_old',
      'nothing of it is to be seen, and its key is too old to be sent again',
      [],
    );
  }
  const why = (intent.why ?? 'lost') as Why;
  switch (why) {
    case 'lost':
    case 'unreadable': {
      const most = intent.kind === 'backup' ? mostSends.backup : mostSends[why];
      if (intent.sends >= most) {
        return block(
          run,
          intent,
          'outcome_unknown',
          `no answer after ${intent.sends} sends, and no effect is to be seen`,
          [],
        );
      }
      return update(run, intent, { phase: 'waiting', dueAt: now }, 0);
    }
    case 'gateway_error':
    case 'server_error': {
      const rest = why === 'gateway_error' ? intent.lastSentAt + gatewayMs - now : 0;
      if (rest > 0) return update(run, intent, { dueAt: now + rest, clear: ['notSeenAt'] }, rest);
      if (intent.kind === 'backup') {
        return block(
          run,
          intent,
          'server_error',
          `${intent.detail ?? 'a server error'}; a new key needs a person's word`,
          [],
        );
      }
      const retry = (await sameEndings(run, intent, 'absent')) < 3;
      const closed = await close(
        run,
        intent,
        'absent',
        intent.detail ?? 'server error without effect',
        [],
        retry,
      );
      return retry
        ? closed
        : { now: 'blocked', code: 'server_error', reason: intent.detail ?? 'server errors' };
    }
  }
}

/** An accepted write: its task, then the reads that show what became of it. */
async function finish(run: Run, intent: Intent): Promise<Progress> {
  const { tasks, clock } = run.deps;
  const kind = run.kindOf(intent.kind);
  const acceptedAt = intent.acceptedAt ?? intent.lastSentAt;
  let failure = intent.why === 'task_failed' ? (intent.detail ?? '') : undefined;
  if (intent.taskId !== undefined && intent.notSeenAt === undefined) {
    run.tell(intent.key, intent.verb, 'task', intent.taskId);
    const end = await tasks.wait(
      { id: intent.taskId as TaskId, sort: intent.request.name, acceptedAt, deadlineMs: kind.deadlineMs },
      run.halt,
    );
    if (end.end === 'stuck') {
      return {
        now: 'blocked',
        code: 'stuck',
        reason: `its task has not ended after ${minutes(clock.now() - acceptedAt)}`,
      };
    }
    if (end.end === 'failed') {
      failure = end.detail ?? 'the API gives no reason';
      await update(run, intent, { why: 'task_failed', detail: failure }, 0);
    }
  }
  run.tell(
    intent.key,
    intent.verb,
    'checking',
    failure === undefined ? 'what is there now' : 'what the failed task left',
  );
  const evidence = await seek(run, intent);
  if (failure !== undefined) return taskFailed(run, intent, evidence, failure);
  switch (evidence.verdict) {
    case 'done':
      return settled(run, intent, evidence);
    case 'pending':
      if (clock.now() - acceptedAt > kind.deadlineMs) {
        return {
          now: 'blocked',
          code: 'stuck',
          reason: `it is not ready after ${minutes(clock.now() - acceptedAt)}`,
        };
      }
      return again(Math.min(minute, 10_000 + (clock.now() - acceptedAt) / 4));
    case 'failed':
      return tainted(run, intent, evidence.id, evidence.detail);
    case 'unclear':
      return block(run, intent, 'outcome_unknown', evidence.reason, evidence.candidates);
    case 'not_done':
      return notSeen(run, intent, () => notThere(run, intent));
  }
}

/** Accepted, ended well, and yet not there: an old answer replayed, or a breach. */
async function notThere(run: Run, intent: Intent): Promise<Progress> {
  const replayed = (intent.facts as { readonly replay?: boolean } | undefined)?.replay === true;
  if (replayed) {
    const gone: StateChange = { type: 'next_incarnation', key: intent.key };
    return close(run, intent, 'absent', 'the key replayed a resource that is gone', [gone], true);
  }
  return block(
    run,
    intent,
    'not_there',
    'the API accepted it and reported no failure, but its reads do not show it',
    [],
  );
}

async function taskFailed(run: Run, intent: Intent, evidence: Evidence, failure: string): Promise<Progress> {
  switch (evidence.verdict) {
    case 'done':
    case 'pending':
    case 'failed':
      if (intent.verb === 'delete')
        return settled(run, intent, { ...evidence, verdict: 'done', certain: true });
      return tainted(run, intent, evidence.id, `its task failed: ${failure}`);
    case 'unclear':
      return block(
        run,
        intent,
        'task_failed',
        `its task failed (${failure}), and ${evidence.reason}`,
        evidence.candidates,
      );
    case 'not_done':
      return notSeen(run, intent, async () => {
        const strays = evidence.strays ?? [];
        if (strays.length > 0) {
          const left = `address ${strays.join(', ')} came meanwhile, is free and is billed`;
          return block(run, intent, 'task_failed', `its task failed (${failure}); ${left}`, []);
        }
        const retry = (await sameEndings(run, intent, 'failed')) < 1;
        const closed = await close(run, intent, 'failed', failure, [], retry);
        return retry ? closed : { now: 'blocked', code: 'task_failed', reason: failure };
      });
  }
}

/** Absent only when a second look, a minute after the first, sees nothing either. */
async function notSeen(run: Run, intent: Intent, absent: () => Promise<Progress>): Promise<Progress> {
  const now = run.deps.clock.now();
  if (intent.notSeenAt === undefined) {
    run.tell(
      intent.key,
      intent.verb,
      'checking',
      'nothing to be seen; a second look decides',
      now + absenceGapMs,
    );
    return update(run, intent, { notSeenAt: now }, absenceGapMs);
  }
  const rest = intent.notSeenAt + absenceGapMs - now;
  return rest > 0 ? again(rest) : absent();
}

/** Evidence is read anew, and only behind the fence: another project's token sees nothing. */
async function seek(run: Run, intent: Intent): Promise<Evidence> {
  await run.fence();
  const read = run.cache.since(run.deps.clock.now());
  return run.kindOf(intent.kind).evidence(intent, read, run.known(intent.kind));
}

async function settled(
  run: Run,
  intent: Intent,
  evidence: Evidence & { readonly verdict: 'done' },
): Promise<Progress> {
  const changes =
    intent.verb === 'delete'
      ? released(run, intent.key, 'deleted')
      : boundBy(run, intent, evidence.id, evidence.facts);
  return close(run, intent, 'done', '', changes, false);
}

/** The binding of what was made, and of what came with it. */
export function boundBy(run: Run, intent: Intent, id: string, facts: unknown): StateChange[] {
  const kind = run.kindOf(intent.kind);
  const subject = run.world.subjects.get(intent.key) ?? { key: intent.key, kind: intent.kind };
  const known = { ...(intent.facts as object | undefined), ...(facts as object | undefined) };
  const at = run.deps.clock.now();
  const binding: Binding = {
    key: intent.key,
    kind: intent.kind,
    id,
    ...(intent.parentId === undefined ? {} : { parentId: intent.parentId }),
    ...kind.bind({ subject, id, request: intent.request, facts: known, world: run.world }),
    protect: subject.desired?.protect ?? false,
    boundAt: at,
  };
  const companions = kind.companions?.({ subject, id, preimage: intent.preimage, facts: known, at }) ?? [];
  return [
    ...[binding, ...companions].map((each) => ({ type: 'bind', binding: each }) as const),
    ...(kind.repeats ? [{ type: 'next_incarnation', key: intent.key } as const] : []),
  ];
}

/** It is there and of no use: bound, so that it is not lost, and left to a person or the next run. */
async function tainted(run: Run, intent: Intent, id: string, detail: string): Promise<Progress> {
  const changes = boundBy(run, intent, id, undefined).map((change) =>
    change.type === 'bind' && change.binding.key === intent.key
      ? { ...change, binding: { ...change.binding, tainted: detail } }
      : change,
  );
  await close(run, intent, 'failed', detail, changes, false);
  return { now: 'blocked', code: 'tainted', reason: detail };
}

export async function close(
  run: Run,
  intent: Intent,
  outcome: IntentOutcome,
  detail: string,
  changes: readonly StateChange[],
  retry: boolean,
): Promise<Progress> {
  await run.deps.store.closeIntent(intent.id, outcome, detail, changes, run.deps.clock.now());
  await run.refreshIntents();
  if (changes.length > 0) await run.refreshBindings();
  return { now: 'closed', outcome, retry, detail };
}

async function block(
  run: Run,
  intent: Intent,
  code: string,
  reason: string,
  candidates: readonly string[],
  until?: 'file',
): Promise<Progress> {
  const blocked = { code, reason, candidates, ...(until === undefined ? {} : { until }) };
  await update(run, intent, { phase: 'blocked', blocked }, 0);
  return { now: 'blocked', code, reason };
}

async function update(run: Run, intent: Intent, patch: IntentPatch, afterMs: number): Promise<Progress> {
  await run.deps.store.updateIntent(intent.id, patch, run.deps.clock.now());
  await run.refreshIntents();
  return again(afterMs);
}

/** How often this operation has ended so already, in a row of attempts. */
async function sameEndings(run: Run, intent: Intent, outcome: IntentOutcome): Promise<number> {
  const past = await run.deps.store.intents({ key: intent.key, limit: 20 });
  return past.filter((each) => each.incarnation === intent.incarnation && each.outcome === outcome).length;
}

function warn(run: Run, key: ResourceKey, code: string, message: string): void {
  run.deps.onEvent?.({ type: 'warning', at: run.deps.clock.now(), warning: { code, key, message } });
}

function again(afterMs: number): Progress {
  return { now: 'again', afterMs };
}

function minutes(ms: number): string {
  return `${Math.round(ms / minute)} min`;
}
