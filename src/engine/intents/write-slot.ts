import { firewallOf } from '../../core/exposure.ts';
import type { WriteRequest, WriteResult } from '../../core/ports.ts';
import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';

/**
 * The highest age of the observation that a write is decided on, in ms. The reads of this observation may be a minute
 * old, so that a slow turn leaves usable reads for the next turn.
 */
export const observationValidMs = 30_000;
/** The same limit up to the first byte, because the machine may be suspended between the record and the send. */
export const sendValidMs = 60_000;

/** Waits for the turn to write. The observation that the write needs is made shortly before the turn. */
export function inWriteSlot<Result>(
  run: Run,
  of: Pick<Intent, 'key' | 'kind' | 'verb'>,
  write: () => Promise<Result>,
): Promise<Result> {
  run.tell(of, 'queued', 'for its turn');
  const look = () => void run.view.observe(of.key).catch(() => undefined);
  return run.gate.run(write, {
    urgency: run.kindOf(of.kind).timing.urgency,
    signal: run.signals.stop,
    getReady: look,
    exposes: of.verb === 'create' && firewallOf(run.world, of.key) !== undefined,
  });
}

/** Waits for the write budget. Then the next writes make their observations. */
export async function roomToWrite({ deps, gate, signals }: Run): Promise<void> {
  await deps.writes.room(signals.stop, gate.isWaited());
  gate.readyNext();
}

/** Uses both clocks, because a suspended machine may stop only one of them. */
export function sinceObservation({ deps: { clock } }: Run): (validMs: number) => boolean {
  const [monotonic, wall] = [clock.monotonic(), clock.now()];
  return (validMs) => clock.monotonic() - monotonic <= validMs && Math.abs(clock.now() - wall) <= validMs;
}

/** Sends under the token that passed the project fence, unless the machine is suspended in between. */
export async function sendFenced(run: Run, request: WriteRequest, key: string): Promise<WriteResult> {
  run.signals.stop.throwIfAborted();
  const { writes, store } = run.deps;
  await writes.room(run.signals.stop, run.gate.isWaited());
  const pauses = sinceObservation(run);
  const token = await run.fence.check();
  if (!pauses(observationValidMs)) return { type: 'unsent', reason: 'the project fence took too long' };
  return writes.send(request, key, token, () => pauses(sendValidMs) && store.isOwned?.() !== false);
}
