import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Blocked, Plan } from '../../../src/core/plan.ts';
import type { ApplyReport } from '../../../src/core/progress.ts';
import { type FaultAction, faultRule } from '../../../src/emulator/faults.ts';
import { some } from '../../support/drawn.ts';
import { rig } from '../../support/rig.ts';
import { prepare, scenes } from '../intents/scenes.ts';

const key = 'networks.backend' as ResourceKey;

/** Faults that last, so that a run ends with something blocked. */
const faults: Readonly<Record<string, FaultAction>> = {
  'a task that never ends': { do: 'task', outcome: 'stuck' },
  'tasks that fail': { do: 'task', outcome: 'fail', leaves: 'nothing' },
  'a 500 for each send': { do: 'answer', status: 500, code: 'internal_error' },
  'a 403 for each send': { do: 'answer', status: 403, code: 'insufficient_scope' },
  'a 409 for each send': { do: 'answer', status: 409, code: 'odd' },
  'a 422 for each send': { do: 'answer', status: 422, code: 'invalid_request' },
};

const lines = (blocked: readonly Blocked[]) =>
  blocked.map(({ key, verb, code }) => `${verb} ${key} ${code}`).sort();

const cases = Object.entries(scenes).flatMap(([write, scene]) =>
  Object.entries(faults).map(([fault, action]) => ({ name: `${write}: ${fault}`, scene, action })),
);

describe('src/engine/run/findings.ts: after a fault that lasts', () => {
  test.each(
    some(cases),
  )('$name: the plan of another process reports as blocked what the run left blocked', async ({
    scene,
    action,
  }) => {
    const { played } = await prepare(scene);
    played.fail({ path: scene.operation, nth: 1, times: 1_000 }, action);

    const report: ApplyReport = await played.apply(scene.spec);
    played.restart();
    const plan: Plan = await played.plan(scene.spec);

    expect(lines(plan.blocked)).toEqual(expect.arrayContaining(lines(report.blocked)));
    expect(plan.summary.blocked).toBe(new Set(plan.blocked.map(({ key }) => key)).size);
    if (report.outcome === 'blocked') expect(report.blocked).not.toEqual([]);
  });
});

const settings = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';
const network = (cidr = '10.20.0.0/24') => `${settings}networks:\n  backend: {cidr: ${cidr}}\n`;

/** A network whose task failed too often, and an API that has recovered since. */
async function refusedOften() {
  const played = rig();
  const always = faultRule(
    { path: 'create_network', nth: 1, times: 1_000 },
    faults['tasks that fail'] as FaultAction,
  );
  played.emulator.setFaults([always]);
  await played.apply(network());
  played.emulator.setFaults([]);
  return played;
}

describe('src/engine/run/findings.ts', () => {
  test('a finding ends with the run that succeeds', async () => {
    const played = await refusedOften();
    expect(lines((await played.plan(network())).blocked)).toEqual(['create networks.backend task_failed']);

    expect((await played.apply(network())).outcome).toBe('converged');

    expect((await played.plan(network())).blocked).toEqual([]);
    expect(await played.store.note('blocked')).toEqual({ findings: [], since: {} });
  });

  test('a finding ends with an edit of its entry, and with the entry', async () => {
    const played = await refusedOften();

    expect((await played.plan(network('10.21.0.0/24'))).blocked).toEqual([]);
    expect((await played.plan(settings)).blocked).toEqual([]);
  });

  test('a finding ends with the decision of the operator', async () => {
    const played = rig();
    const stuck = faultRule(
      { path: 'create_network', nth: 1 },
      faults['a task that never ends'] as FaultAction,
    );
    played.emulator.setFaults([stuck]);
    await played.apply(network());
    expect(lines((await played.plan(network())).blocked)).toEqual(['create networks.backend stuck']);

    await played.resolve(network(), key, { type: 'abandon' });

    expect((await played.plan(network())).blocked).toEqual([]);
  });

  test('a finding is not part of a plan that leaves its key out', async () => {
    const played = await refusedOften();
    const spec = `${network()}ips:\n  web: {}\n`;
    const only = { targets: ['ips.web' as ResourceKey], excludes: [] };

    expect((await played.plan(spec, { selection: only })).blocked).toEqual([]);
    await played.apply(spec, { selection: only });
    expect(lines((await played.plan(spec)).blocked)).toEqual(['create networks.backend task_failed']);
  });

  test('a saved plan with a finding is carried out', async () => {
    const played = await refusedOften();
    const saved = await played.plan(network());

    expect((await played.apply(network(), { saved })).outcome).toBe('converged');
  });

  test('a daemon that leaves the key alone for a while goes on reporting the finding', async () => {
    const played = await refusedOften();
    const repeating = { ...played.repeating(), isPaused: () => true };

    const report = await played.apply(network(), { repeating });

    expect(lines(report.blocked)).toEqual(['create networks.backend task_failed']);
  });

  test('what the state of the token holds back is not recorded: another token may do it', async () => {
    const played = rig();
    played.fail({ path: 'create_network', nth: 1, times: 9 }, faults['a 403 for each send'] as FaultAction);

    await played.apply(network());

    expect(await played.store.note('blocked')).toMatchObject({ findings: [] });
  });
});
