import { hash } from 'node:crypto';
import { partsOf } from '../../core/intent.ts';
import { canonicalJson } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { Verb } from '../../core/plan.ts';
import type { Because, Intent, StateChange } from '../../core/state.ts';
import type { Run } from '../run.ts';

/**
 * The key under which a write is sent, 51 printable characters.
 *
 * A digest of the operation, the resource and the attempt: a state that was rolled back,
 * a second machine or a rerun gives the same key, and the API replays its first answer
 * instead of selling again. The digest leaves out the body, so that the API refuses an edited
 * body under an unresolved key instead of selling a second resource. `nonce` is for writes
 * that must be applied every time.
 *
 * @source API §4 rule 4, §8
 */
export function idempotencyKey(
  { desired: { projectId, scope } }: Pick<Run, 'desired'>,
  write: {
    readonly key: ResourceKey;
    readonly verb: Verb;
    readonly incarnation: string;
    readonly attempt: number;
    readonly nonce?: string;
  },
): string {
  return `vdcsync-${hash('sha256', canonicalJson({ projectId, scope, ...write }), 'base64url')}`;
}

/** Whether a creation has the idempotency key that the present `project.scope` gives it. */
export function isInScope(
  run: Pick<Run, 'desired'>,
  { key, verb, incarnation, attempt, idempotencyKey: recorded }: Intent,
): boolean {
  return idempotencyKey(run, { key, verb, incarnation, attempt }) === recorded;
}

/** The incarnation of a key, as a number: those that had another idempotency key do not count. */
interface Numbered {
  readonly incarnation: number;
  /** See the field of an intent. */
  readonly elsewhere: number;
}

/**
 * The present incarnation of the key of a top-level resource. The state counts the resources that are gone or replaced,
 * but a resource may have had its idempotency key under another name, or in another `project.scope`. The incarnations of
 * a key therefore begin with its first creation in this scope, as a new state expects, and continue after its last one.
 *
 * @param ahead incarnations after the present one
 */
export async function incarnationOf(run: Run, key: ResourceKey, ahead = 0): Promise<Numbered> {
  const past = await creationsOf(run, key);
  const own = past.filter((each) => isInScope(run, each));
  const used = own.filter(isUsed).map((each) => Number(each.incarnation));
  const count = (await run.deps.store.incarnation(key)) + ahead;
  const others = own[0] === past[0] ? (own[0]?.elsewhere ?? 0) : 0;
  const incarnation = Math.max(0, Math.min(count - others, Math.max(-1, ...used) + 1));
  return { incarnation, elsewhere: Math.max(others, count - incarnation) };
}

/** By how many incarnations the write is later than the present one that the state knows. */
export async function incarnationsBeyond(
  run: Run,
  { key, incarnation }: Pick<Intent, 'key' | 'incarnation'>,
): Promise<number> {
  return Math.max(0, Number(incarnation) - (await incarnationOf(run, key)).incarnation);
}

/**
 * The changes once the resource of the creation is gone: the next creation of the key has the incarnation after this one.
 * A copy of the state may know fewer incarnations than this creation has. The resource that a creation replaces still
 * has the one before.
 */
export async function usedUp(
  run: Run,
  intent: Pick<Intent, 'key' | 'incarnation' | 'replaces'>,
): Promise<StateChange[]> {
  const beyond = await incarnationsBeyond(run, intent);
  const length = 1 + Math.max(0, intent.replaces === undefined ? beyond : beyond - 1);
  return incarnations(intent.key, length);
}

/** The changes that count so many incarnations of the key. */
export function incarnations(key: ResourceKey, length: number): StateChange[] {
  return Array.from({ length }, () => ({ type: 'next_incarnation', key }) as const);
}

/** The key of the creation names a resource, or holds another answer. The next resource has another incarnation. */
function isUsed(intent: Intent): boolean {
  const { outcome, because, answer } = partsOf(intent);
  const isAnswered = because !== undefined && answered.has(because);
  return outcome === 'done' || isAnswered || answer !== undefined || isDeclaredGone(intent);
}

const answered: ReadonlySet<string> = new Set<Because>(['found', 'gone', 'taken', 'reserved']);

/**
 * The key holds the answer to another request, and the operator declared its resource absent. The next keys of the
 * incarnation may hold others, each of which the operator would be asked about.
 */
function isDeclaredGone(intent: Intent): boolean {
  const { because, unconfirmed } = partsOf(intent);
  return because === 'reported_absent' && unconfirmed?.question.conflict === true;
}

/** The last attempt at the creation in the present `project.scope`, or -1. */
export async function lastAttempt(run: Run, key: ResourceKey, incarnation: string): Promise<number> {
  const last = await run.deps.store.lastAttempt(key, 'create', incarnation);
  if (last < 0) return last;
  const past = await creationsOf(run, key);
  const own = past.filter((each) => isInScope(run, each));
  if (own.length === past.length) return last;
  const attempts = own.flatMap((each) =>
    each.incarnation === incarnation && partsOf(each).outcome !== 'void' ? [each.attempt] : [],
  );
  return Math.max(-1, ...attempts);
}

/**
 * The last creation of the key that has ended, in the present `project.scope`.
 *
 * @param counts leaves out creations
 */
export async function lastCreation(
  run: Run,
  key: ResourceKey,
  counts: (parts: ReturnType<typeof partsOf>, intent: Intent) => boolean = () => true,
): Promise<Intent | undefined> {
  const ended = (await creationsOf(run, key)).filter(({ phase }) => phase === 'closed');
  return ended.find((each) => isInScope(run, each) && counts(partsOf(each), each));
}

/** Whether the API has refused a creation of this state under the idempotency key, which holds the answer to another one. */
export async function holdsAnother(run: Run, key: ResourceKey, named: string): Promise<boolean> {
  const sent = (await creationsOf(run, key)).filter(
    (each) => each.idempotencyKey === named && each.sends > 0,
  );
  return sent.some((each) => partsOf(each).because === 'taken');
}

/** Newest first. */
async function creationsOf({ deps }: Run, key: ResourceKey): Promise<readonly Intent[]> {
  return (await deps.store.intents({ key, limit: 2_000 })).filter(({ verb }) => verb === 'create');
}
