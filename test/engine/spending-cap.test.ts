import { describe, expect, test } from 'vitest';
import { loadProfile } from '../../src/cli/settings/profile.ts';
import type { Plan } from '../../src/core/plan.ts';
import { asksForApproval } from '../../src/engine/run/approval.ts';
import { exampleProfile, profiled } from '../support/profiled.ts';
import { load, type Rig, rig, sliders as small } from '../support/rig.ts';

const head = 'settings: {max_monthly_increase: 1000, unmanaged: ignore}\n';
const gpu = 'server_type: gpu-fixed, image: ubuntu-24.04';

const bought = (played: Rig) => played.writes().filter(({ path }) => path === '/servers');

describe('src/engine/run/approval.ts: settings.max_monthly_increase', () => {
  test('counts the most expensive package that may be bought', async () => {
    const played = rig();
    played.emulator.mutate({ do: 'set_capacity', package: 'l40s-1', capacity: 0 });
    const spec = `${head}servers:\n  gpu: {${gpu}, gpu_package: [l40s-1, l40s-2], public_ipv4: {new: true}}\n`;

    const report = await played.apply(spec);

    expect(report.blocked).toMatchObject([
      { key: 'servers.gpu', code: 'max_monthly_increase', reason: expect.stringContaining('1690.00') },
    ]);
    expect(bought(played)).toEqual([]);
    expect((await played.apply(spec.replace('1000', '1690'))).outcome).toBe('converged');
  });

  test('counts a purchase with an unconfirmed outcome', async () => {
    const played = rig();
    const one = `${gpu}, gpu_package: l40s-1`;
    const asks = head.replace('{', '{unconfirmed_servers: ask, ');
    const file = (more: string) => `${asks}servers:\n  a: {${one}}\n${more}`;
    played.fail('create_server', { do: 'reset', effect: 'none' });
    await played.apply(file(''));

    const report = await played.apply(file(`  b: {${one}, public_ipv4: {new: true}}\n`));

    expect(Object.fromEntries(report.blocked.map(({ key, code }) => [key, code]))).toMatchObject({
      'servers.a': 'outcome_unknown',
      'servers.b': 'max_monthly_increase',
    });
    expect(played.project.servers).toEqual([]);
  });

  test('applies to all rounds of a run together', async () => {
    const played = rig();
    played.emulator.mutate({ do: 'add_ip', pool: 'gpu' });
    const ips = `${head}ips:\n  web: {server_type_id: 8}\n`;
    await played.apply(ips);
    const one = `${gpu}, gpu_package: l40s-1`;

    // The address is no free one to be taken by `reuse`, so one of the two waits for a later round.
    const report = await played.apply(
      `${ips}servers:\n  a: {${one}, public_ipv4: {reuse: true}}\n  b: {${one}, public_ipv4: {ip: web}}\n`,
    );

    expect(report.blocked.map(({ code }) => code)).toEqual(['max_monthly_increase']);
    expect(bought(played)).toHaveLength(1);
  });
});

const list = { core: '10', memory_gb: '5', disk_gb: '0.1' };

/** Everything that the profile can enable, and a price list. */
function priced(): Rig {
  const prices = { currency: 'EUR', address: '3', servers: { 'sliders-1': list } };
  return profiled({ profile: { ...loadProfile(exampleProfile, 'profile.yaml'), prices } });
}

const capped = (limit: number, entry: string) =>
  `settings: {prune: true, max_deletions: 9, max_monthly_increase: ${limit}}\nservers:\n  web: {${entry}}\n`;
const large = small.replace('cores: 1', 'cores: 64');

