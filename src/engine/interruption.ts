import { ApiProblem } from '../core/errors.ts';
import type { OperationResult } from '../core/progress.ts';
import type { Intent } from '../core/state.ts';
import { isFailedRead, TransportError } from '../core/transport.ts';
import type { Run, RunSignals } from './run.ts';

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
