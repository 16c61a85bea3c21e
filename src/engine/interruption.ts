import { ApiProblem } from '../core/errors.ts';
import type { ResourceKey } from '../core/keys.ts';
import { isFailedRead, TransportError } from '../core/transport.ts';
import type { Run } from './run.ts';

/** Why a turn of work came to nothing without anything being wrong with the work. */
export type Interrupted =
  /** The run is to stop; an intent, if there is one, stays for the next run. */
  | { readonly now: 'interrupted' }
  /** A read failed for good. It is evidence of nothing, and no reason to give up the rest. */
  | { readonly now: 'unread'; readonly reason: string };

/**
 * Tells an abort and a failed read from everything else, which is thrown on: a state that
 * cannot be written, another project's token or a bug end the whole run. `halt`: what ended the work.
 */
export function interruption(run: Run, error: unknown, halt: AbortSignal = run.halt): Interrupted {
  if (isAbort({ stop: run.stop, halt }, error)) return { now: 'interrupted' };
  if (!isFailedRead(error)) {
    run.giveUp(error);
    throw error;
  }
  const reason = `a read failed, so nothing is known: ${error.message}`;
  if (error instanceof ApiProblem && error.status === 401)
    run.holdAll({ code: error.code ?? 'unauthorized', reason });
  return { now: 'unread', reason };
}

/** Whether this is how a wait or a read ends when the run is to stop. */
export function isAbort({ stop, halt }: Pick<Run, 'stop' | 'halt'>, error: unknown): boolean {
  if (halt.aborted && (error === halt.reason || error instanceof TransportError)) return true;
  return stop.aborted && error === stop.reason;
}

/** Once the run is to stop, only what the API has accepted is followed to its end. */
export function isIdle(run: Run, key: ResourceKey): boolean {
  return run.stop.aborted && run.intents.get(key)?.phase !== 'accepted';
}
