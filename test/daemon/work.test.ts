import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { oneNetwork, shop, vdcsync } from '../cli/run.ts';
import { emulate, live, startConverged, startDaemon } from './support.ts';

describe('src/daemon/project: long operations', () => {
  test('an ISO that loads for hours delays neither an edit nor a restart', async () => {
    const stuck = faultRule({ path: 'add_iso' }, { do: 'task', outcome: 'stuck' });
    const api = await emulate({ faults: [stuck] });
    const iso = 'isos:\n  rescue: { url: "https://mirror.example.com/rescue.iso" }\n';
    const daemon = await startDaemon(api, { spec: `${oneNetwork}${iso}` });
    await expect.poll(() => live(api).isos.length).toBe(1);
    const more = oneNetwork.replace('networks:', 'networks:\n  extra: { cidr: 10.30.0.0/24 }');
    daemon.write(`${more}${iso}`);
    const has = (name: string) => async () => live(api).networks.some((each) => each.name === name);
    await expect.poll(has('extra')).toBe(true);
    await daemon.end();
    const next = await startDaemon(api, {
      folder: daemon.folder,
      spec: `${more}  third: { cidr: 10.40.0.0/24 }\n${iso}`,
    });
    await expect.poll(has('third')).toBe(true);
    const { condition } = await next.until(() => true);
    expect(condition).not.toBe('failing');
    expect(live(api).isos).toHaveLength(1);
  });

  test('a server that waits for GPU capacity delays no other work, and its creation is reported', async () => {
    const api = await emulate();
    api.emulator.mutate({ do: 'set_capacity', package: 'l40s-1', capacity: 0 });
    const gpu =
      '  gpu-1:\n    { server_type: gpu-fixed, gpu_package: l40s-1, image: ubuntu-24.04, ssh_keys: [101] }\n';
    const daemon = await startDaemon(api, { spec: `${shop}${gpu}` });
    await daemon.until(({ in_flight: flight }) =>
      flight.some(({ key, step }) => key === 'servers.gpu-1' && step === 'waiting'),
    );
    const { in_flight: open } = await daemon.until(
      ({ in_flight: writes }) => writes.length === 1 && writes.every(({ detail }) => detail !== null),
    );
    expect(open).toMatchObject([
      { key: 'servers.gpu-1', detail: expect.stringContaining('no_gpu_capacity') },
    ]);
    await expect
      .poll(() => live(api).servers.find(({ name }) => name === 'web-1')?.firewall.policyIn)
      .toBe('drop');
    await daemon.until(({ resources }) => resources.some(({ key }) => key === 'servers.web-1.firewall'));
    const [web] = live(api).servers;
    api.emulator.mutate({ do: 'set_firewall', server_id: web?.id ?? 0, policy_in: 'accept' });
    await expect.poll(() => live(api).servers[0]?.firewall.policyIn).toBe('drop');
    await expect.poll(() => daemon.notified.map(({ event }) => event)).toContain('drift');
    expect(daemon.log().map(({ msg }) => msg)).toContain('drift found');
    expect(live(api).servers).toHaveLength(1);
    api.emulator.mutate({ do: 'set_capacity', package: 'l40s-1', capacity: 1 });
    await daemon.until(({ converged }) => converged);
    expect(daemon.notified.map(({ event }) => event)).toContain('capacity_found');
    expect(live(api).servers).toHaveLength(2);
  });
});

describe('src/daemon/project: external deletions', () => {
  test('creates a deleted server again, without a decision about its parts', async () => {
    const { api, daemon } = await startConverged(shop);
    const [web] = live(api).servers;
    api.emulator.mutate({ do: 'delete_server', id: web?.id ?? 0 });
    await expect.poll(() => live(api).servers[0]).toMatchObject({ firewall: { enabled: true } });
    expect(live(api).servers[0]?.id).not.toBe(web?.id);
    await daemon.until(({ converged }) => converged);
    const notified = daemon.notified.map((body) => JSON.stringify(body));
    expect(notified.filter((text) => text.includes('"blocked"'))).toEqual([]);
    expect(notified.some((text) => text.includes('create servers.web-1'))).toBe(true);
  });
});

describe('src/daemon/project: decisions of the operator', () => {
  test('adopt and resolve work during the run, and the daemon continues at once', async () => {
    const api = await emulate();
    api.emulator.mutate({ do: 'add_ip' });
    const daemon = await startDaemon(api, { spec: shop, args: ['--interval', '10h'] });
    const { blocked } = await daemon.until(({ condition }) => condition === 'blocked');
    expect(blocked.map(({ code }) => code)).toContain('unmanaged_resources');
    const [ip] = live(api).ips;
    const call = { cwd: daemon.folder };
    const adopted = await vdcsync(['adopt', 'ips.web', String(ip?.id)], call);
    expect([adopted.code, adopted.stdout]).toEqual([0, `ips.web is bound to ${ip?.id}.\n`]);
    await daemon.until(({ converged }) => converged);
    expect(live(api).ips).toHaveLength(1);
    const nothing = await vdcsync(['resolve', 'servers.web-1', '--absent'], call);
    expect([nothing.code, nothing.stderr]).toEqual([64, expect.stringContaining('No key has an open write')]);
    await daemon.end();
    expect(existsSync(join(daemon.folder, '.vdcsync/control.sock'))).toBe(false);
  });
});
