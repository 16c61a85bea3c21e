import { objectName, type Recovered } from '../../core/claims.ts';
import type { Subject, World } from '../../core/kind.ts';
import { factsOf } from '../../core/kind-facts.ts';
import type { Operation } from '../../core/plan.ts';
import { makerOf, ownerOf } from '../claims/claims.ts';
import { exchanging, passingOn } from '../claims/release.ts';
import { companionsOf, movedFrom, recoveredIf } from '../intents/bound-by.ts';
import { failureOf } from '../intents/endings.ts';
import { revalidate } from '../intents/revalidate.ts';
import type { Run } from '../run.ts';
import type { Turn } from './operate.ts';

/** How often the task of an adopted creation is read, in ms. */
const taskReadGapMs = 15_000;

/** Binds the resource that the spec names by id, after a read shows the resource. */
export async function adopt(run: Run, operation: Operation): Promise<Turn> {
  const underWay = await creationUnderWay(run, operation);
  if (typeof underWay === 'object') return underWay;
  const world = await run.view.observe(operation.key);
  const not = await revalidate(run, world, operation);
  if (not !== undefined) return not;
  const subject = world.subjects.get(operation.key);
  const id = operation.target;
  if (subject === undefined || id === undefined) throw new Error(`Nothing to adopt: ${operation.key}`);
  const binding = {
    ...bindingOf(run, subject, id, world),
    ...(underWay === undefined ? {} : { tainted: underWay }),
  };
  const maker = makerOf(run, binding);
  if (maker !== undefined)
    return { now: 'blocked', code: 'bound_already', reason: `${id} was created for ${maker.key}` };
  const created = await creationOf(run, subject);
  await run.deps.store.claimProject(run.desired.projectId);
  await run.state.change(() => {
    const owner = ownerOf(run, binding);
    const left = exchanging(run, subject.key, 'file', id);
    // The spec gives another name to a resource whose previous entry is gone, or that retires.
    const bound =
      owner === undefined
        ? [
            { type: 'bind', binding } as const,
            ...(created ? companionsOf(run, created, id, { addresses: addressesOf(id, world) }) : []),
          ]
        : passingOn(run, owner, binding);
    return [...left, ...recoveredIf(recoveredBy(run, subject), bound)];
  });
  return { now: 'closed', outcome: 'done', detail: '' };
}

/** Waits for the task of a creation that was found under its idempotency key. Returns the failure of the task as text. */
async function creationUnderWay(run: Run, operation: Operation): Promise<Turn | string | undefined> {
  const { clock } = run.deps;
  const { kind, target = '' } = operation;
  const claim = run.claims.get(objectName({ kind, id: target }));
  if (claim?.holder.is !== 'found') return undefined;
  const { taskId, ...withoutTask } = claim.holder;
  if (taskId === undefined) return undefined;
  await run.fence.check();
  const task = await run.cache.since(clock.monotonic()).findTask(taskId);
  if (task?.status === 'failed') return failureOf({ detail: task.detail ?? 'the API gives no reason' });
  if (task === undefined || task.is_terminal) {
    // No task is read after its end.
    await run.state.change([{ type: 'claim', claim: { ...claim, holder: withoutTask } }]);
    return undefined;
  }
  const deadlineMs = claim.at + run.kindOf(operation.kind).timing.deadlineMs;
  const reason = `its creation has not ended: task ${taskId}`;
  if (clock.now() > deadlineMs) return { now: 'blocked', code: 'stuck', reason };
  run.report(operation, 'task', taskId, { deadlineMs });
  return { now: 'again', afterMs: taskReadGapMs };
}

/**
 * An idempotency key showed the resource or its server, and no operator has approved the adoption; or the entry takes back
 * a released resource. A release confirms nothing.
 */
function recoveredBy(run: Run, { kind, desired, parent }: Subject): Recovered | undefined {
  const { holder } = run.claims.get(objectName({ kind, id: desired?.id ?? '' })) ?? {};
  if (holder?.is === 'released' && holder.recovered === 'found') return 'found';
  if (desired?.held?.by === 'released') return 'taken';
  if (run.mode.attended) return undefined;
  const server = parent === undefined ? undefined : run.bindings.get(parent);
  return desired?.held?.by === 'found' ? 'found' : server?.recovered;
}

/**
 * The creation of an earlier state, whose key showed the resource. Further resources may have come with it, such as an
 * address that the spec does not ask for. @assumption A22
 */
async function creationOf(run: Run, { key, kind, desired }: Subject) {
  if (desired?.held?.by !== 'found') return undefined;
  // The write that found the resource has the request of the creation. The catalogue may have changed since then.
  const past = await run.deps.store.intents({ key, limit: 50 });
  const request = past.find(({ verb }) => verb === 'create')?.request;
  const entry = { value: desired.value, protect: desired.protect };
  return request && { key, kind, request, preimage: {}, entry };
}

function addressesOf(server: string, world: World) {
  return world.ipsOf(server).map(({ id, address }) => ({ id, address }));
}

/** The binding of a live resource that another program or user created. */
export function bindingOf(run: Run, subject: Subject, id: string, world: World) {
  const kind = run.kindOf(subject.kind);
  const parentId = subject.parent === undefined ? undefined : world.idOf(subject.parent);
  const addresses = factsOf(subject.kind).container ? addressesOf(id, world) : [];
  const { holder } = run.claims.get(objectName({ kind: subject.kind, id })) ?? {};
  return {
    key: subject.key,
    kind: subject.kind,
    id,
    ...(parentId === undefined ? {} : { parentId }),
    ...kind.bind({ subject, id, facts: { addresses }, world }),
    ...(holder?.is === 'released' && holder.applied ? { applied: holder.applied } : {}),
    protect: subject.desired?.protect ?? false,
    boundAt: run.deps.clock.now(),
    ...movedFrom(subject.desired),
  };
}
