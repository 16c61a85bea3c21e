import type { Plan } from '../core/plan.ts';
import type { PassRecord } from './facts.ts';
import type { DaemonLogger } from './ports.ts';

/** One line of the log for a pass; a quiet life writes none every five minutes. */
export function logPass(
  log: DaemonLogger,
  project: number,
  { triggers, outcome, commit, startedAt, endedAt, operations }: PassRecord,
  plan: Plan | undefined,
  digest: string,
): void {
  const idle = operations === 0 && triggers.every((each) => each === 'timer' || each === 'refresh');
  const { blocked, unchanged } = plan?.summary ?? {};
  log[idle && outcome !== 'error' ? 'debug' : 'info'](
    {
      ...{ project, event: triggers.join(' '), outcome, commit, digest },
      ...{ durationMs: Math.round(endedAt - startedAt), count: operations, blocked, unchanged },
    },
    'pass ended',
  );
}
