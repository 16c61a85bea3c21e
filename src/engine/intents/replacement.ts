import { partsOf } from '../../core/intent.ts';
import { digestOf } from '../../core/json.ts';
import { comesWithServer, type ResourceKey } from '../../core/keys.ts';
import type { Subject, World } from '../../core/kind.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Operation } from '../../core/plan.ts';
import type { Intent } from '../../core/state.ts';
import { draftAll, draftOne, operationsOf } from '../../plan/draft.ts';
import { obstacles } from '../../plan/order.ts';
import { confusableWith } from '../../plan/purchases.ts';
import { attributionOf } from '../claims/claims.ts';
import type { Run } from '../run.ts';
import { awaitEnd, type Progress, unresolved } from './endings.ts';
import { pausedBefore } from './pauses.ts';

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
    (await pausedBefore(run.deps, second, { key, verb })) ?? run.facts.heldBy(request, half.spend);
  return paused === undefined ? unresolvedCreate(run, half) : { now: 'blocked', ...paused };
}

/**
 * The keys whose operation completes an earlier write: the creation that a replacement has made room for, the deletion
 * of the address that a deleted server left, and the creation of a part that the entry of a server had when the server
 * was created. No window under `settings.windows` holds them back.
 */
export async function begunEarlier(
  { deps: { store } }: Pick<Run, 'deps'>,
  { settings, isThere }: World,
  subjects: Iterable<Subject>,
): Promise<ReadonlySet<ResourceKey>> {
  if (!settings.windows?.length) return new Set();
  const written = (key: ResourceKey) => store.intents({ key, limit: 20 });
  const isDone = (intent: Intent) => partsOf(intent).outcome === 'done';
  const begun = [...subjects].map(async (subject) => {
    const { key, parent, desired, binding } = subject;
    const isLeft = comesWithServer(subject) && parent !== undefined && !isThere(parent);
    if (!isLeft && (desired === undefined || binding !== undefined)) return [];
    const own = await written(isLeft ? parent : key);
    const [last] = own;
    // A deletion because the entry had left the spec begins nothing that its return would end.
    if (last?.verb === 'delete' && isDone(last)) return isLeft || last.basis !== digestOf(null) ? [key] : [];
    const ofServer = parent === undefined ? [] : await written(parent);
    const creation = ofServer.find((each) => each.verb === 'create' && isDone(each));
    const isPart = creation?.parts?.includes(key) === true;
    return isPart && !own.some((each) => each.createdAt > creation.createdAt && isDone(each)) ? [key] : [];
  });
  return new Set((await Promise.all(begun)).flat());
}

/** A creation that takes a free resource could take the resource that an unresolved creation has made. */
export function unresolvedCreate(
  run: Run,
  operation: Pick<Operation, 'key' | 'kind' | 'verb'>,
): Progress | undefined {
  const other = unresolvedBeside(run, operation);
  if (other === undefined) return undefined;
  return other.phase === 'blocked' ? unresolved(other.key) : awaitEnd(other.key);
}

/** The unresolved creation that the operation must wait for, because one of the two takes a free resource. */
export function unresolvedBeside(
  run: Run,
  { key, verb }: Pick<Operation, 'key' | 'verb'>,
): Intent | undefined {
  if (verb !== 'create') return undefined;
  return confusableWith(key, [...run.intents.values()], {
    ...{ world: run.world, kinds: run.deps.kinds },
    register: () => attributionOf(run),
  });
}