describe('src/engine: the cost of a change in place', () => {
  test('a larger size is priced, and blocked by the cap', async () => {
    const played = priced();
    await played.apply(capped(20, small));

    const plan = await played.plan(capped(700, large));
    expect(plan.cost).toMatchObject({
      known_monthly_delta: '630.00',
      monthly: { known_before: '17.00', known_after: '647.00' },
    });
    expect(plan.operations).toMatchObject([{ verb: 'update', spend: 'adds', risk: 'billed' }]);
    const report = await played.apply(capped(20, large));
    expect(report.blocked).toMatchObject([{ verb: 'update', code: 'max_monthly_increase' }]);
    expect(played.writes()).toHaveLength(1);

    expect((await played.apply(capped(700, large))).outcome).toBe('converged');
    const back = await played.plan(capped(20, small));
    expect(back.operations).toMatchObject([{ verb: 'update', spend: 'reduces', risk: 'safe' }]);
    expect(back.cost.known_monthly_delta).toBe('-630.00');
  });

  test('enabling scheduled backups is a purchase', async () => {
    const played = priced();
    const entry = `${gpu}, gpu_package: l40s-1, public_ipv4: {new: true}`;
    await played.apply(capped(2000, entry));
    const on = capped(
      20,
      `${entry}, backup_policy: {enabled: true, days: [mon], hour: 3, minute: 0, keep: 2}`,
    );

    const report = await played.apply(on);
    expect(report.blocked).toMatchObject([
      {
        key: 'servers.web.backup_policy',
        code: 'max_monthly_increase',
        reason: expect.stringContaining('89.00'),
      },
    ]);
    const raised = on.replace('max_monthly_increase: 20', 'max_monthly_increase: 100');
    expect((await played.plan(raised)).operations).toMatchObject([{ spend: 'adds', risk: 'billed' }]);
    expect((await played.apply(raised)).outcome).toBe('converged');
    const off = await played.plan(raised.replace('enabled: true', 'enabled: false'));
    expect(off.operations).toMatchObject([{ verb: 'update', spend: 'reduces', risk: 'safe' }]);
  });
});

describe('src/engine/run/plan.ts: a replacement that an earlier run has begun', () => {
  const old = `${small}, replace: {order: delete_first}`;
  const begun = async (next: string) => {
    const played = priced();
    await played.apply(capped(20, old));
    await played.failing({ method: 'DELETE' }, { do: 'standing', standing: 'unpaid' }, capped(20, next));
    expect(played.project.servers).toEqual([]);
    played.emulator.mutate({ do: 'set_standing', standing: 'active' });
    return played;
  };

  test('adds the difference from the deleted server alone', async () => {
    const next = old.replace('ubuntu-24.04', 'debian-13').replace('cores: 1', 'cores: 2');
    const played = await begun(next);
    await played.clock.advance(1_800_000);

    const plans: Plan[] = [];
    const approve = async (plan: Plan) => plans.push(plan) > 0;
    expect((await played.apply(capped(20, next), { approve })).outcome).toBe('converged');
    const plan = plans[0] ?? expect.fail('no plan');
    expect(plan.cost).toMatchObject({ known_monthly_delta: '27.00', known_monthly_freed: '17.00' });
    const asks = (limit: number) => {
      const approval = { deletions: false, replacements: false, monthly_increase: limit };
      return asksForApproval(plan, { ...load(capped(20, next)).settings, approval });
    };
    expect([asks(9), asks(10)]).toEqual([true, false]);
  });

  test.each([
    ['converges after a rename', 'moved: {from: servers.web}', 0, 'converged'],
    ['is blocked a day later', '', 25 * 3_600_000, 'blocked'],
  ])('%s', async (_name, more, afterMs, outcome) => {
    const next = old.replace('ubuntu-24.04', 'debian-13').replace('cores: 1', 'cores: 2');
    const played = await begun(next);
    await played.clock.advance(1_800_000 + afterMs);
    const spec = capped(20, more === '' ? next : `${next}, ${more}`);

    expect((await played.apply(more === '' ? spec : spec.replace('web: {', 'www: {'))).outcome).toBe(outcome);
  });

  test('is blocked if a later edit exceeds the limit', async () => {
    const played = await begun(old.replace('ubuntu-24.04', 'debian-13'));
    const dearer = capped(20, old.replace('cores: 1', 'cores: 8'));

    const report = await played.apply(dearer);

    expect(report.blocked).toMatchObject([
      { code: 'max_monthly_increase', reason: expect.stringContaining('add 70.00 a month') },
    ]);
  });
});
