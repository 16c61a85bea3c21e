import { isUnidentified } from '../../core/claims.ts';
import { type DesiredResource, isBare } from '../../core/desired.ts';
import { partsOf } from '../../core/intent.ts';
import { type ResourceKey, takeApart } from '../../core/keys.ts';
import type { World } from '../../core/kind.ts';
import { factsOf, type KindName } from '../../core/kind-facts.ts';
import type { WriteRequest } from '../../core/ports.ts';
import type { Because, Binding, Intent, IntentOutcome, StateChange } from '../../core/state.ts';
import { draftOne } from '../../plan/draft.ts';
import { isNone, unmanagedFor } from '../../plan/unmanaged.ts';
import { answeredCreation, registerOf } from '../claims/claims.ts';
import { incarnationOf, lastAttempt, lastCreation, usedUp } from '../claims/scope.ts';
import { answeredWithServer } from '../claims/unidentified.ts';
import { decided } from '../intents/ask-key.ts';
import { beginIntent, inWriteSlot, preimageOf } from '../intents/begin.ts';
import {
  asksKey,
  close,
  conflicting,
  isDormant,
  isReplay,
  keyIsFresh,
  questionOf,
  unasked,
} from '../intents/endings.ts';
import { answerAtLast } from '../intents/held.ts';
import {
  askAgain,
  askSuccessors,
  endReplaced,
  isAsked,
  isForgotten,
  requestOf,
  tryNextIncarnation,
  underFormerNames,
  withSubject,
} from '../intents/next-incarnation.ts';
import { idByEvidence, lifeOf, taskOf } from '../intents/not-there.ts';
import { isReservedElsewhere, isUnaskable } from '../intents/probe-key.ts';
import { isReservation } from '../intents/reserve-key.ts';
import { found } from '../intents/transfer.ts';
import type { Run } from '../run.ts';

/** The most incarnations and attempts of one key that are asked in one round. */
const mostKeys = 8;

/** The most later incarnations that a new state asks about. */
const mostLater = 3;

/**
 * The keys of creations are asked first, if the project holds unmanaged resources and this state has never used the key:
 * the state may be new, or an older copy. The earlier keys of a line are asked in any case, before the resource is
 * bought: the API replays the answers that an earlier state received, and their ids are certain. Returns whether a
 * resource was found, which the plan then shows as an adoption, or further keys have to be asked.
 *
 * @param all asks each key that this state has never used, because no creation follows that would ask it
 * @source API §8.1
 */
export async function recover(run: Run, all: boolean): Promise<boolean> {
  const { resources } = run.desired;
  const unbound = resources.filter(({ key }) => !run.bindings.has(key));
  const mayBeOld = unbound.some(isBare) && (await isDormant(run));
  for (const intent of [...run.intents.values()]) await askAgain(run, intent);
  const register = await registerOf(run);
  const bought = resources.filter(({ managed, parent }) => managed && parent === undefined);
  for (const each of bought)
    if (!isNone(unmanagedFor(each.kind, register, run.world))) await endReplaced(run, each);
  const wanted = resources.filter((each) => isWanted(run, each) && !register.answeredElsewhere.has(each.key));
  const isShown = wanted.some(({ kind }) => !isNone(unmanagedFor(kind, register, run.world)));
  const isFindable =
    isShown ||
    register.unlisted !== undefined ||
    wanted.some(({ key }) => (run.world.observed.get(key)?.sameName ?? []).length > 0);
  // A key may have passed from one server to another, and no read shows a server without an address.
  const servers = wanted.filter(({ kind }) => factsOf(kind).container);
  const isOneOpen = [...run.claims.values()].some(isUnidentified);
  const mayHavePassed = servers.some(isBare) && (servers.length > 1 || isOneOpen);
  const going = goingKinds(run);
  const isUsed = run.world.networks.some((each) => !each.is_default);
  const mayBeLater = isShown || mayBeOld || (register.isNew && isUsed);
  let any = false;
  for (const resource of wanted) {
    if (run.signals.stop.aborted || run.facts.allPaused() !== undefined) break;
    const earlier = await unprovenKeys(run, resource);
    // The creation itself asks the key of the resource, also about an ignored one, and not its earlier keys.
    const { unmanaged } = run.desired.settings;
    const isIgnored = unmanaged === 'ignore' && factsOf(resource.kind).bought && earlier.length === 0;
    // An edit with the rename may have replaced the resource, which an earlier key shows then.
    const isRenamed = earlier.some((key) => !run.intents.has(key) || isResumed(run, key));
    const mayExist =
      isFindable || isRenamed || going.has(resource.kind) || (mayHavePassed && servers.includes(resource));
    const isUnknown =
      (all && !(await isProven(run, resource.key))) ||
      (mayExist && (all || !isIgnored) && !(await isNextProven(run, resource.key)));
    const isOwnAsked = isResumed(run, resource.key) || isUnknown;
    if (await lookUp(run, resource, isOwnAsked ? [resource.key, ...earlier] : earlier)) any = true;
    else if (isBare(resource) && (mayBeLater || (await isForgotten(run, resource.key)))) {
      if (await lookUpLater(run, resource)) any = true;
    }
  }
  return (await askSuccessors(run)) || any;
}

