import { openWindows } from '../../core/calendar.ts';
import { heldKeysOf, isHeldClaim } from '../../core/claims.ts';
import type { DesiredResource } from '../../core/desired.ts';
import { partsOf } from '../../core/intent.ts';
import { nounOf, type ResourceKey } from '../../core/keys.ts';
import type { World } from '../../core/kind.ts';
import { factsOf } from '../../core/kind-facts.ts';
import { endsExposure, type Operation } from '../../core/plan.ts';
import { command, giveScope, settleFirst } from '../../core/remedy.ts';
import type { StateChange } from '../../core/state.ts';
import { isAccountedFor, neverWas, perhapsMadeAs } from '../../plan/moved-from.ts';
import { restsOn, successorsOf } from '../../plan/order.ts';
import { registerOf } from '../claims/claims.ts';
import { released } from '../claims/release.ts';
import { lastCreation } from '../claims/scope.ts';
import {
  beginIntent,
  contextOf,
  inWriteSlot,
  observationValidMs,
  preimageOf,
  roomToWrite,
  sinceObservation,
} from '../intents/begin.ts';
import { coverable, withServer } from '../intents/bound-by.ts';
import { asksKey, awaitEnd, type Progress } from '../intents/endings.ts';
import { provedBefore } from '../intents/prove.ts';
import {
  creationAfter,
  type Overtaken,
  revalidate,
  secondHalfPaused,
  unresolvedCreate,
  whyNotWanted,
} from '../intents/revalidate.ts';
import { send } from '../intents/settle.ts';
import { observeAgain, type Run } from '../run.ts';
import { absenceGapMs } from '../timing.ts';
import { askLineAgain, unprovenKeys } from './recover.ts';

/** The result of one turn of work on an operation. */
export type Turn = Progress | Overtaken;

/** Begins the write of an approved operation if a fresh observation still asks for exactly this operation. */
export async function operate(run: Run, operation: Operation): Promise<Turn> {
  const held = run.facts.allPaused();
  if (held !== undefined) return { now: 'blocked', ...held };
  const other = (await confirmLost(run, operation)) ?? (await lineHolds(run, operation));
  if (other !== undefined) return other;
  const queuedAt = run.deps.clock.now();
  return inWriteSlot(run, operation, () => beginAndSend(run, operation, queuedAt));
}

/**
 * Runs when the operation has its turn. The wait for the write budget comes first, because it may be long: the
 * observation after the wait is fresh.
 */
async function beginAndSend(run: Run, operation: Operation, queuedAt: number): Promise<Turn> {
  const { clock } = run.deps;
  run.signals.stop.throwIfAborted();
  await roomToWrite(run);
  const holds = sinceObservation(run);
  const world = await worldFor(run, operation);
  if (world === undefined) return { now: 'again', afterMs: 0 };
  const { windows } = world.settings;
  const openNow = () => windows && openWindows(windows, clock.now());
  const opened = openNow();
  const stopped = stoppedBy(run, operation);
  if (stopped !== undefined) return stopped;
  const other = recreatedBefore(run, operation);
  if (other !== undefined) return awaitEnd(other);
  const not = await revalidate(run, world, operation);
  if (not !== undefined) return not;
  const unresolved = (await unresolvedCreate(run, operation)) ?? (await unprovenLine(run, operation));
  if (unresolved !== undefined) return unresolved;
  const token = await run.fence.check();
  const { parent } = world.subjects.get(operation.key) ?? {};
  const server = parent && world.idOf(parent);
  // Another operation may have found meanwhile that the server is gone, or the API may have given out its id again.
  const isLost = () => {
    if (parent === undefined) return false;
    const now = run.bindings.get(parent)?.id ?? coverable(run, parent);
    // The address of a deleted server outlives it.
    return now === undefined ? operation.verb !== 'delete' : now !== server;
  };
  const lost = { now: 'overtaken', reason: `${parent} no longer exists` } as const;
  if (isLost()) return lost;
  const request = run.kindOf(operation.kind).writes.request(contextOf(run, operation, world));
  const held = run.facts.pausedBy(request, operation.spend);
  if (held !== undefined) return { now: 'blocked', ...held };
  const waits = await secondHalfPaused(run, world, { ...operation, request });
  if (waits !== undefined) return waits;
  const unproved = operation.verb === 'delete' ? await provedBefore(run, world, operation) : undefined;
  if (unproved !== undefined) return unproved;
  const preimage = await preimageOf(run, operation, world);
  if (isLost()) return lost;
  const isSame = holds(observationValidMs) && openNow() === opened;
  if (!isSame) return { now: 'again', afterMs: 0 };
  const intent = await beginIntent(run, operation, request, { world, preimage, queuedAt });
  if (intent.phase === 'unknown') return { now: 'again', afterMs: 0 };
  return send(run, intent, token, holds);
}

