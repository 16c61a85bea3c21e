import type { Plan } from '../../core/plan.ts';
import type { ApplyReport } from '../../core/progress.ts';
import type { DaemonLogger } from '../ports.ts';
import type { PassRecord } from '../project/facts.ts';

export function countsOf(results: ApplyReport['results']): Pick<PassRecord, 'operations' | 'settled'> {
  const settled = results.filter(({ outcome }) => outcome === 'done' || outcome === 'failed');
  return { operations: results.length, settled: settled.length };
}

/** One line of the log for a pass; a quiet life writes none every five minutes, whatever still waits. */
export function logPass(
  log: DaemonLogger,
  { triggers, outcome, commit, startedAt, endedAt, operations, settled }: PassRecord,
  plan: Plan | undefined,
  digest: string | undefined,
): void {
  const idle = settled === 0 && triggers.every((each) => each === 'timer' || each === 'refresh');
  // What the last plan said is nothing that this pass has seen.
  const { blocked, unchanged } = (outcome === 'error' ? undefined : plan?.summary) ?? {};
  log[idle && outcome !== 'error' ? 'debug' : 'info'](
    {
      ...{ event: triggers.join(' '), outcome, commit, digest },
      ...{ durationMs: Math.round(endedAt - startedAt), count: operations, blocked, unchanged },
    },
    'reconciliation ended',
  );
}
