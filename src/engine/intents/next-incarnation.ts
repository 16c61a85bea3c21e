import equal from 'fast-deep-equal';
import { type DesiredResource, isBare } from '../../core/desired.ts';
import { partsOf } from '../../core/intent.ts';
import { digestOf } from '../../core/json.ts';
import { type ResourceKey, retiringKey, takeApart } from '../../core/keys.ts';
import type { World, WriteContext } from '../../core/kind.ts';
import { factsOf } from '../../core/kind-facts.ts';
import { operationId } from '../../core/plan.ts';
import type { WriteRequest } from '../../core/ports.ts';
import type { Binding, Intent, StateChange } from '../../core/state.ts';
import { draftOne } from '../../plan/draft.ts';
import { deleted } from '../claims/release.ts';
import { incarnationOf, isInScope, lastAttempt, lastCreation } from '../claims/scope.ts';
import { hasUnidentified, unidentified } from '../claims/unidentified.ts';
import { observeAgain, type Run } from '../run.ts';
import { beginIntent, contextOf, inWriteSlot, preimageOf } from './begin.ts';
import {
  asksKey,
  close,
  conflicting,
  isServerError,
  keyIsFresh,
  keyMayBeKnown,
  type Progress,
  unasked,
} from './endings.ts';
import { probeKey } from './probe-key.ts';

/**
 * The key of a creation holds the answer to another body: an earlier state may have replaced the resource since, with
 * the body of this creation. An incarnation begins only when the one before it is gone or retires, so a used key of the
 * next incarnation shows that. Returns the creation that begins again under that key, or the intent that takes the place
 * of this intent.
 *
 * @source API §8.1
 */
export async function tryNextIncarnation(run: Run, intent: Intent): Promise<Progress | Intent> {
  const { key, request, preimage, recovers } = intent;
  // If the entry or the scope was edited since, its creation does not begin again. A server error may have had its effect.
  const { why = 'lost' } = partsOf(intent).unconfirmed ?? {};
  if (isEdited(run, intent) !== false || isServerError(why) || !isInScope(run, intent)) return intent;
  const operation = creationOf(intent);
  const begun = { world: run.world, preimage, recovers };
  // The key was used before the first send of this creation, so that no send of it was carried out.
  await close(run, intent, {
    outcome: 'void',
    because: 'taken',
    text: 'its idempotency key holds the answer to another request',
  });
  // A process that ends here leaves a question about the key of another state, and no creation of its own.
  const question = { ...begun, recovers: recovers ?? key };
  const { held, asking } = await askNext(run, operation, request, question, (_intent, probe) => probe());
  if (held.is === 'taken' || (held.is === 'accepted' && held.answer.replayed)) {
    // The server of the present incarnation may still exist: no answer names it.
    const left = factsOf(intent.kind).container ? [unidentified(run, intent)] : [];
    // The next creation is sent under this key, and gets its answer.
    return close(
      run,
      asking,
      { outcome: 'void', text: 'an earlier state used this idempotency key' },
      { changes: [{ type: 'next_incarnation', key }, ...left], retryAfterMs: 0 },
    );
  }
  if (held.is === 'fenced')
    await close(run, asking, { outcome: 'absent', text: 'no earlier state used this idempotency key' });
  else await close(run, asking, { outcome: 'void', text: 'the API did not answer for this idempotency key' });
  const same = await beginIntent(run, operation, request, {
    ...begun,
    question: conflicting,
    numbered: intent,
  });
  // The new record replaces the previous record, so it keeps the time and number of its sends.
  const { sends, lastSentAt, lastSentApiAt } = intent;
  return run.state.update(same, {
    ...{ sends, lastSentAt, lastSentApiAt },
    stage: { phase: 'unknown', unconfirmed: { why, question: conflicting } },
  });
}

/**
 * Asks again about a key that holds the answer to another request: the entry was edited since, and the key may hold the
 * answer to the edited entry. The conflict remains if the key does not hold an answer any more.
 *
 * @source API §8.1
 */
