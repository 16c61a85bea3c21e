import type { Evidence } from '../../core/evidence.ts';
import { partsOf } from '../../core/intent.ts';
import type { Intent, StateChange } from '../../core/state.ts';
import type { Run } from '../run.ts';
import { leftByFailed } from './bound-by.ts';
import { calibrated } from './calibrate.ts';
import { block, close, closeAndRetry, mostReplayed, type Progress, unbrokenRow } from './endings.ts';
import { isReplay } from './question.ts';
import { inWriteSlot } from './write-slot.ts';

/** The limit for a creation, if no evidence shows that the API marks only replays as replayed. */
const mostUnsureReplays = 3;

/** The write was accepted and succeeded, but no read shows its effect: an old answer was replayed, or the API is in breach. */
export async function notThere(
  { run, intent }: { readonly run: Run; readonly intent: Intent },
  { gone, strays, left }: Extract<Evidence, { verdict: 'not_done' }>,
): Promise<Progress> {
  if (isReplay(intent)) {
    const { taskId, end } = partsOf(intent).answer ?? {};
    if (intent.verb === 'create' && taskId === undefined && end === 'unreported')
      return block(run, intent, 'not_there', replayedUnreported);
    const before = await unbrokenRow(
      run,
      intent,
      (each) => partsOf(each).outcome === 'absent' && isReplay(each),
    );
    const count = before.length + 1;
    const isSuspect =
      intent.verb === 'create' && count >= mostUnsureReplays && !(await marksReplaysAlone(run, intent));
    if (isSuspect || count >= mostReplayed)
      return block(run, intent, 'not_there', replayedOnly(intent, before));
    return createNext(
      run,
      intent,
      'an earlier state used its idempotency key, and the resource of that write is gone',
    );
  }
  const reason = 'the API accepted the write and reported no failure, but reads do not show its effect';
  // A deletion or an update is safe to repeat.
  if (intent.verb !== 'create' || run.kindOf(intent.kind).setting)
    return closeAndRetry(run, intent, { outcome: 'absent', text: reason, most: 3, code: 'not_there' });
  const earlier = await unbrokenRow(run, intent, (each) => partsOf(each).outcome === 'absent');
  // If two resources in a row do not show in reads, the reads of the API may be wrong.
  if (gone !== true || strays === true || earlier.length > 0) return block(run, intent, 'not_there', reason);
  const bound = leftByFailed(run, intent, left);
  return createNext(run, intent, `${partsOf(intent).answer?.id} was created, and is gone`, bound);
}

/** The created resource is gone, so the next creation has a key of its own. */
function createNext(
  run: Run,
  intent: Intent,
  detail: string,
  left: readonly StateChange[] = [],
): Promise<Progress> {
  const changes = [...left, { type: 'next_incarnation', key: intent.key } as const];
  return close(run, intent, { outcome: 'absent', text: detail }, { changes, retryAfterMs: 0 });
}

const replayedUnreported =
  'a stored answer says that the resource is being created, and names no task. Reads do not show the resource: it may be gone, or may still appear';

/** Whether the API marks replayed answers, and only these. A fresh answer that is marked by mistake is a purchase. */
async function marksReplaysAlone(run: Run, intent: Intent): Promise<boolean> {
  if (run.facts.heldBy(intent.request, 'none') !== undefined) return false;
  const behaviour = await inWriteSlot(run, intent, () => calibrated(run, intent));
  return !('type' in behaviour) && behaviour.storesRefusals;
}

function replayedOnly(intent: Intent, before: readonly Intent[]): string {
  if (intent.verb === 'delete')
    return `the API answered the deletion ${before.length + 1} times with a stored answer, and reads still show the resource`;
  const ids = [intent, ...before].flatMap((each) => partsOf(each).answer?.id ?? []);
  return `the API answered that it created ${ids.join(', ')}, and reads show none of them: they may exist and be billed`;
}
