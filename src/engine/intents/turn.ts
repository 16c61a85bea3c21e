import type { WriteRequest, WriteResult } from '../../core/ports.ts';
import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';

/**
 * The highest age of the observation that a write is decided on, in ms. The reads of this observation may be a minute
 * old, so that a slow turn leaves usable reads for the next turn.
 */
export const lookHoldsMs = 30_000;
/** The same limit up to the first byte, because the machine may be suspended between the record and the send. */
export const sendHoldsMs = 60_000;

/** Waits for the turn to write. The observation that the write needs is made shortly before the turn. */
export function inTurn<Result>(
  run: Run,
  of: Pick<Intent, 'key' | 'kind' | 'verb'>,
  write: () => Promise<Result>,
): Promise<Result> {
  run.tell(of, 'queued', 'for its turn');
  const look = () => void run.lookAgain(of.key).catch(() => undefined);
  return run.gate.run(run.kindOf(of.kind).urgency, write, run.stop, look);
}

/** Uses both clocks, because a suspended machine may stop only one of them. */
export function sinceLook({ deps: { clock } }: Run): (holdsMs: number) => boolean {
  const [monotonic, wall] = [clock.monotonic(), clock.now()];
  return (holdsMs) => clock.monotonic() - monotonic <= holdsMs && Math.abs(clock.now() - wall) <= holdsMs;
}

/** Sends under the token that passed the project fence, unless the machine is suspended in between. */
export async function sendFenced(run: Run, request: WriteRequest, key: string): Promise<WriteResult> {
  run.stop.throwIfAborted();
  const { writes, store } = run.deps;
  await writes.room(run.stop);
  const holds = sinceLook(run);
  const token = await run.fence();
  if (!holds(lookHoldsMs)) return { type: 'unsent', reason: 'the project fence took too long' };
  return writes.send(request, key, token, () => holds(sendHoldsMs) && store.isOwned?.() !== false);
}
