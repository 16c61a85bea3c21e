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
