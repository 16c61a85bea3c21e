import { isUnidentified } from '../../core/claims.ts';
import { type DesiredResource, isBare } from '../../core/desired.ts';
import { partsOf } from '../../core/intent.ts';
import { type ResourceKey, takeApart } from '../../core/keys.ts';
import { factsOf, type KindName } from '../../core/kind-facts.ts';
import type { Binding } from '../../core/state.ts';
import { draftOne } from '../../plan/draft.ts';
import { isNone, unmanagedFor } from '../../plan/unmanaged.ts';
import { registerOf } from '../claims/claims.ts';
import { incarnationOf, lastAttempt, lastCreation } from '../claims/scope.ts';
import { asksKey, isDormant, isReplay, keyIsFresh } from '../intents/endings.ts';
import { askAgain, askSuccessors, endReplaced, isAsked, isForgotten } from '../intents/next-incarnation.ts';
import { isUnaskable } from '../intents/probe-key.ts';
import { isReservation } from '../intents/reserve-key.ts';
import type { Run } from '../run.ts';
import { isResumed, lookUp } from './look-up.ts';

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
  const mayBeLater = isShown || mayBeOld || (register.isNew && (isUsed || isFindable));
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
    const asked = isOwnAsked ? [resource.key, ...earlier] : earlier;
    if (await lookUp(run, resource, asked, { isGoing: going.has(resource.kind) })) any = true;
    else if (isBare(resource) && (mayBeLater || (await isForgotten(run, resource.key))))
      any = (await lookUpLater(run, resource)) || any;
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
export function askLineAgain(
  run: Run,
  entry: DesiredResource,
  ahead: 0 | 1,
): Promise<ResourceKey | undefined> {
  return run.facts.lineQuestions.take(() => askLine(run, entry, ahead));
}

async function askLine(run: Run, entry: DesiredResource, ahead: 0 | 1): Promise<ResourceKey | undefined> {
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
  const present = (await incarnationOf(run, key)).incarnation;
  // A question to an API whose keys cannot be asked says nothing about an earlier write, nor does one about a later key.
  const last = await lastCreation(
    run,
    key,
    ({ because }, { incarnation }) => because !== 'unaskable' && Number(incarnation) <= present,
  );
  if (last === undefined) return false;
  const { because, outcome } = partsOf(last);
  if (because === 'unused' || because === 'reported_absent') return true;
  // The API stored nothing under the key before this state reserved it.
  if (because === 'reserved' && isReservation(last)) return true;
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
