import equal from 'fast-deep-equal';
import { partsOf } from '../../core/intent.ts';
import { digestOf } from '../../core/json.ts';
import { comesWithServer, type ResourceKey, retiredFrom } from '../../core/keys.ts';
import type { Subject, World } from '../../core/kind.ts';
import { factsOf } from '../../core/kind-facts.ts';
import { type Operation, operationId } from '../../core/plan.ts';
import type { Intent } from '../../core/state.ts';
import { type Draft, draftAll, draftOne, operationsOf } from '../../plan/draft.ts';
import { objectionsTo } from '../../plan/judge.ts';
import { obstacles, successorsOf } from '../../plan/order.ts';
import { confusableWith } from '../../plan/purchases.ts';
import { isSecondHalf } from '../../plan/replacements.ts';
import { restsOnOpenIdentity } from '../../plan/waits.ts';
import { attributionOf, knownRegister, registerOf } from '../claims/claims.ts';
import { isInScope } from '../claims/scope.ts';
import type { Run } from '../run.ts';
import { awaitEnd, keyIsFresh, type Progress, unresolved } from './endings.ts';
import { pausedBefore } from './pauses.ts';

/** The highest age of the project status that a deletion is decided on, in ms. */
const projectHoldsMs = 30_000;

/** The project changed, so the operation is not the approved one. The next plan shows the change. */
export interface Overtaken {
  readonly now: 'overtaken';
  readonly reason: string;
  /** The resource has the declared values already, so that no write is necessary. */
  readonly isMet?: true;
}

function overtaken(reason = 'the project or the spec has changed since the plan'): Overtaken {
  return { now: 'overtaken', reason };
}

/**
 * The plan is a permission: the operation is done only if a fresh observation asks for the same operation. A creation
 * is the same even if its diff differs, because its server may not have existed at the time of the plan.
 */
export function whyNotWanted(
  run: Run,
  world: World,
  { key, verb, changes }: Pick<Operation, 'key' | 'verb' | 'changes'>,
): Overtaken | undefined {
  const subject = world.subjects.get(key);
  if (subject === undefined) return overtaken();
  const open = restsOnOpenIdentity({ key, verb }, run.deps.kinds, world);
  if (open !== undefined) return overtaken(`first decide which live resource ${open} is bound to`);
  const draft = draftOne(run.deps.kinds, world, subject);
  const { verdict } = draft.diff;
  const fresh = operationsOf(draft).find(({ id }) => id === operationId(verb, key));
  if (verb === 'create' && verdict.verdict === 'replace' && verdict.order === 'delete_first')
    return overtaken('the resource that it replaces still exists');
  // The key of a retiring server names the resource that is deleted.
  const isNamed = verb === 'create' || retiredFrom(key) !== undefined;
  if (fresh !== undefined && (isNamed || equal(fresh.changes, changes))) return undefined;
  if (verb !== 'delete' && verdict.verdict === 'unchanged')
    return { ...overtaken('the resource already has the declared values'), isMet: true };
  return overtaken(verdict.verdict === 'blocked' ? verdict.reason : undefined);
}

/**
 * Asks again, with fresh reads, everything that the plan asked: the diff, and the guards. A deletion that makes room
 * is asked about the resource that takes the place as well. If a guard objects, the next plan shows the objection.
 */
export async function revalidate(
  run: Run,
  world: World,
  operation: Pick<Operation, 'key' | 'kind' | 'verb' | 'changes'>,
): Promise<Overtaken | undefined> {
  const { key, verb } = operation;
  const not = whyNotWanted(run, world, operation);
  const subject = world.subjects.get(key);
  if (not !== undefined || subject === undefined) return not;
  const lacking = successorsOf(key, world).find((each) => !isComplete(run, world, each));
  if (lacking !== undefined) return overtaken(`${lacking} is not complete`);
  const { kinds, clock } = run.deps;
  const obstacle = obstacles(operation, kinds, world).find(
    (each) => world.subjects.get(each)?.binding !== undefined,
  );
  if (verb === 'create' && obstacle !== undefined) return overtaken(`${obstacle} must be deleted first`);
  const creation = creationAfter(run, world, key, verb);
  const next = creation && world.subjects.get(creation.key);
  const drafts = [...new Set([subject, next ?? subject])].map((each) => draftOne(kinds, world, each));
  const owned = drafts.flatMap(({ subject: { key, parent = key } }) =>
    [key, parent].flatMap((each) => world.subjects.get(each) ?? []),
  );
  const register = drafts.some(isBought) ? await registerOf(run) : undefined;
  const [objection] = objectionsTo(drafts, {
    ...{ kinds, destroy: run.mode.destroy, deletedBefore: 0, now: clock.now() },
    openIntents: [...run.intents.values()],
    begun: await begunEarlier(run, world, owned),
    world: creation === undefined ? world : await withProject(run, world),
    get register() {
      return register ?? knownRegister(run);
    },
    plannedMost: run.facts.plannedMost,
  }).values();
  return objection && overtaken(objection.reason);
}

/** The successor of a retiring server, or a resource inside it, exists as the spec declares it. */
function isComplete(run: Run, world: World, key: ResourceKey): boolean {
  const subject = world.subjects.get(key);
  if (subject === undefined || run.intents.has(key)) return false;
  if (subject.parent === undefined && (subject.binding === undefined || !world.isThere(key))) return false;
  const draft = draftOne(run.deps.kinds, world, subject);
  return draft.diff.verdict.verdict !== 'blocked' && operationsOf(draft).length === 0;
}

function isBought({ kind, diff: { verdict } }: Draft): boolean {
  return verdict.verdict === 'create' && kind.billing.billed === true;
}

