import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { shop } from '../cli/run.ts';
import { emulate, live, startDaemon, until } from './support.ts';

const firewallOpen = shop.replace('policy_in: drop', 'policy_in: accept');

describe('src/daemon/daemon.ts: a process with one file', () => {
  test('an edit is applied, a change elsewhere is corrected, and a broken file is reported and not applied', async () => {
    const api = await emulate();
    const daemon = await startDaemon(api, { spec: shop });
    await daemon.until(({ converged }) => converged, 'the first pass converges');
    const [server] = live(api).servers;
    expect(server?.firewall.policyIn).toBe('drop');

    daemon.write(firewallOpen);
    await daemon.until(() => live(api).servers[0]?.firewall.policyIn === 'accept', 'the edit is carried out');

    daemon.write(firewallOpen.replace('cores: 2', 'cores: many'));
    const broken = await daemon.until(({ spec }) => spec.broken.length > 0, 'the error is told');
    expect(broken.spec.broken[0]).toMatchObject({ line: 12, message: expect.stringContaining('cores') });
    api.emulator.mutate({ do: 'set_firewall', server_id: server?.id ?? 0, policy_in: 'drop' });
    await daemon.until(
      () => live(api).servers[0]?.firewall.policyIn === 'accept',
      'the last valid spec repairs it',
    );
    expect(daemon.log().filter(({ msg }) => msg === 'spec invalid')).toHaveLength(1);

    daemon.write(firewallOpen);
    await daemon.until(
      ({ spec, converged }) => spec.broken.length === 0 && converged,
      'the file is good again',
    );
    expect(await daemon.end()).toBe(0);
  });

  test('a change waits for its window, and the daemon reconciles when the window opens', async () => {
    const opens = new Date(Math.floor(Date.now() / 60_000 + 10) * 60_000);
    const cron = `${opens.getUTCMinutes()} ${opens.getUTCHours()} * * *`;
    const windows = `windows: [{ cron: "${cron}", duration: 12h, timezone: UTC, allow: [create] }]`;
    const spec = `version: 1\nproject: { id: 4711 }\nsettings: { ${windows} }\nips: { a: {} }\n`;
    const api = await emulate();
    const daemon = await startDaemon(api, { spec, args: ['--interval', '24h'] });
    const waiting = await daemon.until(({ condition }) => condition === 'waiting', 'it waits');
    expect(waiting.blocked).toMatchObject([{ code: 'outside_window', starts_at: opens.toISOString() }]);
    expect(waiting.daemon.next_reconciliation_at).toBe(opens.toISOString());
    expect(live(api).ips).toEqual([]);
    const { at } = await daemon.until(({ converged }) => converged, 'the address is created');
    expect([live(api).ips.length, (at ?? '') > opens.toISOString()]).toEqual([1, true]);
  });

  test('SIGTERM in the middle of a write ends the daemon, and the next one continues', async () => {
    const slow = faultRule({ method: 'POST', path: '/servers' }, { do: 'slow', ms: 60_000 });
    const api = await emulate({ faults: [slow] });
    const daemon = await startDaemon(api, { spec: shop });
    await daemon.until((_, { projects }) => projects[0] !== undefined, 'it works');
    await until(
      async () =>
        api.emulator.requests.some(({ method, url }) => method === 'POST' && url.endsWith('/servers')) ||
        live(api).servers.length > 0,
      Boolean,
      'the server is being created',
    );
    expect(await daemon.end()).toBe(0);
    api.emulator.setFaults([]);
    const next = await startDaemon(api, { folder: daemon.folder });
    await next.until(({ converged }) => converged, 'it converges');
    expect(live(api).servers).toHaveLength(1);
    expect(live(api).ips).toHaveLength(1);
  });

  test('kill -9 loses nothing, and the next daemon buys nothing twice', async () => {
    const api = await emulate();
    // With a lost answer only a project that is nobody else's lets the difference of two lists decide.
    const spec = shop.replace('max_deletions: 9', 'max_deletions: 9, exclusive: true');
    const daemon = await startDaemon(api, { spec });
    await until(
      async () => live(api).servers.length,
      (count) => count > 0,
      'a server is there',
    );
    await daemon.end('SIGKILL');
    const next = await startDaemon(api, { folder: daemon.folder });
    await next.until(({ converged }) => converged, 'it converges');
    expect([live(api).servers.length, live(api).ips.length]).toEqual([1, 1]);
  });
});