export async function askAgain(run: Run, intent: Intent): Promise<void> {
  const { key, preimage, replaces, recovers = key, sends, lastSentAt, lastSentApiAt } = intent;
  const { blocked, unconfirmed } = partsOf(intent);
  if (blocked?.code !== 'key_conflict' || replaces !== undefined || isServerError(unconfirmed?.why)) return;
  if (isEdited(run, intent) !== true || !keyIsFresh(run, intent) || !isInScope(run, intent)) return;
  const operation = creationOf(intent);
  const request = requestOf(run, operation);
  if (request === undefined) return;
  await inWriteSlot(run, intent, async () => {
    if (run.facts.pausedBy(request, 'none') !== undefined) return;
    const { held, asking } = await probeKey(run, intent);
    if (held.is !== 'taken') return;
    await close(run, asking, { outcome: 'void', text: 'the entry was edited since' });
    const question = { ...unasked, stage: 'taken' } as const;
    // The end of an earlier resource may have counted an incarnation in the meantime.
    const begun = { world: run.world, preimage, question, recovers, numbered: intent };
    const next = await beginIntent(run, operation, request, begun);
    await run.state.update(next, { sends, lastSentAt, lastSentApiAt });
  });
}

/** The most attempts of the next incarnation that are asked. */
const mostAttempts = 8;

type Probed = Awaited<ReturnType<typeof probeKey>>;

/**
 * Asks the keys of the next incarnation in turn. A state that asked before has left a key fenced, and has used the key
 * of the next attempt, if any. Returns the answer of the last key, whose question is open still.
 */
async function askNext(
  run: Run,
  operation: WriteContext['operation'],
  request: WriteRequest,
  begun: Pick<Parameters<typeof beginIntent>[3], 'world' | 'preimage' | 'recovers'>,
  inSlot: (intent: Intent, probe: () => Promise<Probed>) => Promise<Probed>,
): Promise<Probed> {
  for (let left = mostAttempts; ; left--) {
    const intent = await beginIntent(run, operation, request, { ...begun, question: unasked, ahead: 1 });
    const probed = await inSlot(intent, () => probeKey(run, intent));
    if (probed.held.is !== 'fenced' || !probed.held.earlier || left === 1) return probed;
    await close(run, probed.asking, {
      outcome: 'absent',
      text: 'an earlier state fenced this idempotency key',
    });
  }
}

/**
 * A new state found a server under its idempotency key. The earlier state may have begun to replace the server, with
 * another body and under the next incarnation of the key, or may have given the key to another entry. No list shows a
 * server without an address. If the next key was used, another server may exist. Returns whether the state has recorded
 * one.
 *
 * @source API §8.1
 */
export async function askSuccessors(run: Run): Promise<boolean> {
  const bound = [...run.bindings.values()].flatMap(({ key, kind, id, formerKeys = [], recovered }) =>
    recovered === 'found' ? [{ kind, id, own: key, keys: [key, ...formerKeys] }] : [],
  );
  const claimed = [...run.claims.values()].flatMap(({ id, holder }) => {
    if (holder.is !== 'found') return [];
    const { key, askedFor: own = key } = holder;
    const { desired } = run.world.subjects.get(own) ?? {};
    if (desired === undefined || !isBare(desired)) return [];
    return [{ kind: desired.kind, id, own, keys: [...new Set([own, key])] }];
  });
  let any = false;
  for (const { kind, id, own, keys } of [...bound, ...claimed]) {
    if (factsOf(kind).container !== true || run.world.ipsOf(id).length > 0) continue;
    for (const key of keys) {
      if (run.intents.has(key) || hasUnidentified(run, key) || (await isAsked(run, key))) continue;
      if (!(await isNextUsed(run, { key: own, kind }, key, (asked) => [unidentified(run, asked)]))) continue;
      any = true;
      break;
    }
  }
  return any;
}

/**
 * The bound resource is gone, and the key of the next incarnation was used: a newer state has replaced the resource. The
 * binding ends, so that this key is asked for the new resource.
 *
 * @source API §8.1
 */
export async function endReplaced(run: Run, { key, kind }: Pick<Binding, 'key' | 'kind'>): Promise<void> {
  const binding = run.bindings.get(key);
  if (binding === undefined || !isLost(run, key) || run.intents.has(key)) return;
  if (!asksKey(run, { verb: 'create', kind }) || (await isAsked(run, key))) return;
  if (!(await isNextUsed(run, binding))) return;
  const world = await observeAgain(run, [key], run.signals.halt);
  if (world !== undefined && isLost(run, key))
    await run.state.change(deleted(run, { key }, 'another state has replaced the resource'));
}

/** The spec asks for a resource in place of the bound one, which reads do not find. */
function isLost({ bindings, deps, world }: Run, key: ResourceKey): boolean {
  const subject = world.subjects.get(key);
  if (subject === undefined || !bindings.has(key)) return false;
  if (world.observed.get(key)?.id !== undefined) return false;
  const { verdict } = draftOne(deps.kinds, world, subject).diff;
  return (verdict.verdict === 'blocked' ? verdict.verb : verdict.verdict) === 'create';
}

