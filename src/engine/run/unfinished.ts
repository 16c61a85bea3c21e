import type { OperationResult } from '../../core/progress.ts';
import type { Intent } from '../../core/state.ts';
import type { Run } from '../run.ts';

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
