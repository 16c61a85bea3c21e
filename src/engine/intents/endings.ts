import type { Code } from '../../core/codes.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { Evidence } from '../../core/kind.ts';
import { edit, type Remedy, run as runs } from '../../core/remedy.ts';
import type { Ended, Intent, IntentOutcome, IntentPatch, StateChange } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { boundBy } from './bound-by.ts';
import { notForUs } from './ignored-answer.ts';
import { released } from './release.ts';
import { takeOver } from './reused-id.ts';

/** Where an intent has got to after one step. */
export type Progress =
  /** The next step of the same intent, not before `afterMs`. */
  | Again
  /** Closed. `done`: it took effect; else, with `retryAfterMs`, the operation may be begun anew. */
  | {
      readonly now: 'closed';
      readonly outcome: IntentOutcome;
      readonly retryAfterMs?: number;
      readonly detail: string;
    }
  /** It stays open until an operator, the file or time changes something. */
  | Stopped;

/** `until`: what it waits for is the end of the write that is open for that key. */
export interface Again {
  readonly now: 'again';
  readonly afterMs: number;
  readonly until?: ResourceKey;
}

/** Needs an operator. `remedies`: what leads out, where that is not to apply once the cause is gone. */
export interface Stopped {
  readonly now: 'blocked';
  readonly code: string;
  readonly reason: string;
  readonly remedies?: readonly Remedy[];
}

export function again(afterMs: number): Again {
  return { now: 'again', afterMs };
}

/** Looks every few seconds whether the other key's write has ended. */
export function awaitEnd(until: ResourceKey): Again {
  return { now: 'again', afterMs: 5_000, until };
}

/** Nothing of the kind is begun, or bound, before that is known. */
export function unresolved(key: ResourceKey): Stopped {
  return { now: 'blocked', code: 'unresolved_create', reason: `it is not known whether ${key} was created` };
}

/** Ends the intent; `retryAfterMs`: the operation is to be begun anew, under a new key. */
export async function close(
  run: Run,
  intent: Intent,
  ended: Ended,
  { changes = [], retryAfterMs }: { changes?: readonly StateChange[]; retryAfterMs?: number } = {},
): Promise<Progress> {
  const { outcome, text } = ended;
  await run.close(intent, ended, [...doubted(run, intent, outcome), ...changes]);
  return { now: 'closed', outcome, detail: text, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

/** A change that was sent, and not refused, may have been carried out; what no read shows is to be asked for again. */
function doubted(run: Run, { key, kind, verb, request }: Intent, outcome: IntentOutcome): StateChange[] {
  const binding = run.bindings.get(key);
  if (verb !== 'update' || binding === undefined || outcome === 'done' || outcome === 'refused') return [];
  const applied = run.kindOf(kind).doubt?.(binding, request);
  return applied === undefined ? [] : [{ type: 'bind', binding: { ...binding, applied } }];
}

const done = { outcome: 'done', because: 'done' } as const;

/** Why a write is not wanted any more, with the last answer of the API for the history. */
export function after(why: string, { blocked, detail }: Intent): string {
  const said = blocked?.reason ?? detail ?? '';
  return said === '' ? why : `${why}; before that: ${said}`;
}

/** Ends a refusal that the file has answered. */
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

/** Leaves it to an operator, or to the file. */
export async function block(
  run: Run,
  intent: Intent,
  code: string,
  reason: string,
  {
    candidates = [],
    ...more
  }: {
    readonly candidates?: readonly string[];
    readonly until?: 'file';
    readonly parameters?: readonly string[];
  } = {},
): Promise<Progress> {
  const blocked = { code, reason, candidates, ...more };
  await run.update(intent, { phase: 'blocked', blocked });
  return { now: 'blocked', code, reason };
}

/** Records something, and goes on with the intent. */
export async function goOn(run: Run, intent: Intent, patch: IntentPatch, afterMs = 0): Promise<Progress> {
  await run.update(intent, patch);
  if (patch.dueAt !== undefined) run.stopwatch.mark(intent.id, 'due', afterMs);
  return again(afterMs);
}

/** It took effect: what it made is bound, what it removed is released. */
export async function settled(
  run: Run,
  intent: Intent,
  { id, facts }: Extract<Evidence, { verdict: 'done' }>,
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
 * An answer that names a resource that is not for this key is not used. The intent is void: the next run sends the same
 * key again, unless `project.scope` gives the file keys of its own.
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

/** A resource has one key: the other key that had it before releases it, or it has to wait. */
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
  const reason = `${own.id} was answered as made for ${intent.key}, and ${taken.key} stands for it`;
  return block(run, intent, 'bound_already', reason);
}

/** What a key stands for is not to drop out of the state unseen. */
function isBoundToAnother(run: Run, { key, kind, verb, parentId }: Intent, id: string): boolean {
  const { repeats, freshKeys } = run.kindOf(kind);
  const bound = run.bindings.get(key);
  if (bound === undefined || verb !== 'create' || repeats || freshKeys) return false;
  return bound.parentId === parentId && bound.id !== id;
}

function blockSecond(run: Run, intent: Intent, id: string): Promise<Progress> {
  const bound = run.bindings.get(intent.key)?.id;
  const reason = `${id} was made for ${intent.key}, which stands for ${bound} already: adopting ${id} lets go of that one`;
  return block(run, intent, 'bound_already', reason, { candidates: [id] });
}

/** Its id was given to another key while this one was looked at. */
function hasPassedOn(run: Run, intent: Intent, id: string): boolean {
  return intent.resourceId === id && run.intents.get(intent.key)?.resourceId !== id;
}

/** Which package a server was asked for with, as the file may name several. */
export function packageOf({ request }: Intent): string {
  return (request.body as { readonly gpu_package?: string } | undefined)?.gpu_package ?? '';
}

/** It is there and of no use: bound with all that came with it, so that it is not lost, and left to an operator or the next run. */
export async function tainted(
  run: Run,
  intent: Intent,
  { id, facts }: Extract<Evidence, { id: string }>,
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

/** How an attempt has ended, and how often it may end so before an operator hears of it. */
interface Ending extends Ended {
  /** Of what an operator then hears. */
  readonly code: string;
  readonly most: number;
  /** Of the state, with its end. */
  readonly changes?: readonly StateChange[];
}

/** Begun anew unless this resource's attempts have ended so `most` times already. */
export async function closeAndRetry(
  run: Run,
  intent: Intent,
  { code, most, changes = [], ...ended }: Ending,
): Promise<Progress> {
  const past = await run.deps.store.intents({ key: intent.key, limit: 50 });
  const before = past.filter(
    (each) =>
      each.verb === intent.verb && each.incarnation === intent.incarnation && each.outcome === ended.outcome,
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
