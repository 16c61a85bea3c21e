import equal from 'fast-deep-equal';
import { type ResourceKey, retiredFrom } from '../../core/keys.ts';
import type { World } from '../../core/kind.ts';
import { type Operation, operationId } from '../../core/plan.ts';
import { type Draft, draftOne, operationsOf } from '../../plan/draft.ts';
import { objectionsTo } from '../../plan/guarded.ts';
import { obstacles, successorsOf } from '../../plan/order.ts';
import { restsOnOpenIdentity } from '../../plan/waits.ts';
import { knownRegister, registerOf } from '../claims/claims.ts';
import type { Run } from '../run.ts';
import { begunEarlier, creationAfter } from './replacement.ts';

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
  operation: Pick<Operation, 'key' | 'kind' | 'verb' | 'changes' | 'replacement'>,
): Promise<Overtaken | undefined> {
  const { key, verb, replacement } = operation;
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
    endsReplacement: verb === 'create' && replacement !== undefined,
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
