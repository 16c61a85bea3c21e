import { ApiProblem } from '../core/errors.ts';
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