/** The server may have been created again, or replaced, since the API has forgotten its first key. @source API §8.4 */
async function lookUpLater(run: Run, resource: DesiredResource): Promise<boolean> {
  for (let later = 1; later <= mostLater; later++) {
    if ((await lastAttempt(run, resource.key, String(later))) >= 0) continue;
    if (await lookUp(run, resource, [resource.key], { later })) return true;
  }
  return false;
}

/**
 * Asks about servers whose creation shows that they are gone, and whose entries have left the spec: a newer state may
 * have bought another server under the next incarnation of the key, and no creation asks that key.
 */
export async function recoverLeft(run: Run): Promise<void> {
  const { store } = run.deps;
  const declared = new Set(run.desired.resources.map(({ key }) => key));
  for (const intent of await store.intents({ outcome: 'absent', limit: 50 })) {
    const { key, kind, entry, incarnation, request } = intent;
    const isLeft = factsOf(kind).container && !declared.has(key);
    const isLast = isLeft && (await lastCreation(run, key))?.id === intent.id;
    if (!isLast || entry === undefined || !keyIsFresh(run, intent)) continue;
    if (incarnation === String((await incarnationOf(run, key)).incarnation)) continue;
    const position = { file: '', line: 1, column: 1 };
    await lookUp(run, { key, kind, managed: true, position, ...entry }, [key], { sent: [request] });
  }
}

/** A rename that waited has a binding now, which another state may have replaced. */
export async function recoverRenamed(run: Run): Promise<boolean> {
  if (run.moves.waiting.length > 0) return false;
  run.cache.forgetLists();
  await run.view.refresh();
  return recover(run, false);
}

/** The earlier keys of the line under which an earlier state may have bought the resource. */
export async function unprovenKeys(
  run: Run,
  entry: Pick<DesiredResource, 'key' | 'moved'>,
): Promise<readonly ResourceKey[]> {
  const line = [...run.lines().of(entry)].filter((key) => key !== entry.key);
  const proven = await Promise.all(line.map((key) => isProven(run, key)));
  return line.filter((_key, at) => !proven[at]);
}

/**
 * Asks the earlier keys of a line again before its resource is bought, once a run: a newer copy of this state may have
 * bought it since under the next key of the same entry. Returns the key under which it was found.
 *
 * @param ahead 1 if the resource is replaced: the newer state may have replaced it before the rename
 */
export async function askLineAgain(
  run: Run,
  entry: DesiredResource,
  ahead: 0 | 1,
): Promise<ResourceKey | undefined> {
  for (const key of [...run.lines().of(entry)].filter((each) => each !== entry.key)) {
    const last = await lastCreation(run, key, isEnded);
    const { because, outcome } = last === undefined ? {} : partsOf(last);
    const isFound = because === 'found';
    if (isFound && outcome === 'void') continue;
    if (last && (run.stopwatch.isMarked(last.id, 'asked') || (await isUnaskable(run, last)))) continue;
    // The resource that was found is gone, or is the one that is replaced.
    if (await lookUp(run, entry, [key], { ahead: isFound ? 1 : ahead })) return key;
  }
  return undefined;
}

/** A question about the key of the next resource, without an answer, says nothing about this one. */
const isEnded = ({ outcome, because }: ReturnType<typeof partsOf>) =>
  outcome !== 'void' || because !== undefined;

/** Whether this state has used or asked the key under which the resource would be created next. */
export async function isNextProven(run: Run, key: ResourceKey): Promise<boolean> {
  if (run.bindings.has(key)) return isAsked(run, key);
  return (await isProven(run, key)) && isAsked(run, key, 0);
}

/** Whether this state has used the key, or has asked it to the end. */
async function isProven(run: Run, key: ResourceKey): Promise<boolean> {
  // A question to an API whose keys cannot be asked says nothing about an earlier write.
  const last = await lastCreation(run, key, ({ because }) => because !== 'unaskable');
  if (last === undefined) return false;
  const { because, outcome } = partsOf(last);
  if (because === 'unused' || because === 'reported_absent') return true;
  return outcome !== 'void' && last.sends > 0 && because !== 'replayed' && !isReplay(last);
}

