import { describe, expect, test } from 'vitest';
import { planText } from '../../../src/cli/render/plan-text.ts';
import { plainPaint } from '../../../src/cli/terminal.ts';
import { resolving } from '../../support/resolve.ts';
import { rig } from '../../support/rig.ts';

const head = 'settings: {exclusive: true, prune: true, max_deletions: 10}\n';

describe('src/engine/intents/pauses.ts: a plan of what is held', () => {
  test('counts and shows it once, with what waits for it', async () => {
    const played = rig();
    const networks = 'networks:\n  back: {cidr: 10.1.0.0/24}\n';
    await played.apply(head + networks);
    played.emulator.mutate({ do: 'set_standing', standing: 'unpaid' });
    const spec = `${head}servers:\n  web: {server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20, public_ipv4: {new: true}, firewall: {enabled: true}}\n`;
    await played.apply(spec + networks);

    const plan = await played.plan(spec);
    expect(plan.summary).toMatchObject({ create: 0, delete: 1, blocked: 2 });
    expect(plan.blocked).toMatchObject([
      { key: 'servers.web', code: 'payment_required' },
      {
        key: 'servers.web.firewall',
        code: 'dependency_blocked',
        remedies: resolving('resolve servers.web first'),
      },
    ]);
    const text = planText(plan, plainPaint);
    expect(text).toContain('- back');
    expect(text.match(/servers\.web(?!\.)/g)).toHaveLength(2);
    expect(text).toContain('Plan: 1 to delete, 1 blocked, 1 waiting.');
  });
});

describe('src/engine/intents/pauses.ts: the cost of what is held', () => {
  const gpu = (max: string) =>
    `settings: {unmanaged: ignore, max_monthly_increase: ${max}}
networks: {back: {cidr: 10.1.0.0/24}}
servers: {gpu: {server_type: gpu-fixed, image: ubuntu-24.04, gpu_package: l40s-1, network_interfaces: [back]}}\n`;

  test('is no part of the plan, whatever holds it', async () => {
    const played = rig();
    await played.apply('networks: {back: {cidr: 10.1.0.0/24}}\n');
    const free = await played.plan(gpu('null'));
    const capped = await played.plan(gpu('1'));
    played.emulator.mutate({ do: 'set_standing', standing: 'unpaid' });
    await played.apply(gpu('null'));
    const unpaid = await played.plan(gpu('null'));

    expect(free.cost).toMatchObject({ known_monthly_delta: '890.00', monthly: { known_after: '890.00' } });
    for (const held of [capped, unpaid]) {
      expect(held.summary.blocked).toBe(2);
      expect(held.cost).toMatchObject({ known_monthly_delta: '0.00', monthly: { known_after: '0.00' } });
      expect(held.cost.unknown).toEqual([]);
      expect(held.effort).toEqual({ writes: 0, reads: 0, seconds_at_least: 0 });
      expect(planText(held, plainPaint)).not.toMatch(/^(Cost|Effort)/m);
    }
    expect(planText(free, plainPaint)).toContain(
      "Cost: +890.00 a month, from 0.00 to 890.00; known prices only, in the account's currency",
    );
  });
});