/**
 * Whether this state has asked, or used, the key of the next creation.
 *
 * @param ahead 1 for a resource that exists
 */
export async function isAsked(run: Run, key: ResourceKey, ahead: 0 | 1 = 1): Promise<boolean> {
  const { incarnation } = await incarnationOf(run, key, ahead);
  return (await lastAttempt(run, key, String(incarnation))) >= 0;
}

/**
 * Whether another state has used the key of the next incarnation. A key that does not answer counts as used.
 * `undefined`: no request can be sent now.
 *
 * @param ifUsed recorded with the answer: the key is not asked again
 */
async function isNextUsed(
  run: Run,
  { key: own, kind }: Pick<Binding, 'key' | 'kind'>,
  key = own,
  ifUsed: (asked: Intent) => readonly StateChange[] = () => [],
): Promise<boolean | undefined> {
  const operation = { key, kind, verb: 'create', changes: [] } as const;
  const { desired } = run.world.subjects.get(own) ?? {};
  if (desired === undefined) return undefined;
  const world = withSubject(run.world, desired, key);
  const request = requestOf(run, operation, world);
  if (request === undefined || run.facts.pausedBy(request, 'none') !== undefined) return undefined;
  const preimage = await preimageOf(run, operation, world);
  const begun = { world, preimage, recovers: own };
  const { held, asking } = await askNext(run, operation, request, begun, (intent, probe) =>
    inWriteSlot(run, intent, probe),
  );
  const isFenced = held.is === 'fenced';
  const isUsed = !isFenced || held.earlier;
  const text = isFenced
    ? 'no earlier state used this idempotency key, or one fenced the key'
    : 'another server may have been created under this idempotency key';
  const changes = isUsed ? ifUsed(asking) : [];
  await close(run, asking, { outcome: isFenced ? 'absent' : 'void', text }, { changes });
  return isUsed;
}

/** `undefined`: the request needs a resource that does not exist yet, or an entry that has left the spec. */
export function requestOf(
  run: Run,
  operation: WriteContext['operation'],
  world: World = run.world,
): WriteRequest | undefined {
  try {
    return run.kindOf(operation.kind).writes.request(contextOf(run, operation, world));
  } catch {
    return undefined;
  }
}

/** `undefined` if the entry has left the spec. */
function isEdited(run: Run, { key, basis }: Intent): boolean | undefined {
  const desired = run.world.subjects.get(key)?.desired;
  return desired && digestOf(desired.value ?? null) !== basis;
}

function creationOf({ key, kind, changes, replaces }: Intent): WriteContext['operation'] {
  return {
    ...{ key, kind, verb: 'create', changes },
    ...(replaces === undefined ? {} : { replacement: operationId('delete', retiringKey(key, replaces)) }),
  };
}

/** Returns the world in which the resource has its earlier key, and the name that an entry of that key gets. */
export function withSubject(world: World, resource: DesiredResource, key: ResourceKey): World {
  const { key: own, kind } = resource;
  const subject = world.subjects.get(own);
  const { desired = resource } = subject ?? {};
  const named = { ...desired.value, name: takeApart(key).name };
  const value = desired.named === false ? named : desired.value;
  return {
    ...world,
    subjects: new Map(world.subjects).set(key, { kind, ...subject, key, desired: { ...desired, value } }),
  };
}

/**
 * The requests under the names that the entry had under its other earlier keys, which a rename keeps at first. The last
 * one is the request itself, which an operator then decides on.
 */
export function underFormerNames(
  run: Run,
  resource: DesiredResource,
  { key, kind, request }: Intent,
): readonly WriteRequest[] {
  if (resource.named !== false) return [];
  const others = [...run.lines().of(resource)].filter((each) => each !== key && each !== resource.key);
  const kept = others.flatMap((each) => {
    const creation = { key: each, kind, verb: 'create', changes: [] } as const;
    const named = requestOf(run, creation, withSubject(run.world, resource, each));
    return named === undefined || equal(named, request) ? [] : [named];
  });
  return kept.length === 0 ? [] : [...kept, request];
}

/** A newer copy of the state may have created the server again since the API has forgotten the last key of this one. */
export async function isForgotten(run: Run, key: ResourceKey): Promise<boolean> {
  const last = await lastCreation(run, key, (_parts, { sends }) => sends > 0);
  return last !== undefined && !keyMayBeKnown(run, last);
}
