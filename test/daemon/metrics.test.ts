import { describe, expect, test } from 'vitest';
import { command } from '../../src/core/remedy.ts';
import type { Daemon } from '../../src/daemon/daemon.ts';
import { Metrics } from '../../src/daemon/http/metrics.ts';
import type { ReconciliationRecord } from '../../src/daemon/project/facts.ts';
import type { ProjectFacts } from '../../src/view/facts.ts';
import { idleDaemon } from '../support/project.ts';

const reconciliation: ReconciliationRecord = {
  ...{ triggers: [], startedAt: 0, endedAt: 1_000, outcome: 'converged', commit: undefined },
  ...{ operations: 0, settled: 0 },
};

/** As many projects as wanted; the second of them differs from its file for 90 s. */
function daemonOf(count: number): Daemon {
  const projects = Array.from({ length: count }, (_, index) => {
    const differs = index === 1;
    const operations = ['networks.a', 'networks.b'].map((key) => ({
      key,
      verb: 'create',
      code: 'protected',
    }));
    const blocked = operations.map((each) => ({ ...each, reason: '', remedies: [command('resolve')] }));
    const plan = {
      operations: differs ? [{ key: 'networks.c', kind: 'network', verb: 'create', changes: [] }] : [],
      warnings: [],
      blocked: differs ? blocked : [],
      project: {},
      cost: { monthly: {}, month: { cost: '231.40', run_rate: '57.00', forecast: '260.00' } },
    };
    const facts = {
      ...{ id: 4711 + index, condition: differs ? 'blocked' : 'converged', plan },
      differsSince: differs ? 10_000 : undefined,
      known: { now: 100_000, bindings: [], intents: [], claims: [] },
      daemon: {
        ...idleDaemon,
        lastReconciliations: [{ ...reconciliation, endedAt: 1_000_000 + index * 1_000 }],
        client: {
          ...{ oldestReadMs: 1_000 * index, backOff: [], used: { reads: index, writes: 0 } },
          limits: { windowMs: 60_000, reads: 60, writes: 20 },
          counts: { reads: 3, writes: 1, polls: 0, probes: 0, throttled: 0 },
        },
      },
    };
    return { id: facts.id, facts: async () => facts as unknown as ProjectFacts };
  });
  return {
    specs: { state: () => ({ name: 'specs', readAt: 1, error: undefined, orphans: [] }) },
    projects: () => projects,
    notReady: () => [],
    brokenSpecs: () => 0,
  } as unknown as Daemon;
}

/** Every series as it was rendered, with its value. */
async function seriesOf(metrics: Metrics, count: number): Promise<ReadonlyMap<string, number>> {
  for (let index = 0; index < count; index += 1) metrics.countReconciliation(4711 + index, reconciliation);
  const text = await metrics.render(daemonOf(count));
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

describe('src/daemon/http/metrics.ts', () => {
  test('one series covers all projects, as their sum or their worst value', async () => {
    const metrics = new Metrics('1', { ofProcess: false, perProject: false });
    const few = await seriesOf(metrics, 3);
    const many = await seriesOf(new Metrics('1', { ofProcess: false, perProject: false }), 1_000);
    expect(many.size).toBe(few.size);
    expect([...few.keys()].filter((name) => /project=|key=/.test(name))).toEqual([]);
    const of = (name: string) => few.get(`vdcsync_${name}`);
    expect([of('projects'), of('converged'), of('blocked')]).toEqual([3, 2, 2]);
    expect(of('condition{condition="converged"}')).toBe(2);
    expect([of('month_cost'), of('month_cost_run_rate'), of('month_cost_forecast')]).toEqual([
      694.2, 171, 780,
    ]);
    expect([of('drift_age_seconds'), of('oldest_read_age_seconds')]).toEqual([90, 2]);
    expect(of('last_reconciliation_timestamp_seconds')).toBe(1_000);
    expect([of('budget_used{budget="reads"}'), of('budget_limit{budget="reads"}')]).toEqual([2, 60]);
    expect([of('reconciliations_total{outcome="converged"}'), of('requests_total{budget="reads"}')]).toEqual([
      3, 9,
    ]);
    // A scrape tells of the moment, and adds nothing to the one before.
    const text = await metrics.render(daemonOf(3));
    expect(text).toContain('vdcsync_converged 2\n');
    expect(text).toContain('vdcsync_requests_total{budget="reads"} 9\n');
  });

  test('with --metrics-per-project, each project has its own series', async () => {
    const each = await seriesOf(new Metrics('1', { ofProcess: false }), 3);
    expect(each.get('vdcsync_converged{project="4711"}')).toBe(1);
    expect(each.get('vdcsync_converged{project="4712"}')).toBe(0);
    expect(each.get('vdcsync_reconciliations_total{project="4713",outcome="converged"}')).toBe(1);
    const differing = [...each.keys()].filter((name) => name.startsWith('vdcsync_resource_differs'));
    expect(differing).toEqual(['vdcsync_resource_differs{project="4712",key="networks.c"}']);
  });
});
