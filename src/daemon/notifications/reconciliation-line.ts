import type { Plan } from '../../core/plan.ts';
import type { ApplyReport } from '../../core/progress.ts';
import type { DaemonLogger } from '../ports.ts';
import type { ReconciliationRecord } from '../project/facts.ts';

export function countsOf(
  results: ApplyReport['results'],
): Pick<ReconciliationRecord, 'operations' | 'settled'> {
  const settled = results.filter(({ outcome }) => outcome === 'done' || outcome === 'failed');
  return { operations: results.length, settled: settled.length };
}

/**
 * Writes one log line for a reconciliation. A reconciliation without changes is logged at level debug, so that an idle
 * project does not write a line every five minutes.
 */
export function logReconciliation(
  log: DaemonLogger,
  { triggers, outcome, commit, startedAt, endedAt, operations, settled }: ReconciliationRecord,
  plan: Plan | undefined,
  spec: string | undefined,
): void {
  const idle = settled === 0 && triggers.every((each) => each === 'timer' || each === 'refresh');
  // After an error, the plan is the one of an earlier reconciliation, so its counts do not belong into this line.
  const { blocked, unchanged } = (outcome === 'error' ? undefined : plan?.summary) ?? {};
  log[idle && outcome !== 'error' ? 'debug' : 'info'](
    {
      ...{ trigger: triggers.join(' '), outcome, commit, spec },
      ...{ durationMs: Math.round(endedAt - startedAt), operations, blocked, unchanged },
    },
    'reconciliation ended',
  );
}