/** The API may refuse the next replacement for the same reason as the blocked one. */
export function stoppedBy(run: Run, operation: Operation): Exclude<Turn, { now: 'again' }> | undefined {
  const other = run.facts.stoppedReplacement();
  if (!isFirstHalf(operation) || other === undefined || other === operation.key) return undefined;
  const reason = `waits for ${other}, whose replacement is blocked`;
  return { now: 'blocked', code: 'dependency_blocked', reason, remedies: settleFirst(other) };
}

/** The write with which a replacement begins. */
export function isFirstHalf({ needs, replacement }: Operation): boolean {
  return replacement !== undefined && !needs.includes(replacement);
}

/**
 * The key whose resource is deleted and not created again yet. Another purchase with an unknown outcome would delay that
 * creation.
 */
function recreatedBefore({ facts }: Run, { key, kind, verb }: Operation): ResourceKey | undefined {
  if (verb !== 'create' || !factsOf(kind).bought || facts.recreated.has(key)) return undefined;
  return [...facts.recreated][0];
}

/** The entry whose resource is bought. */
function boughtFor(run: Run, { key, verb, kind }: Operation): DesiredResource | undefined {
  const { desired, parent } = run.world.subjects.get(key) ?? {};
  if (verb !== 'create' || parent !== undefined || !asksKey(run, { verb, kind })) return undefined;
  return desired;
}

/** Whether the line of a purchase has another object, or an earlier key of it shows one: the next plan adopts that. */
async function lineHolds(run: Run, operation: Operation): Promise<Turn | undefined> {
  const desired = boughtFor(run, operation);
  const isReplaced = run.bindings.has(operation.key);
  const line = desired && !isReplaced ? run.lines().of(desired) : undefined;
  // The object that the entry took back is gone, and the next run takes back an older one.
  const older = [...run.claims.values()]
    .filter(isHeldClaim)
    .find(
      (claim) =>
        claim.kind === operation.kind && claim.holder.is === 'released' && line?.has(heldKeysOf(claim)[0]),
    );
  if (older !== undefined)
    return {
      now: 'overtaken',
      reason: `${nounOf(older.kind)} ${older.id} was released from its line before`,
    };
  const earlier = desired && (await askLineAgain(run, desired, isReplaced ? 1 : 0));
  if (earlier === undefined) return undefined;
  return { now: 'overtaken', reason: `its earlier key ${earlier} was used` };
}

/** The next run asks the earlier keys of a line that this run could not ask to the end. */
async function unprovenLine(run: Run, operation: Operation): Promise<Turn | undefined> {
  const { key } = operation;
  const desired = boughtFor(run, operation);
  // The creation replaces the resource of its line.
  if (desired === undefined || run.bindings.has(key)) return undefined;
  const [first] = await unprovenKeys(run, desired);
  if (first === undefined) return undefined;
  const last = await lastCreation(run, first);
  const because = last && partsOf(last).because;
  if (because === 'unaskable') return unaskedLine(run, key, first);
  if (because === 'found') return foundForOther(key, first, last?.detail);
  const reason = `the API has not shown yet whether ${key} was created under its earlier key ${first}`;
  return { now: 'blocked', code: 'key_not_answered', reason };
}

/** The operator has ignored or released the resource that the earlier key was answered with. */
function foundForOther(key: ResourceKey, earlier: ResourceKey, detail = ''): Turn {
  return {
    now: 'blocked',
    code: 'key_conflict',
    reason: `${earlier} is an earlier key of ${key}: a resource that this spec does not manage was ${detail}`,
    remedies: [giveScope(), command('adopt', [key, 'ID'], { when: 'if the resource belongs to this spec' })],
  };
}

