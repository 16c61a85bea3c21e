import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { emulate, startDaemon } from './support.ts';

const oneAddress = 'version: 1\nproject: { id: 4711 }\nips:\n  web: {}\n';

describe('daemon: what its operator is told', () => {
  test('an address that a lost answer may have bought is in doubt: not idle, and nobody is to release it', async () => {
    const lost = faultRule({ method: 'POST', path: '/ips', times: 1 }, { do: 'reset', effect: 'done' });
    const api = await emulate({ faults: [lost] });
    const daemon = await startDaemon(api, { spec: oneAddress });
    const project = await daemon.until(({ condition }) => condition === 'blocked', 'a person is asked');

    expect(project.idle).toMatchObject([{ id: '5001', key: 'ips.web', in_doubt: true }]);
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    expect(metrics).toContain('vdcsync_idle_addresses{project="4711"} 0\n');
    const page = await (await fetch(daemon.url)).text();
    expect(page).toMatch(/203\.0\.113\.\d+ is billed and in doubt: it may be <span class="dim">ips\.web/);
    expect(page).not.toContain('idle, billed');
  });
});
