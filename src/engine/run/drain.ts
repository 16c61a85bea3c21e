import { ApiProblem } from '../../core/errors.ts';
import { partsOf } from '../../core/intent.ts';
import { parseKey, type ResourceKey, takeApart } from '../../core/keys.ts';
import { factsOf } from '../../core/kind-facts.ts';
import { endsExposure, type Operation, type OperationId, operationId, type Plan } from '../../core/plan.ts';
import type { OperationResult } from '../../core/progress.ts';
import type { Intent } from '../../core/state.ts';
import { isFailedRead, TransportError } from '../../core/transport.ts';
import { firewallOf } from '../../core/world.ts';
import { isOvertaken } from '../../plan/open-writes.ts';
import { type Next, WorkQueue } from '../../queue/work-queue.ts';
import { coverable, serverInCreation } from '../intents/bound-by.ts';
import { giveUp, unresolved } from '../intents/endings.ts';
import { advance } from '../intents/settle.ts';
import { joined, type Run, type RunSignals } from '../run.ts';
import { IntentSpans } from '../timing.ts';
import { adopt } from './adopt.ts';
import { isFirstHalf, operate, stoppedBy, type Turn } from './operate.ts';

/** The highest number of keys in work at the same time. Most keys wait for their turn or for tasks. */
const concurrency = 10_000;

/**
 * Applies the approved operations of a plan. Each operation starts when the operations that it needs are done. A
 * failed operation blocks only the operations that depend on it. The drain ends when no operation can continue.
 */
export function drain(run: Run, plan: Plan, approved: ReadonlySet<OperationId>): Promise<OperationResult[]> {
  return new Drain(run, plan, approved).carryOut();
}

class Drain {
  readonly #run: Run;
  /** The same run for the firewall of an open server: it continues until the grace is over. */
  readonly #graced: Run;
  readonly #approved: ReadonlySet<OperationId>;
  readonly #keys: ReadonlyMap<OperationId, ResourceKey>;
  /** The remaining operations, by key and in order. */
  readonly #todo: ReadonlyMap<ResourceKey, Operation[]>;
  readonly #waitingFor: ReadonlyMap<OperationId, readonly ResourceKey[]>;
  readonly #startedAt = new Map<OperationId, number>();
  readonly #results = new Map<OperationId, OperationResult>();
  readonly #spans: IntentSpans;
  readonly #queue: WorkQueue<ResourceKey>;

