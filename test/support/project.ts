import type { Plan } from '../../src/core/plan.ts';
import { documentedProfile } from '../../src/core/profile.ts';
import type { ProjectSession } from '../../src/daemon/ports.ts';
import type { ProjectHistory } from '../../src/daemon/project/history.ts';
import { DaemonProject } from '../../src/daemon/project/project.ts';
import type { ProjectOptions } from '../../src/daemon/project/workspace.ts';
import { systemClock, systemRandom } from '../../src/platform/system.ts';
import { memoryState } from '../../src/state/sqlite-driver.ts';
import type { DaemonFacts } from '../../src/view/facts.ts';

export const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export const noRequests = { reads: 0, writes: 0, polls: 0, probes: 0, throttled: 0 };

/** A session of a daemon in real time, with an empty state and these parts. */
export function sessionWith(parts: Partial<ProjectSession>): ProjectSession {
  return {
    store: memoryState({ createdAt: 1, lineage: 'born' }),
    ...{ clock: systemClock, profile: documentedProfile, counts: () => noRequests, tokenMark: () => '' },
    ...{ onCommand: async () => {}, close: async () => {} },
    ...parts,
  } as ProjectSession;
}

/** A project of a daemon in real time that tells nobody of anything. */
export function projectWith(
  { open, ...deps }: Pick<ProjectOptions['deps'], 'open'> & Partial<ProjectOptions['deps']>,
  options: Partial<ProjectOptions> = {},
): DaemonProject {
  const nothing = () => {};
  return new DaemonProject({
    deps: { clock: systemClock, random: systemRandom, log: quiet, open, commandFlags: () => '', ...deps },
    ...{ id: 4711, mode: 'correct', intervalMs: 60_000, keepMs: 60_000 },
    worker: { replica: 'r', notified: { notifiedOf: () => ({}), recall: nothing }, now: () => 0 },
    ...{ onNotification: nothing, onChange: nothing, onEvent: nothing, onReconciliation: nothing },
    ...options,
  });
}

/** A reconciliation has ended that leaves this plan. */
export function endReconciliation(history: ProjectHistory, plan: Plan, digest: string): void {
  const record = { triggers: [], startedAt: 1, endedAt: 2, outcome: 'converged', commit: undefined } as const;
  history.succeed(plan);
  history.close({ ...record, operations: 0, settled: 0 }, digest, { pauses: [], leaking: false });
}

/** A daemon that has opened no state yet. */
export const idleDaemon: DaemonFacts = {
  ...{ mode: 'correct', intervalMs: 300_000, error: undefined, waitingFor: undefined },
  ...{ reconciling: false, reconciliations: 1, lastReconciliations: [], pauses: [] },
  ...{ nextReconciliationAt: undefined, client: undefined },
};