/**
 * The kinds of which a resource would be deleted or replaced, now or once its creation is settled: this state may be
 * older than a rename, and the resource may be the wanted one.
 */
function goingKinds(run: Run): ReadonlySet<KindName> {
  const inLines = new Set(run.desired.resources.flatMap((each) => [...run.lines().of(each)]));
  const creations = [...run.intents.values()].filter(
    ({ key, recovers }) => recovers === undefined && !inLines.has(key),
  );
  const going = [...run.bindings.values(), ...creations].filter((each) => isGoing(run, each));
  return new Set(going.map(({ kind }) => kind));
}

/** A top-level resource that has left the spec, or that the spec replaces. */
function isGoing({ deps, world }: Run, { key }: Pick<Binding, 'key'>): boolean {
  const subject = world.subjects.get(key);
  if (subject?.desired === undefined) return takeApart(key).parent === undefined;
  return (
    subject.parent === undefined && draftOne(deps.kinds, world, subject).diff.verdict.verdict === 'replace'
  );
}

/** A top-level resource without a binding, an open intent, an id in the spec or a live object to take back. */
function isWanted(run: Run, { key, kind, id, held, managed, parent }: DesiredResource): boolean {
  const isTaken = held === undefined ? id !== undefined : run.world.isThere(key);
  if (!managed || isTaken || parent !== undefined) return false;
  if (run.bindings.has(key) || (run.intents.has(key) && !isResumed(run, key))) return false;
  // A resource that is gone is only reported.
  if (held !== undefined && run.desired.settings.drift === 'report') return false;
  return asksKey(run, { verb: 'create', kind });
}

/** The question of an earlier run, whose process ended before the answer was used. */
function isResumed(run: Run, key: ResourceKey): boolean {
  const open = run.intents.get(key);
  if (open?.recovers === undefined || isReservation(open) || !keyIsFresh(run, open)) return false;
  return open.phase === 'sending' || (open.phase === 'unknown' && questionOf(open).conflict !== true);
}

/** `sent`: other requests than that of the entry, in turn. `ahead`, `later`: as of the beginning of a write. */
interface Asking {
  readonly sent?: readonly WriteRequest[];
  readonly ahead?: number;
  readonly later?: number | undefined;
}

/** Whether a key of the resource holds the answer of a live resource, or may hold it. The keys are asked in turn until one is unused. */
async function lookUp(
  run: Run,
  resource: DesiredResource,
  keys: readonly ResourceKey[],
  asking: Asking = {},
): Promise<boolean> {
  const reserved: ResourceKey[] = [];
  for (const key of keys) {
    // The end of an open write shows its resource.
    if (run.intents.has(key) && !isResumed(run, key)) return false;
    const held = await lookUpInTurn(run, key, resource, asking);
    // The next round asks the keys after these.
    if (held === 'next') return true;
    if (held === 'found') {
      await endReserved(run, reserved);
      return true;
    }
    if (held === 'reserved') reserved.push(key);
  }
  // A resource that lists show may be the one of the entry. The creation finds its key reserved again.
  if (!isNone(unmanagedFor(resource.kind, await registerOf(run), run.world)))
    await endReserved(run, reserved);
  return false;
}

/** Asks the key, and those of its later attempts and incarnations. `next`: all of them are used. */
async function lookUpInTurn(...of: Parameters<typeof lookUpOne>): ReturnType<typeof lookUpOne> {
  for (let asked = 0; asked < mostKeys; asked++) {
    const held = await lookUpOne(...of);
    if (held !== 'next') return held;
  }
  return 'next';
}

/**
 * Another state has reserved the key, and has created a later resource of the entry under the key of the next incarnation,
 * if any. Otherwise the question remains open.
 */
async function lookUpAfter(
  run: Run,
  intent: Intent,
  resource: DesiredResource,
  { world, ahead }: { readonly world: World; readonly ahead: number },
): Promise<'found' | 'reserved'> {
  const { key, kind, request, preimage } = intent;
  await close(run, intent, { outcome: 'void', because: 'reserved', text: isReservedText });
  const next = await lookUpInTurn(run, key, resource, { ahead: ahead + 1 });
  if (next === 'found' || next === 'reserved') return next;
  if (run.intents.has(key)) return 'reserved';
  const operation = { key, kind, verb: 'create', changes: [] } as const;
  const begun = { world, recovers: resource.key, preimage, question: conflicting, numbered: intent };
  await beginIntent(run, operation, request, begun);
  return 'reserved';
}