/** A deletion is decided on the current status of the project, because the API may refuse the creation after it. */
async function withProject({ cache, deps }: Run, world: World): Promise<World> {
  const project = await cache.since(deps.clock.monotonic() - projectHoldsMs).project();
  return { ...world, project };
}

/**
 * The creation that a deletion of the key makes room for, by the current spec and project: the creation of the same
 * key, or of the server that the address came with.
 */
export function creationAfter(
  run: Run,
  world: World,
  key: Operation['key'],
  verb: Operation['verb'],
): Operation | undefined {
  const own = world.subjects.get(key);
  if (verb !== 'delete' || own === undefined) return undefined;
  const server = comesWithServer(own) ? own.parent : undefined;
  const subject = server === undefined ? own : world.subjects.get(server);
  if (subject === undefined) return undefined;
  return operationsOf(draftOne(run.deps.kinds, world, subject)).find((each) => each.verb === 'create');
}

/**
 * All writes that must follow the first write of a replacement: the other half, the creation of the resources inside
 * the new resource, and the release of each address that blocks it.
 */
export function madeRoomFor(
  run: Run,
  world: World,
  key: Operation['key'],
  verb: Operation['verb'],
): readonly Operation[] {
  const { kinds } = run.deps;
  const own = world.subjects.get(key);
  if (own === undefined) return [];
  const creation = creationAfter(run, world, key, verb);
  // With the new resource first, the deletion has a key of its own.
  const last = operationsOf(draftOne(kinds, world, own)).filter((each) => each.key !== key);
  if (verb === 'create' ? last.length === 0 : creation === undefined) return [];
  const blocking = creation === undefined ? [] : obstacles(creation, kinds, world);
  const inTheWay = new Set(blocking.filter((each) => each !== key));
  // A backup is no part of the new resource. The backup is taken when it is due.
  const isPart = ({ kind, verb: asked }: Operation) => asked === 'create' && !factsOf(kind).repeats;
  const drafts = draftAll(kinds, world, new Set());
  const releases = drafts.filter(({ subject }) => inTheWay.has(subject.key)).flatMap(operationsOf);
  const inside = drafts.filter(({ subject }) => subject.parent === key).flatMap(operationsOf);
  return [...(creation === undefined ? [] : [creation]), ...last, ...releases, ...inside.filter(isPart)];
}

/**
 * A pause that blocks a later write of a replacement also blocks the first one: a deleted resource must come back, and
 * two resources must not be billed until the end of the pause.
 */
export async function secondHalfPaused(
  run: Run,
  world: World,
  { key, verb, request }: Pick<Intent, 'key' | 'verb' | 'request'>,
): Promise<Progress | undefined> {
  const second = madeRoomFor(run, world, key, verb);
  const [half] = second;
  if (half === undefined) return undefined;
  const paused =
    (await pausedBefore(run.deps, second, { key, verb })) ?? run.facts.pausedBy(request, half.spend);
  return paused === undefined ? unresolvedCreate(run, half) : { now: 'blocked', ...paused };
}

/**
 * The keys whose operation completes an earlier write: the creation that a replacement has made room for, the deletion
 * of the address that a deleted server left, and the creation of a part that the entry of a server had when the server
 * was created. No window under `settings.windows` holds them back.
 */
export async function begunEarlier(
  run: Run,
  { isThere }: World,
  subjects: Iterable<Subject>,
): Promise<ReadonlyMap<ResourceKey, boolean>> {
  const written = (key: ResourceKey) => run.deps.store.intents({ key, limit: 20 });
  const isDone = (intent: Intent) => partsOf(intent).outcome === 'done';
  const begun = [...subjects].map(async (subject) => {
    const { key, parent, desired, binding } = subject;
    const isLeft = comesWithServer(subject) && parent !== undefined && !isThere(parent);
    if (!isLeft && (desired === undefined || binding !== undefined)) return [];
    const own = await written(isLeft ? parent : key);
    const last = own.find(isDone);
    // A deletion because the entry had left the spec begins nothing that its return would end.
    if (last?.verb === 'delete')
      return isLeft || last.basis !== digestOf(null)
        ? [[key, keyIsFresh(run, last) && isInScope(run, last)] as const]
        : [];
    const ofServer = parent === undefined ? [] : await written(parent);
    const creation = ofServer.find((each) => each.verb === 'create' && isDone(each));
    const isPart = creation?.parts?.includes(key) === true;
    return isPart && !own.some((each) => each.createdAt > creation.createdAt && isDone(each))
      ? [[key, false] as const]
      : [];
  });
  return new Map((await Promise.all(begun)).flat());
}

/** A creation that takes a free resource could take the resource that an unresolved creation has made. */
export async function unresolvedCreate(
  run: Run,
  operation: Pick<Operation, 'key' | 'kind' | 'verb'>,
): Promise<Progress | undefined> {
  if (operation.verb !== 'create') return undefined;
  const subject = run.world.subjects.get(operation.key);
  const begun = await begunEarlier(run, run.world, subject === undefined ? [] : [subject]);
  const other = unresolvedBeside(run, operation, isSecondHalf({ begun }, operation.key));
  if (other === undefined) return undefined;
  return other.phase === 'blocked' ? unresolved(other.key) : awaitEnd(other.key);
}

/** The unresolved creation that the operation must wait for, because one of the two takes a free resource. */
export function unresolvedBeside(
  run: Run,
  { key, verb }: Pick<Operation, 'key' | 'verb'>,
  isKnown = false,
): Intent | undefined {
  if (verb !== 'create') return undefined;
  return confusableWith(key, [...run.intents.values()], {
    ...{ world: run.world, kinds: run.deps.kinds, isKnown },
    register: () => attributionOf(run),
  });
}
