import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../../src/core/keys.ts';
import type { Blocked } from '../../../src/core/plan.ts';
import { rig } from '../../support/rig.ts';

const key = 'networks.backend' as ResourceKey;

const lines = (blocked: readonly Blocked[]) =>
  blocked.map(({ key, verb, code }) => `${verb} ${key} ${code}`).sort();

const settings = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';
const network = (cidr = '10.20.0.0/24') => `${settings}networks:\n  backend: {cidr: ${cidr}}\n`;

const creating = { path: 'create_network', nth: 1, times: 1_000 };

/** A network whose task failed too often, and an API that has recovered since. */
async function refusedOften() {
  const played = rig();
  await played.failing(creating, { do: 'task', outcome: 'fail', leaves: 'nothing' }, network());
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
    played.fail('create_network', { do: 'task', outcome: 'stuck' });
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

  test('a saved plan with a finding is applied', async () => {
    const played = await refusedOften();
    const saved = await played.plan(network());

    expect((await played.apply(network(), { saved })).outcome).toBe('converged');
  });

  test('a daemon that pauses the key continues to report the finding', async () => {
    const played = await refusedOften();
    const repeating = { ...played.repeating(), isPaused: () => true };

    const report = await played.apply(network(), { repeating });

    expect(lines(report.blocked)).toEqual(['create networks.backend task_failed']);
  });

  test('a block by the state of the token is not recorded, because another token may write', async () => {
    const played = rig();
    played.fail(creating, { do: 'answer', status: 403, code: 'insufficient_scope' });

    await played.apply(network());

    expect(await played.store.note('blocked')).toMatchObject({ findings: [] });
  });
});