const isReservedText = 'the key is reserved: its resource was created under another key';

/** The resource for which another state has reserved these keys is known, or will be. */
async function endReserved(run: Run, keys: readonly ResourceKey[]): Promise<void> {
  for (const key of keys) {
    const open = run.intents.get(key);
    if (open !== undefined)
      await close(run, open, { outcome: 'void', because: 'reserved', text: isReservedText });
  }
}

async function lookUpOne(
  run: Run,
  key: ResourceKey,
  resource: DesiredResource,
  { sent, ahead = 0, later }: Asking,
): Promise<'found' | 'next' | 'reserved' | undefined> {
  const { key: own, kind: name } = resource;
  const kind = run.kindOf(name);
  const world = withSubject(run.world, resource, key);
  const operation = { key, kind: name, verb: 'create', changes: [] } as const;
  // The key holds the answer to the request that was answered before, no matter how the entry was edited since.
  const answered = (await answeredCreation(run, key))?.request;
  const request = sent?.[0] ?? answered ?? requestOf(run, operation, world);
  if (request === undefined || run.facts.heldBy(request, 'none') !== undefined) return undefined;
  const numbered = later === undefined ? undefined : { incarnation: String(later) };
  const begun = { world, question: unasked, recovers: own, ahead, numbered };
  const intent =
    run.intents.get(key) ??
    (await beginIntent(run, operation, request, {
      ...begun,
      preimage: await preimageOf(run, operation, world),
    }));
  const end = (
    outcome: IntentOutcome,
    text: string,
    changes: readonly StateChange[] = [],
    because?: Because,
  ) => close(run, intent, { outcome, text, ...(because && { because }) }, { changes });
  const held = await answerAtLast(run, intent);
  if (held === 'open') {
    const open = run.intents.get(key);
    if (open === undefined || questionOf(open).conflict !== true) return undefined;
    const { isReserved, asking: refused } = await inWriteSlot(run, open, () =>
      isReservedElsewhere(run, open),
    );
    if (isReserved) return lookUpAfter(run, refused, resource, { world, ahead });
    const left = sent?.slice(1) ?? underFormerNames(run, resource, open);
    if (left.length > 0) {
      await end('void', 'a rename may have kept the name');
      return lookUpOne(run, key, resource, { sent: left, ahead, later });
    }
    return 'now' in (await inWriteSlot(run, open, () => tryNextIncarnation(run, open))) ? 'next' : undefined;
  }
  const isFenced = held === 'unused' || held === 'fenced';
  // An earlier process of this state sent the original: reads show whether the original was carried out.
  if (isFenced && intent.sends > 0) {
    await decided(run, intent, 'fenced');
    return undefined;
  }
  if (held === 'unused') {
    run.stopwatch.mark(intent.id, 'asked');
    await end('absent', 'no earlier state used this idempotency key', [], 'unused');
  } else if (held === 'fenced') await end('absent', 'an earlier state fenced this idempotency key');
  else if (held === 'refused')
    await end('refused', 'the API refused an earlier state under this idempotency key');
  else if (held === 'unknown') await end('void', 'the API did not answer for this idempotency key');
  else if (held === 'unaskable')
    await end('void', 'no request can ask this API about an idempotency key', [], 'unaskable');
  else {
    const { id: answeredId, facts } = kind.writes.accept(held.answer, intent.request, intent.preimage);
    const id = answeredId ?? (await idByEvidence(run, intent));
    if (id === undefined) {
      // No read shows the resource yet. The run waits for the resource, as after any lost answer.
      await decided(run, intent, 'taken');
      return undefined;
    }
    const named = run.desired.resources.find((each) => each.kind === name && each.id === id && !each.held);
    if (named !== undefined && named.key !== own) {
      await end(
        'void',
        `${named.key} names ${id}, which was created under this key`,
        await usedUp(run, intent),
        'taken',
      );
      return 'next';
    }
    switch (await lifeOf(run, intent, { id, facts: facts ?? {} }, held.answer)) {
      case 'live':
        await found(run, intent, id, taskOf(held.answer.task));
        return 'found';
      case 'gone':
        await end(
          'absent',
          `${id} was created under this idempotency key, and is gone`,
          [...(await usedUp(run, intent)), ...(await answeredWithServer(run, intent))],
          'gone',
        );
        return 'next';
      case 'unknown':
        await end('void', `reads do not show yet whether ${id} exists`);
        return undefined;
    }
  }
  return held === 'refused' || held === 'fenced' ? 'next' : undefined;
}
