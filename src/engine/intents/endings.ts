import type { Code } from '../../core/codes.ts';
import { effectOf, partsOf } from '../../core/intent.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { edit, type Remedy, run as runs } from '../../core/remedy.ts';
import type {
  Ended,
  Facts,
  Intent,
  IntentOutcome,
  IntentPatch,
  Question,
  StateChange,
} from '../../core/state.ts';
import { released } from '../claims/release.ts';
import type { Run } from '../run.ts';
import { boundBy } from './bound-by.ts';
import { notForUs } from './ignored-answer.ts';
import { takeOver } from './reused-id.ts';

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
  /** The intent stays open until the operator, the file or time changes something. */
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

export function again(afterMs: number): Again {
  return { now: 'again', afterMs };
}

/** Checks every few seconds whether the write of the other key has ended. */
export function awaitEnd(until: ResourceKey): Again {
  return { now: 'again', afterMs: 5_000, until };
}

/** The operation is blocked until the result of the creation is known, because both could take the same resource. */
export function unresolved(key: ResourceKey): Stopped {
  return { now: 'blocked', code: 'unresolved_create', reason: `it is not known whether ${key} was created` };
}

/** Ends the intent. With `retryAfterMs`, the operation begins again under a new key. */
export async function close(
  run: Run,
  intent: Intent,
  ended: Ended,
  { changes = [], retryAfterMs }: { changes?: readonly StateChange[]; retryAfterMs?: number } = {},
): Promise<Progress> {
  const { outcome, text } = ended;
  await run.close(intent, ended, [...unconfirmedUpdate(run, intent, outcome), ...changes]);
  return { now: 'closed', outcome, detail: text, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
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
  const applied = run.kindOf(kind).doubt?.(binding, request);
  return applied === undefined ? [] : [{ type: 'bind', binding: { ...binding, applied } }];
}

const done = { outcome: 'done', because: 'done' } as const;

/** The reason why a write is no longer wanted, with the last answer of the API for the history. */
export function after(why: string, intent: Intent): string {
  const said = partsOf(intent).blocked?.reason ?? intent.detail;
  return said === '' ? why : `${why}; before that: ${said}`;
}

/** Ends a refused intent whose entry the file has changed since. */
export function closeOutdated(
  run: Run,
  intent: Intent,
  more: { readonly retryAfterMs?: number } = {},
): Promise<Progress> {
  return close(
    run,
    intent,
    { outcome: 'refused', because: 'file_changed', text: after('the file has changed', intent) },
    more,
  );
}

/** Leaves the decision to the operator, or to the file. */
export async function block(
  run: Run,
  intent: Intent,
  code: string,
  reason: string,
  more: Partial<Question> = {},
): Promise<Progress> {
  const blocked = { code, reason, candidates: [], ...more };
  await run.update(intent, { stage: { phase: 'blocked', blocked, ...effectOf(intent) } });
  return { now: 'blocked', code, reason };
}

/** Records the patch, and continues with the intent. */
export async function goOn(run: Run, intent: Intent, patch: IntentPatch, afterMs = 0): Promise<Progress> {
  await run.update(intent, patch);
  if (patch.dueAt !== undefined) run.stopwatch.mark(intent.id, 'due', afterMs);
  return again(afterMs);
}

/** The write took effect. A created resource is bound, and a deleted resource is released. */
export async function settled(
  run: Run,
  intent: Intent,
  { id, facts }: { readonly id: string; readonly facts?: Facts | undefined },
): Promise<Progress> {
  if (hasPassedOn(run, intent, id)) return again(0);
  if (isBoundToAnother(run, intent, id)) return blockSecond(run, intent, id);
  if (intent.verb === 'delete')
    return close(run, intent, { ...done, text: '' }, { changes: released(run, intent.key, 'deleted') });
  const bound = boundBy(run, intent, id, facts);
  const taken = (await refusedAnswer(run, intent, id, bound)) ?? (await takenBy(run, intent, bound));
  if ('now' in taken) return taken;
  const chosen = packageOf(intent);
  return close(
    run,
    intent,
    { ...done, text: chosen === '' ? '' : `gpu_package ${chosen}` },
    {
      changes: [...taken, ...bound],
    },
  );
}

/**
 * An answer that names a resource of another key is not used. The intent is void: the next run sends the same key
 * again, unless `project.scope` gives the file its own keys.
 */
async function refusedAnswer(
  run: Run,
  intent: Intent,
  id: string,
  bound: readonly StateChange[],
): Promise<Stopped | undefined> {
  const why = notForUs(run, intent, bound);
  if (why === undefined) return undefined;
  const { key } = intent;
  const reason = `the idempotency key of ${key} was used before, by another file of this project or an earlier state, and ${why}`;
  await close(run, intent, { outcome: 'void', because: 'key_conflict', text: reason });
  const remedies = [
    edit('project', {
      choose: { scope: [] },
      when: 'in one of the files, if another file of the project created it',
    }),
    runs('adopt', [key, id], { when: 'if it belongs to this file' }),
  ];
  return { now: 'blocked', code: 'key_conflict', reason, remedies };
}

/** A resource has one key. The other key that had the resource before releases it. Otherwise this key waits. */
async function takenBy(
  run: Run,
  intent: Intent,
  bound: readonly StateChange[],
): Promise<StateChange[] | Progress> {
  const [own] = bound.flatMap((change) => (change.type === 'bind' ? [change.binding] : []));
  if (intent.verb !== 'create' || own === undefined) return [];
  const taken = await takeOver(run, intent, own);
  if (!('isOpen' in taken)) return taken;
  if (taken.isOpen) return awaitEnd(taken.key);
  const reason = `the API answered that ${own.id} was created for ${intent.key}, but ${taken.key} is bound to ${own.id}`;
  return block(run, intent, 'bound_already', reason);
}

/** The resource that is bound to a key must not leave the state without a warning. */
function isBoundToAnother(run: Run, { key, kind, verb, parentId }: Intent, id: string): boolean {
  const { repeats, freshKeys } = run.kindOf(kind);
  const bound = run.bindings.get(key);
  if (bound === undefined || verb !== 'create' || repeats || freshKeys) return false;
  return bound.parentId === parentId && bound.id !== id;
}

function blockSecond(run: Run, intent: Intent, id: string): Promise<Progress> {
  const bound = run.bindings.get(intent.key)?.id;
  const reason = `${id} was created for ${intent.key}, which is already bound to ${bound}: adopting ${id} releases ${bound}`;
  return block(run, intent, 'bound_already', reason, { candidates: [id] });
}

/** The id was given to another key while this step read its evidence. */
function hasPassedOn(run: Run, intent: Intent, id: string): boolean {
  const now = run.intents.get(intent.key);
  return partsOf(intent).answer?.id === id && (now === undefined || partsOf(now).answer?.id !== id);
}

/** The package that a server was requested with. The file may name several packages. */
export function packageOf({ request }: Intent): string {
  return (request.body as { readonly gpu_package?: string } | undefined)?.gpu_package ?? '';
}

/**
 * The resource exists, but is not usable. It is bound with all that came with it, so that the state does not lose it.
 * The operator or the next run decides about it.
 */
export async function tainted(
  run: Run,
  intent: Intent,
  { id, facts }: { readonly id: string; readonly facts?: Facts | undefined },
  detail: string,
): Promise<Progress> {
  if (hasPassedOn(run, intent, id)) return again(0);
  if (isBoundToAnother(run, intent, id)) return blockSecond(run, intent, id);
  const bound = boundBy(run, intent, id, facts);
  const taken = (await refusedAnswer(run, intent, id, bound)) ?? (await takenBy(run, intent, bound));
  if ('now' in taken) return taken;
  const changes = bound.map((change) =>
    change.type === 'bind' && change.binding.key === intent.key
      ? { ...change, binding: { ...change.binding, tainted: detail } }
      : change,
  );
  await close(
    run,
    intent,
    { outcome: 'failed', because: 'task_failed', text: detail },
    { changes: [...taken, ...changes] },
  );
  return { now: 'blocked', code: 'tainted', reason: detail };
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
  await close(run, intent, ended, { changes });
  return { now: 'blocked', code, reason: ended.text };
}

export function warn(run: Run, key: ResourceKey, code: Code, message: string): void {
  run.deps.onEvent?.({ type: 'warning', at: run.deps.clock.now(), warning: { code, key, message } });
}

export function minutes(ms: number): string {
  return `${Math.round(ms / 60_000)} min`;
}