  constructor(run: Run, { operations }: Plan, approved: ReadonlySet<OperationId>) {
    this.#run = run;
    this.#graced = joined(run, { signals: { ...run.signals, stop: run.signals.halt } });
    this.#approved = approved;
    this.#spans = new IntentSpans(run.deps.tracing);
    this.#keys = new Map(operations.map(({ id, key }) => [id, key]));
    this.#todo = Map.groupBy(
      operations.filter(({ id }) => approved.has(id)),
      ({ key }) => key,
    );
    this.#waitingFor = dependentsOf(this.#todo);
    const work = (key: ResourceKey) => this.#work(key);
    this.#queue = new WorkQueue({ clock: run.deps.clock, concurrency, work, stop: run.signals.halt });
  }

  async carryOut(): Promise<OperationResult[]> {
    for (const key of this.#todo.keys()) this.#queue.add(key);
    try {
      await this.#queue.drained();
    } finally {
      for (const key of this.#todo.keys()) {
        this.#run.signals.grace.delete(key);
        this.#run.gate.settle(key);
      }
      this.#spans.endAll();
    }
    this.#endStopped();
    return [...this.#results.values()];
  }

  /** Reports the replacements that a blocked one has stopped before their turn. */
  #endStopped(): void {
    for (const operation of [...this.#todo.values()].flat()) {
      const stopped = this.#results.has(operation.id) ? undefined : stoppedBy(this.#run, operation);
      if (stopped !== undefined) this.#results.set(operation.id, resultOf(this.#run, operation, stopped, 0));
    }
  }

  async #work(key: ResourceKey): Promise<Next> {
    const run = this.#run;
    const operation = this.#todo.get(key)?.[0];
    if (operation === undefined || !this.#isReady(operation)) {
      run.signals.grace.delete(key);
      return { next: 'done' };
    }
    const isGraced = endsExposure(operation) && run.intents.get(key)?.phase !== 'accepted';
    if (isGraced) run.signals.grace.add(key);
    if (!this.#startedAt.has(operation.id)) {
      if (run.signals.stop.aborted && !isGraced && !run.intents.has(key)) return { next: 'done' };
      this.#start(operation);
    }
    const turn = await this.#spans.within(operation, () => turnOf(isGraced ? this.#graced : run, operation));
    if (turn.now === 'again' && serverInCreation(run, key) !== undefined) this.#sendFirewall(operation);
    if (run.intents.get(key)?.phase === 'accepted') this.#covered(operation);
    if (turn.now === 'again') {
      if (turn.until === undefined || this.#isToCome(turn.until, key))
        return { next: 'again', afterMs: turn.afterMs };
      this.#end(operation, unresolved(turn.until), undefined);
      return { next: 'done' };
    }
    if (turn.now === 'closed' && turn.retryAfterMs !== undefined)
      return { next: 'again', afterMs: turn.retryAfterMs };
    const exposedMs = factsOf(operation.kind).endsExposure ? await exposure(run, operation) : undefined;
    this.#end(operation, turn, exposedMs);
    return { next: 'done' };
  }

  #start(operation: Operation): void {
    const { clock, onEvent } = this.#run.deps;
    this.#startedAt.set(operation.id, clock.monotonic());
    if (isFirstHalf(operation) && operation.verb === 'delete') this.#run.facts.recreated.add(operation.key);
    onEvent?.({ type: 'started', at: clock.now(), operation });
  }

  #end(
    operation: Operation,
    turn: Exclude<Turn, { now: 'again' }> | Interrupted,
    exposedMs: number | undefined,
  ): void {
    const run = this.#run;
    const { clock, onEvent } = run.deps;
    const now = clock.monotonic();
    const ended = resultOf(run, operation, turn, now - (this.#startedAt.get(operation.id) ?? now));
    const closed = exposedMs !== undefined && turn.now === 'closed' && ended.outcome === 'done';
    const result = closed ? { ...ended, exposedMs } : ended;
    this.#results.set(operation.id, result);
    this.#spans.end(result);
    onEvent?.({ type: 'ended', at: clock.now(), result });
    this.#todo.get(operation.key)?.shift();
    this.#run.gate.settle(operation.key);
    if (result.outcome === 'done') {
      this.#queue.add(operation.key);
      for (const dependent of this.#waitingFor.get(operation.id) ?? []) this.#queue.add(dependent);
    } else {
      for (const dependent of this.#waitingFor.get(operation.id) ?? []) this.#run.gate.settle(dependent);
    }
    run.signals.grace.delete(operation.key);
    if (operation.verb === 'create' || result.outcome !== 'done') run.facts.recreated.delete(operation.key);
    const isRefused = result.outcome === 'blocked' && result.code !== 'dependency_blocked';
    if (isRefused && operation.replacement !== undefined) run.facts.stopReplacements(operation.key);
  }

  /** The firewall of a server that the API has just accepted is sent now, if it is part of this run. */
  #sendFirewall({ key }: Operation): void {
    const firewall = firewallOf(this.#run.world, key)?.key;
    if (firewall === undefined) return;
    if (this.#todo.has(firewall)) this.#queue.add(firewall);
    else {
      this.#run.gate.settle(firewall);
      this.#run.signals.grace.delete(firewall);
    }
  }

  /** Once the API has accepted the firewall, nothing waits for it. */
  #covered(operation: Operation): void {
    if (!endsExposure(operation)) return;
    this.#run.gate.settle(operation.key);
    this.#run.signals.grace.delete(operation.key);
  }

  /** Needs that were not approved were met before. Otherwise the plan would not contain the operation. */
  #isReady(operation: Operation): boolean {
    return operation.needs.every(
      (id) =>
        this.#results.get(id)?.outcome === 'done' ||
        !this.#approved.has(id) ||
        this.#isCoverable(operation, id),
    );
  }

  /** A firewall does not wait for the end of the creation of its server. */
  #isCoverable(operation: Operation, need: OperationId): boolean {
    const { intents } = this.#run;
    const { parent } = takeApart(operation.key);
    if (parent === undefined || need !== operationId('create', parent) || !endsExposure(operation))
      return false;
    if (intents.has(operation.key)) return true;
    return coverable(this.#run, parent) !== undefined;
  }

  /** Whether the key has another turn in this run that does not need the waiting operation. */
  #isToCome(key: ResourceKey, waiting: ResourceKey): boolean {
    const operation = this.#todo.get(key)?.[0];
    if (operation === undefined || key === waiting) return false;
    return operation.needs.every((id) => {
      const result = this.#results.get(id);
      if (result !== undefined || !this.#approved.has(id))
        return result === undefined || result.outcome === 'done';
      const needed = this.#keys.get(id);
      return needed !== undefined && this.#isToCome(needed, waiting);
    });
  }
}

/** One turn of work on an operation. The open write of its key goes first. */
async function turnOf(run: Run, operation: Operation): Promise<Turn | Interrupted> {
  const open = run.intents.get(operation.key);
  try {
    if (open !== undefined) return await goOnWith(run, operation, open);
    return await (operation.verb === 'adopt' ? adopt(run, operation) : operate(run, operation));
  } catch (error) {
    return interruption(run, error);
  }
}

/** An open intent of another verb blocks the operation. The end of this intent is not the end of the operation. */
async function goOnWith(run: Run, operation: Operation, open: Intent): Promise<Turn> {
  if (isOvertaken(open, run.world)) return giveUp(run, open, 'the spec has changed', { retryAfterMs: 0 });
  const progress = await advance(run, open, operation);
  return progress.now === 'closed' && open.verb !== operation.verb ? { now: 'again', afterMs: 0 } : progress;
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

/** The result of the last turn of an operation. @param requestId of the last answer to the key */
export function resultOf(
  run: Run,
  { key, verb }: Pick<Operation, 'key' | 'verb'>,
  turn: Exclude<Turn, { now: 'again' }> | Interrupted,
  durationMs: number,
  requestId = run.facts.requestIdOf(key),
): OperationResult {
  const base = { key, verb, durationMs, ...(requestId === undefined ? {} : { requestId }) };
  switch (turn.now) {
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
        ...(turn.remedies === undefined ? {} : { remedies: turn.remedies }),
      };
    case 'overtaken':
      if (turn.isMet) return { ...base, outcome: 'done', detail: turn.reason };
      return { ...base, outcome: 'failed', code: 'overtaken', detail: turn.reason };
    case 'interrupted':
      return { ...base, outcome: 'unresolved', ...leftOpen(run.intents.get(key)) };
    case 'unread':
      return {
        ...base,
        outcome: run.intents.has(key) ? 'unresolved' : 'failed',
        code: 'read_failed',
        detail: turn.reason,
      };
  }
}

/** The time that a new server was exposed, even if an earlier run created the server. */
async function exposure(run: Run, { key, verb }: Operation): Promise<number | undefined> {
  const server = run.world.subjects.get(key)?.parent;
  if (verb !== 'create' || server === undefined) return undefined;
  const since = run.facts.exposedSince(server);
  const [put] = await run.deps.store.intents({ key, limit: 1 });
  const answer = put && partsOf(put).answer;
  const coveredFor =
    put === undefined || answer === undefined ? 0 : run.stopwatch.since(put.id, 'accepted', answer.at);
  if (since !== undefined) return Math.max(0, run.deps.clock.monotonic() - since - coveredFor);
  const past = await run.deps.store.intents({ key: server, limit: 50 });
  const made = past.find((each) => each.verb === 'create' && partsOf(each).outcome === 'done');
  const at = made && (partsOf(made).answer?.at ?? made.firstSentAt);
  return at === undefined ? undefined : Math.max(0, run.deps.clock.now() - coveredFor - at);
}

/**
 * A repeating operation runs once a run, even if a clock reports its result as too old. The operation runs again if
 * its server was replaced since.
 */
export function isDone(results: readonly OperationResult[], key: ResourceKey): boolean {
  const parent = parseKey(key)?.parent;
  const last = (wanted: ResourceKey | undefined) =>
    results.findLastIndex((result) => result.key === wanted && result.outcome === 'done');
  return last(key) > last(parent);
}

/** An operator, or the next run, decides about a resource whose task failed in this run. */
export function isFailed(results: readonly OperationResult[], key: ResourceKey): boolean {
  return results.some(
    ({ key: each, code }) => each === key && (code === 'tainted' || code === 'task_failed'),
  );
}

/** The reason why a turn of work ended without a result although the work itself is correct. */
export type Interrupted =
  /** The run is asked to stop. If there is an intent, the next run continues it. */
  | { readonly now: 'interrupted' }
  /** A read failed permanently. The failed read is no evidence, and does not stop the other work. */
  | { readonly now: 'unread'; readonly reason: string };

/**
 * Separates an abort and a failed read from all other errors, which are thrown again: a state that cannot be written,
 * the token of another project, or a bug ends the whole run. `halt` is the signal that ended the work.
 */
export function interruption(run: Run, error: unknown, halt: AbortSignal = run.signals.halt): Interrupted {
  if (isAbort({ stop: run.signals.stop, halt }, error)) return { now: 'interrupted' };
  if (!isFailedRead(error)) {
    run.signals.giveUp(error);
    throw error;
  }
  const reason = `a read failed, so nothing is known: ${error.message}`;
  if (error instanceof ApiProblem && error.status === 401)
    run.facts.pauseAll({ code: error.code ?? 'unauthorized', reason });
  return { now: 'unread', reason };
}

/** Whether a wait or a read ends with this error when the run is asked to stop. */
export function isAbort({ stop, halt }: Pick<RunSignals, 'stop' | 'halt'>, error: unknown): boolean {
  if (halt.aborted && (error === halt.reason || error instanceof TransportError)) return true;
  return stop.aborted && error === stop.reason;
}

/** Reports the writes of an interrupted run that continue without the run, and that its results do not name yet. */
export function unfinished(run: Run, results: readonly OperationResult[]): readonly OperationResult[] {
  const { clock, onEvent } = run.deps;
  const named = new Set(results.flatMap(({ key, outcome }) => (outcome === 'unresolved' ? [key] : [])));
  const open = [...run.intents.values()].filter(
    ({ key, phase }) => !named.has(key) && phase !== 'blocked' && phase !== 'superseded',
  );
  return open.map((intent) => {
    const { key, verb, requestId, firstSentAt } = intent;
    const durationMs = Math.max(0, clock.now() - firstSentAt);
    const request = requestId === undefined ? {} : { requestId };
    const result = { key, verb, outcome: 'unresolved', durationMs, ...request, ...leftOpen(intent) } as const;
    onEvent?.({ type: 'ended', at: clock.now(), result });
    return result;
  });
}

/** How the write of an interrupted operation continues. */
export function leftOpen(open: Intent | undefined): Pick<OperationResult, 'detail' | 'taskId'> {
  if (open === undefined) return { detail: 'interrupted before its write' };
  const { phase } = open;
  switch (phase) {
    case 'accepted': {
      const { taskId, end } = open.answer;
      if (taskId === undefined || end !== 'reported')
        return { detail: 'the API has accepted the write, and the next run verifies its effect' };
      return { taskId, detail: `task ${taskId} continues, and the next run waits for it` };
    }
    case 'waiting':
      return { detail: 'the write has no effect yet, and the next run sends it again' };
    default:
      return { detail: 'the outcome of the write is unconfirmed, and the next run finds it out' };
  }
}

/** A failed read does not end the run. A later run recovers the resource, or asks the operator about the resource. */
export async function recovered<Result>(
  run: Run,
  ask: (run: Run) => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await ask(run);
  } catch (error) {
    if (isFailedRead(error) || isAbort(run.signals, error)) return undefined;
    throw error;
  }
}