/** The lists decide about an earlier key that the API cannot be asked about, or else the operator. */
async function unaskedLine(run: Run, key: ResourceKey, earlier: ResourceKey): Promise<Turn | undefined> {
  const subject = run.world.subjects.get(key);
  const known = { world: run.world, kinds: run.deps.kinds, register: await registerOf(run) };
  if (subject === undefined || isAccountedFor(subject, known)) return undefined;
  return { now: 'blocked', code: 'moved_from_unknown', ...perhapsMadeAs(subject, earlier) };
}

/**
 * The observation before a write. The firewall of a server that this run has just created needs none: the document shows
 * its content. `undefined`: the creation of its server has not ended, and the firewall cannot be sent before its end.
 * @source API §4
 */
async function worldFor(run: Run, operation: Operation): Promise<World | undefined> {
  const { parent } = (endsExposure(operation) && run.world.subjects.get(operation.key)) || {};
  if (parent === undefined) return observeFor(run, operation);
  if (run.world.idOf(parent) !== undefined)
    return isJustCreated(run, operation.key, parent) ? run.world : observeFor(run, operation);
  const id = coverable(run, parent);
  return id === undefined ? undefined : withServer(run.world, parent, id);
}

/** The creation of the server has ended a moment ago. */
function isJustCreated(run: Run, firewall: ResourceKey, server: ResourceKey): boolean {
  const { boundAt = 0 } = run.bindings.get(server) ?? {};
  const isNew = run.facts.isNew(server) && !run.world.observed.has(firewall);
  return isNew && Math.abs(run.deps.clock.now() - boundAt) < observationValidMs;
}

/** Observes the resource and the resources that it depends on: its server may be another server by now. */
async function observeFor(run: Run, operation: Operation): Promise<World> {
  const last = boughtFor(run, operation) && (await lastCreation(run, operation.key));
  // A new state knows no resource that a list would have to show, so one list does not show that there is none.
  if (last !== undefined && partsOf(last).because === 'unused')
    run.cache.forget(run.kindOf(last.kind).writes.stale(last.request));
  const world = await run.view.observe(operation.key);
  const below = new Set(restsOn(operation, run.deps.kinds, world));
  for (const key of below) await run.view.observeIfOld(key);
  // Only a read shows that the successor of a retiring server is complete.
  if (operation.verb === 'delete')
    for (const key of successorsOf(operation.key, world)) await run.view.observe(key);
  return run.world;
}

/**
 * A resource that existed is created again only after two reads, a minute apart, do not find the resource. The
 * address that came with the resource is not deleted before that.
 */
async function confirmLost(run: Run, operation: Operation): Promise<Turn | undefined> {
  const { key, verb } = operation;
  const creation = verb === 'create' ? operation : creationAfter(run, run.world, key, verb);
  // A creation has a reason of its own only if it recreates a resource that existed before.
  const lost = creation?.reason !== undefined && creation.replacement === undefined;
  if (!lost) return undefined;
  const gone = lostChanges(run, creation.key);
  if (gone.length === 0) return undefined;
  const { clock } = run.deps;
  const untilMs = clock.now() + absenceGapMs;
  run.report(operation, 'checking', `again whether ${creation.key} is gone`, { untilMs });
  const world = await observeAgain(run, [creation.key]);
  if (world === undefined) return { now: 'again', afterMs: 0 };
  const not = whyNotWanted(run, world, { ...creation, changes: [] });
  if (not !== undefined) return not;
  // A repeating resource, such as a backup, stays known until its successor exists.
  if (verb !== 'create' || factsOf(creation.kind).repeats) return undefined;
  const binding = run.bindings.get(key);
  await run.state.change(gone);
  const { moved } = world.subjects.get(key)?.desired ?? {};
  return binding !== undefined && neverWas(moved, binding)
    ? { now: 'overtaken', reason: `its resource is gone, and its earlier key ${moved} is asked first` }
    : undefined;
}

/** The end of the binding, or of the claim, of a resource that no longer exists. */
function lostChanges(run: Run, key: ResourceKey): readonly StateChange[] {
  const reason = 'the resource no longer exists';
  if (run.bindings.has(key)) return released(run, key, reason);
  const { desired, kind } = run.world.subjects.get(key) ?? {};
  if (desired?.held === undefined || desired.id === undefined || kind === undefined) return [];
  return [{ type: 'unclaim', object: { kind, id: desired.id }, reason }];
}
