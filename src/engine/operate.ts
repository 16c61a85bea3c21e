import equal from 'fast-deep-equal';
import type { Operation } from '../core/plan.ts';
import { isOvertaken } from '../plan/build.ts';
import { draftOne, operationsOf } from '../plan/draft.ts';
import { beginIntent, contextOf } from './begin.ts';
import { released } from './release.ts';
import type { Run } from './run.ts';
import { advance, close, type Progress, send } from './settle.ts';

const absenceGapMs = 60_000;

/** What one turn of work on an operation came to. */
export type Turn =
  | Progress
  /** Nothing to do any more: the world is already so. */
  | { readonly now: 'satisfied' }
  /** The world moved, and this is not what was approved: the next plan tells. */
  | { readonly now: 'overtaken'; readonly reason: string };

/**
 * One turn of work on an approved operation: an open intent goes first, then the
 * operation is begun, if a fresh look still asks for exactly it.
 */
export async function operate(run: Run, operation: Operation): Promise<Turn> {
  const open = run.intents.get(operation.key);
  if (open !== undefined && !isOvertaken(open, run.world)) return advance(run, open);
  if (open !== undefined) await close(run, open, 'refused', 'the file has changed', [], true);
  if (operation.verb === 'adopt') return adopt(run, operation);
  const gone = await confirmLost(run, operation);
  if (gone !== undefined) return gone;
  run.tell(operation.key, operation.verb, 'queued', 'for its turn');
  await run.lookAgain(operation.key);
  return run.gate.run(run.kindOf(operation.kind).urgency, () => beginAndSend(run, operation), run.stop);
}

/** Has its turn: looked at before it, so that nobody's turn is spent waiting for reads. */
async function beginAndSend(run: Run, operation: Operation): Promise<Turn> {
  run.stop.throwIfAborted();
  const world = await run.lookAgain(operation.key);
  const still = stillAsked(run, operation);
  if (still !== undefined) return still;
  const unresolved = unresolvedCreate(run, operation);
  if (unresolved !== undefined) return unresolved;
  await run.fence();
  await run.deps.writes.room(run.stop);
  run.stop.throwIfAborted();
  const request = run.kindOf(operation.kind).write(contextOf(run, operation, world));
  const held = run.heldBy(request, operation.spend);
  if (held !== undefined) return { now: 'blocked', ...held };
  return send(run, await beginIntent(run, operation, request, world));
}

/**
 * The plan is a permission: what is done is what a fresh look says, if that is the same.
 * A creation is the same whatever it is diffed against: its server may not have been there yet.
 */
function stillAsked(run: Run, operation: Operation): Turn | undefined {
  const subject = run.world.subjects.get(operation.key);
  if (subject === undefined) return { now: 'satisfied' };
  const draft = draftOne(run.deps.kinds, run.world, subject);
  const { verdict } = draft.diff;
  const fresh = operationsOf(draft).find(({ id }) => id === operation.id);
  if (fresh !== undefined && (operation.verb === 'create' || equal(fresh.changes, operation.changes))) {
    return undefined;
  }
  if (verdict.verdict === 'blocked') return { now: 'blocked', code: verdict.code, reason: verdict.reason };
  if (fresh === undefined && verdict.verdict === 'unchanged') return { now: 'satisfied' };
  return { now: 'overtaken', reason: 'the project or the file has moved since the plan' };
}

/** Two unresolved creations of one kind could not be told apart afterwards. */
function unresolvedCreate(run: Run, operation: Operation): Turn | undefined {
  if (operation.verb !== 'create') return undefined;
  const other = [...run.intents.values()].find(
    (intent) => intent.kind === operation.kind && intent.verb === 'create' && intent.ambiguous,
  );
  if (other === undefined) return undefined;
  if (other.phase !== 'blocked') return { now: 'again', afterMs: 5_000 };
  return {
    now: 'blocked',
    code: 'unresolved_create',
    reason: `it is not known whether ${other.key} was created`,
  };
}

/** A resource that was there is made again only once two looks, a minute apart, miss it. */
async function confirmLost(run: Run, operation: Operation): Promise<Turn | undefined> {
  const binding = run.bindings.get(operation.key);
  if (operation.verb !== 'create' || operation.replacement !== undefined || binding === undefined)
    return undefined;
  run.tell(
    operation.key,
    'create',
    'checking',
    'it is gone; a second look decides',
    run.deps.clock.now() + absenceGapMs,
  );
  await run.deps.clock.sleep(absenceGapMs, run.stop);
  await run.fence();
  await run.lookAgain(operation.key, run.deps.clock.now());
  const still = stillAsked(run, operation);
  if (still !== undefined) return still;
  await run.change(released(run, operation.key, 'it does not exist any more'));
  await run.lookAgain(operation.key);
  return undefined;
}

/** Binds what the file names by id, once it is seen to be there. */
async function adopt(run: Run, operation: Operation): Promise<Turn> {
  const world = await run.lookAgain(operation.key);
  const still = stillAsked(run, operation);
  if (still !== undefined) return still;
  const subject = world.subjects.get(operation.key);
  const id = operation.target;
  if (subject === undefined || id === undefined) return { now: 'satisfied' };
  await run.deps.store.claimProject(run.desired.projectId);
  await run.change([{ type: 'bind', binding: bindingOf(run, subject, id) }]);
  return { now: 'closed', outcome: 'done', retry: false, detail: 'adopted' };
}

/** The binding of a live resource that somebody else made. */
export function bindingOf(run: Run, subject: Parameters<typeof draftOne>[2], id: string) {
  const kind = run.kindOf(subject.kind);
  const parentId = subject.parent === undefined ? undefined : run.world.idOf(subject.parent);
  const addresses = run.world.ips
    .filter(({ server_id }) => subject.kind === 'server' && String(server_id) === id)
    .map((each) => ({ id: each.id, address: each.address }));
  return {
    key: subject.key,
    kind: subject.kind,
    id,
    ...(parentId === undefined ? {} : { parentId }),
    ...kind.bind({ subject, id, facts: { addresses }, world: run.world }),
    protect: subject.desired?.protect ?? false,
    boundAt: run.deps.clock.now(),
  };
}
