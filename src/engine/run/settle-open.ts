import type { ResourceKey } from '../../core/keys.ts';
import type { OperationResult } from '../../core/progress.ts';
import type { Intent } from '../../core/state.ts';
import { isOvertaken } from '../../plan/open-writes.ts';
import { type Next, WorkQueue } from '../../queue/work-queue.ts';
import type { Progress } from '../intents/endings.ts';
import { advance } from '../intents/settle.ts';
import type { Run } from '../run.ts';
import { IntentSpans } from '../timing.ts';
import { interruption, resultOf } from './drain.ts';

/**
 * Brings these intents, which an earlier run or a plan has left open, to their end, or to an operator, before a new
 * operation is planned: the created resource is then bound and not created again. A write without effect so far is not
 * sent from here, because the plan shows whether the write is still wanted. Returns the writes that still need a wait or
 * an operator.
 */
export async function settleOpen(run: Run, open: readonly Intent[]): Promise<readonly OperationResult[]> {
  if (run.mode.repeating !== undefined) return settleFor(run, open, run.mode.repeating.settleMs);
  return settleUntil(run, open, run.signals.halt);
}

/** A longer task continues in parallel with the plan. The next work on its key waits for the task. */
async function settleFor(
  run: Run,
  open: readonly Intent[],
  patienceMs: number,
): Promise<readonly OperationResult[]> {
  const late = new AbortController();
  const early = new AbortController();
  const alarm = run.deps.clock.sleep(patienceMs, early.signal).then(
    () => late.abort(new Error('the task still runs')),
    () => undefined,
  );
  const halt = AbortSignal.any([run.signals.halt, late.signal]);
  const left = await settleUntil(run, open, halt);
  early.abort();
  await alarm;
  return left;
}

/** `halt` ends every wait, including waits for tasks. */
async function settleUntil(
  run: Run,
  open: readonly Intent[],
  halt: AbortSignal,
): Promise<readonly OperationResult[]> {
  const left: OperationResult[] = [];
  const settling = open.map(({ key }) => key);
  const inHand = new Set(settling);
  const spans = new IntentSpans(run.deps.tracing);
  const queue = new WorkQueue<ResourceKey>({
    clock: run.deps.clock,
    concurrency: 64,
    stop: halt,
    work: async (key) => {
      const next = await settleOne(run, key, { inHand, halt, spans, leave: (result) => left.push(result) });
      if (next.next === 'done') inHand.delete(key);
      return next;
    },
  });
  for (const key of settling) queue.add(key);
  try {
    await queue.drained();
  } finally {
    for (const key of settling) run.signals.grace.delete(key);
    spans.endAll();
  }
  return left;
}

interface Settling {
  readonly inHand: ReadonlySet<ResourceKey>;
  readonly halt: AbortSignal;
  readonly spans: IntentSpans;
  readonly leave: (result: OperationResult) => void;
}

async function settleOne(
  run: Run,
  key: ResourceKey,
  { inHand, halt, spans, leave }: Settling,
): Promise<Next> {
  const intent = run.intents.get(key);
  if (intent === undefined) return { next: 'done' };
  // The plan ends a refused write whose entry the spec has changed.
  if (intent.phase === 'waiting' || isOvertaken(intent, run.world)) return { next: 'done' };
  try {
    const progress = await spans.within(intent, () => advance(run, intent, {}, halt));
    if (progress.now !== 'again') {
      const result = reportEnd(run, intent, progress);
      spans.end(result);
      if (result.outcome === 'blocked') leave(result);
    } else if (isToCome(progress.until, inHand)) return { next: 'again', afterMs: progress.afterMs };
  } catch (error) {
    // If a read fails now, the operation of the key reads again. A key without an operation is reported.
    const ended = interruption(run, error, halt);
    if (ended.now === 'unread')
      leave(reportEnd(run, intent, { now: 'blocked', code: 'read_failed', reason: ended.reason }));
  }
  return { next: 'done' };
}

/** The plan continues with the writes that are still open, and with the operations that wait for them. */
function isToCome(until: ResourceKey | undefined, inHand: ReadonlySet<ResourceKey>): boolean {
  return until === undefined || inHand.has(until);
}

function reportEnd(run: Run, intent: Intent, progress: Exclude<Progress, { now: 'again' }>): OperationResult {
  const { clock, onEvent } = run.deps;
  const durationMs = Math.max(0, clock.now() - intent.firstSentAt);
  const result = resultOf(run, intent, progress, durationMs, intent.requestId);
  // A question to the key of an earlier state is no operation, and its answer no failure.
  const isAnswer = intent.recovers !== undefined && progress.now === 'closed';
  if (!isAnswer) onEvent?.({ type: 'ended', at: clock.now(), result });
  return result;
}
