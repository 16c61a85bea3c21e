import type { WriteRequest, WriteResult } from '../../core/ports.ts';
import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';

/**
 * How long what a write was decided on holds, in ms from the look. The look's own reads may
 * be a minute old, so that of a slow turn the next one can use what was read last.
 */
export const lookHoldsMs = 30_000;
/** The same up to the first byte: a machine may stand still between the record and the send. */
export const sendHoldsMs = 60_000;

/** Waits for the turn to write; the look that it needs is taken when the turn is near. */
export function inTurn<Result>(
  run: Run,
  of: Pick<Intent, 'key' | 'kind' | 'verb'>,
  write: () => Promise<Result>,
): Promise<Result> {
  run.tell(of, 'queued', 'for its turn');
  const look = () => void run.lookAgain(of.key).catch(() => undefined);
  return run.gate.run(run.kindOf(of.kind).urgency, write, run.stop, look);
}

/** A machine that stood still may have stopped either of its clocks, and not the other. */
export function sinceLook({ deps: { clock } }: Run): (holdsMs: number) => boolean {
  const [monotonic, wall] = [clock.monotonic(), clock.now()];
  return (holdsMs) => clock.monotonic() - monotonic <= holdsMs && Math.abs(clock.now() - wall) <= holdsMs;
}

/** Sends under the token that passed the project fence, unless the machine stands still in between. */
export async function sendFenced(run: Run, request: WriteRequest, key: string): Promise<WriteResult> {
  run.stop.throwIfAborted();
  const { writes, store } = run.deps;
  await writes.room(run.stop);
  const holds = sinceLook(run);
  const token = await run.fence();
  if (!holds(lookHoldsMs)) return { type: 'unsent', reason: 'the project fence took too long' };
  return writes.send(request, key, token, () => holds(sendHoldsMs) && store.isOwned?.() !== false);
}
