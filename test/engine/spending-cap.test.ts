import { describe, expect, test } from 'vitest';
import { type Rig, rig } from '../support/rig.ts';

const head = 'settings: {max_monthly_increase: 1000, unmanaged: ignore}\n';
const gpu = 'server_type: gpu-fixed, image: ubuntu-24.04';

const bought = (played: Rig) => played.writes().filter(({ path }) => path === '/servers');

describe('engine: settings.max_monthly_increase', () => {
  test('counts the dearest package that may be bought', async () => {
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

  test('holds for all rounds of a run together', async () => {
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

  test('goes by what was bought, once that is known', async () => {
    const played = rig();
    played.emulator.mutate({ do: 'add_ip', pool: 'gpu' });
    const ips = `${head.replace('1000', '2000')}ips:\n  web: {server_type_id: 8}\n`;
    await played.apply(ips);

    const report = await played.apply(
      `${ips}servers:\n  a: {${gpu}, gpu_package: [l40s-1, l40s-2], public_ipv4: {reuse: true}}\n  b: {${gpu}, gpu_package: l40s-1, public_ipv4: {ip: web}}\n`,
    );

    expect(report.blocked).toEqual([]);
    expect(bought(played)).toHaveLength(2);
  });
});
