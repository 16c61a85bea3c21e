import type { ResourceKey } from '../core/keys.ts';
import type { Operation, OperationId, Plan } from '../core/plan.ts';
import type { OperationResult } from '../core/progress.ts';
import { createWorkQueue, type Next } from '../queue/work-queue.ts';
import { unresolved } from './intents/endings.ts';
import { type Interrupted, interruption, isIdle } from './interruption.ts';
import { operate, type Turn } from './operate.ts';
import type { Run } from './run.ts';

/** More keys than this are never worked on at once; most of them wait for their turn or for tasks. */
const concurrency = 10_000;

/**
 * Carries out what is approved of a plan. Each operation starts when what it needs is
 * done; what fails holds back only what depends on it. Ends when nothing can go on.
 */
export async function drain(
  run: Run,
  plan: Plan,
  approved: ReadonlySet<OperationId>,
): Promise<OperationResult[]> {
  const { clock, onEvent } = run.deps;
  const todo = new Map<ResourceKey, Operation[]>();
  const keys = new Map(plan.operations.map(({ id, key }) => [id, key]));
  const results = new Map<OperationId, OperationResult>();
  const startedAt = new Map<OperationId, number>();
  for (const operation of plan.operations.filter(({ id }) => approved.has(id))) {
    todo.set(operation.key, [...(todo.get(operation.key) ?? []), operation]);
  }
  const waitingFor = dependentsOf(todo);

  const queue = createWorkQueue<ResourceKey>({ clock, concurrency, work, stop: run.halt });
  // Who sleeps has to notice that nothing new is sent any more.
  const wake = () => queue.wake();
  run.stop.addEventListener('abort', wake, { once: true });

  async function work(key: ResourceKey): Promise<Next> {
    const operation = todo.get(key)?.[0];
    if (operation === undefined || !isReady(operation)) return { next: 'done' };
    if (!startedAt.has(operation.id)) {
      if (run.stop.aborted && !run.intents.has(key)) return { next: 'done' };
      startedAt.set(operation.id, clock.monotonic());
      onEvent?.({ type: 'started', at: clock.now(), operation });
    }
    const turn = await turnOf(operation);
    if (turn.now === 'again') {
      if (turn.until === undefined || isToCome(turn.until, key))
        return { next: 'again', afterMs: turn.afterMs };
      end(operation, unresolved(turn.until), undefined);
      return { next: 'done' };
    }
    if (turn.now === 'closed' && turn.retryAfterMs !== undefined)
      return { next: 'again', afterMs: turn.retryAfterMs };
    const exposedMs = operation.kind === 'firewall' ? await exposure(run, operation) : undefined;
    end(operation, turn, exposedMs);
    return { next: 'done' };
  }

  async function turnOf(operation: Operation): Promise<Turn | Interrupted> {
    try {
      const turn = await operate(run, operation);
      return turn.now === 'again' && isIdle(run, operation.key) ? { now: 'interrupted' } : turn;
    } catch (error) {
      return interruption(run, error);
    }
  }

  function end(
    operation: Operation,
    turn: Exclude<Turn, { now: 'again' }> | Interrupted,
    exposedMs: number | undefined,
  ): void {
    const now = clock.monotonic();
    const ended = resultOf(run, operation, turn, now - (startedAt.get(operation.id) ?? now));
    const closed = exposedMs !== undefined && turn.now === 'closed' && ended.outcome === 'done';
    const result = closed ? { ...ended, exposedMs } : ended;
    results.set(operation.id, result);
    onEvent?.({ type: 'ended', at: clock.now(), result });
    todo.get(operation.key)?.shift();
    if (result.outcome !== 'done') return;
    queue.add(operation.key);
    for (const dependent of waitingFor.get(operation.id) ?? []) queue.add(dependent);
  }

  /** Needs outside of what was approved were met before, or the plan would not hold it. */
  function isReady({ needs }: Operation): boolean {
    return needs.every((id) => results.get(id)?.outcome === 'done' || !approved.has(id));
  }

  /** Whether the key still has a turn in this run that does not need what waits for it. */
  function isToCome(key: ResourceKey, waiting: ResourceKey): boolean {
    const operation = todo.get(key)?.[0];
    if (operation === undefined || key === waiting) return false;
    return operation.needs.every((id) => {
      const result = results.get(id);
      if (result !== undefined || !approved.has(id)) return result === undefined || result.outcome === 'done';
      return isToCome(keys.get(id) as ResourceKey, waiting);
    });
  }

  for (const key of todo.keys()) queue.add(key);
  try {
    await queue.drained();
  } finally {
    run.stop.removeEventListener('abort', wake);
  }
  return [...results.values()];
}

function dependentsOf(
  todo: ReadonlyMap<ResourceKey, readonly Operation[]>,
): ReadonlyMap<OperationId, ResourceKey[]> {
  const dependents = new Map<OperationId, ResourceKey[]>();
  for (const operation of [...todo.values()].flat()) {
    for (const id of operation.needs) dependents.set(id, [...(dependents.get(id) ?? []), operation.key]);
  }
  return dependents;
}

function resultOf(
  run: Run,
  { key, verb }: Operation,
  turn: Exclude<Turn, { now: 'again' }> | Interrupted,
  durationMs: number,
): OperationResult {
  const requestId = run.requestIds.get(key);
  const base = { key, verb, durationMs, ...(requestId === undefined ? {} : { requestId }) };
  switch (turn.now) {
    case 'satisfied':
      return { ...base, outcome: 'done' };
    case 'closed': {
      if (turn.outcome !== 'done')
        return { ...base, outcome: 'failed', code: turn.outcome, detail: turn.detail };
      return { ...base, outcome: 'done', ...(turn.detail === '' ? {} : { detail: turn.detail }) };
    }
    case 'blocked':
      return {
        ...base,
        outcome: 'blocked',
        code: turn.code,
        detail: turn.reason,
        ...(turn.resolve === undefined ? {} : { resolve: turn.resolve }),
      };
    case 'overtaken':
      return { ...base, outcome: 'failed', code: 'overtaken', detail: turn.reason };
    case 'interrupted':
      return { ...base, outcome: 'unresolved', detail: 'interrupted; the next run goes on from here' };
    case 'unread':
      return {
        ...base,
        outcome: run.intents.has(key) ? 'unresolved' : 'failed',
        code: 'read_failed',
        detail: turn.reason,
      };
  }
}

/** How long a new server stood without its firewall, also where an earlier run made the server. */
async function exposure(run: Run, { key, verb }: Operation): Promise<number | undefined> {
  const server = run.world.subjects.get(key)?.parent;
  if (verb !== 'create' || server === undefined) return undefined;
  const since = run.openSince.get(server);
  if (since !== undefined) return run.deps.clock.monotonic() - since;
  const past = await run.deps.store.intents({ key: server, limit: 50 });
  const made = past.find((each) => each.verb === 'create' && each.outcome === 'done');
  const at = made?.acceptedAt ?? made?.firstSentAt;
  return at === undefined ? undefined : Math.max(0, run.deps.clock.now() - at);
}
