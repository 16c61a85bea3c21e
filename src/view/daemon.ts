import type { ClientFacts, ProjectFacts } from './facts.ts';
import { time, timeOrNull } from './moments.ts';
import type { ProjectView } from './project-view.ts';

type DaemonView = NonNullable<ProjectView['daemon']>;

/** The process that works on the project. */
export function daemonOf({ daemon, flags = '' }: ProjectFacts): DaemonView | null {
  if (daemon === undefined) return null;
  const { mode, intervalMs, error, waitingFor, reconciling, reconciliations, client } = daemon;
  return {
    ...{ flags, mode, interval_seconds: intervalMs / 1000, reconciling, reconciliations },
    error: error === undefined ? null : error instanceof Error ? error.message : String(error),
    waiting_for: waitingFor ?? null,
    last_reconciliations: daemon.lastReconciliations.map((each) => ({
      ...{ triggers: each.triggers, started_at: time(each.startedAt), ended_at: time(each.endedAt) },
      ...{ outcome: each.outcome, operations: each.operations, commit: each.commit ?? null },
    })),
    next_reconciliation_at: timeOrNull(daemon.nextReconciliationAt),
    oldest_read_seconds: Math.round((client?.oldestReadMs ?? 0) / 1000),
    pauses: daemon.pauses.map(({ scope, code, reason, since, probeAt }) => ({
      ...{ scope, code, reason, since: time(since), probe_at: timeOrNull(probeAt) },
    })),
    back_off: (client?.backOff ?? []).map(({ key, failures, until, code, reason }) => ({
      ...{ key, failures, until: time(until), code, reason },
    })),
    requests: client === undefined ? null : requestsOf(client),
  };
}

function requestsOf({ limits, used, counts }: ClientFacts): DaemonView['requests'] {
  const { reads, writes, polls, probes, throttled } = counts;
  return {
    window_seconds: limits.windowMs / 1000,
    reads: { used: used.reads, limit: limits.reads },
    writes: { used: used.writes, limit: limits.writes },
    since_start: { reads, writes, polls, probes, throttled },
  };
}
