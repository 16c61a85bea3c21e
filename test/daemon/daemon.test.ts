import { describe, expect, test } from 'vitest';
import { shop } from '../cli/run.ts';
import { emulate, live, startConverged, startDaemon } from './support.ts';

const firewallOpen = shop.replace('policy_in: drop', 'policy_in: accept');

describe('src/daemon/daemon.ts: a process with one file', () => {
  test('applies an edit, corrects drift, and reports an invalid file without applying the file', async () => {
    const { api, daemon } = await startConverged(shop);
    const [server] = live(api).servers;
    expect(server?.firewall.policyIn).toBe('drop');

    daemon.write(firewallOpen);
    await daemon.until(() => live(api).servers[0]?.firewall.policyIn === 'accept');

    daemon.write(firewallOpen.replace('cores: 2', 'cores: many'));
    const broken = await daemon.until(({ spec }) => spec.broken.length > 0);
    expect(broken.spec.broken[0]).toMatchObject({ line: 12, message: expect.stringContaining('cores') });
    api.emulator.mutate({ do: 'set_firewall', server_id: server?.id ?? 0, policy_in: 'drop' });
    await daemon.until(() => live(api).servers[0]?.firewall.policyIn === 'accept');
    expect(daemon.log().filter(({ msg }) => msg === 'spec invalid')).toHaveLength(1);

    daemon.write(firewallOpen);
    await daemon.until(({ spec, converged }) => spec.broken.length === 0 && converged);
    expect(await daemon.end()).toBe(0);
  });

  test('a change waits for its window, and the daemon reconciles when the window opens', async () => {
    const opens = new Date(Math.floor(Date.now() / 60_000 + 10) * 60_000);
    const cron = `${opens.getUTCMinutes()} ${opens.getUTCHours()} * * *`;
    const windows = `windows: [{ cron: "${cron}", duration: 12h, timezone: UTC, allow: [create] }]`;
    const spec = `version: 1\nproject: { id: 4711 }\nsettings: { ${windows} }\nips: { a: {} }\n`;
    const api = await emulate();
    const daemon = await startDaemon(api, { spec, args: ['--interval', '24h'] });
    const waiting = await daemon.until(({ condition }) => condition === 'waiting');
    expect(waiting.blocked).toMatchObject([{ code: 'outside_window', starts_at: opens.toISOString() }]);
    expect(waiting.daemon.next_reconciliation_at).toBe(opens.toISOString());
    expect(live(api).ips).toEqual([]);
    const { at } = await daemon.until(({ converged }) => converged);
    expect([live(api).ips.length, (at ?? '') > opens.toISOString()]).toEqual([1, true]);
  });
});
